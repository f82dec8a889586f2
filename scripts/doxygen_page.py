#!/usr/bin/env python3
"""doxygen_page.py FILE: writes a page to stdout as Doxygen understands it, for docs/Doxyfile: headings have labels and links lead
to these, because Doxygen's anchors for headings differ from GitHub's.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def label(path, anchor):
    page = re.sub(r"\W", "_", str(path.relative_to(ROOT)))
    return f"{page}-{anchor}" if anchor else page


def anchor_of(heading):
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def filtered_link(path, match):
    text, target = match.group(1), match.group(2)
    file, _, anchor = target.partition("#")
    there = (path.parent / file).resolve() if file else path
    if re.match(r"[a-z]+:", target) or match.group(0).startswith("!") or not there.exists():
        return match.group(0)
    text = text.replace("`", "")
    if there.suffix == ".md":
        return f"[{text}](#{label(there, anchor)})"
    return f"[{text}]({os.path.relpath(there, ROOT)})" if there.is_file() else text


def filtered_page(path):
    seen = {}
    lines = []
    is_code = False
    is_first = True
    for line in path.read_text().split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        heading = None if is_code else re.fullmatch(r"(#+) +(.*?) *", line)
        if not is_code:
            line = re.sub(r"!?\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)", lambda match: filtered_link(path, match), line)
        if heading:
            anchor = anchor_of(heading.group(2))
            number = seen.get(anchor, 0)
            seen[anchor] = number + 1
            if number:
                anchor += f"-{number}"
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(2)).replace("`", "")
            line = f"{heading.group(1)} {text} {{#{label(path, '' if is_first else anchor)}}}"
            is_first = False
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(filtered_page(pathlib.Path(sys.argv[1]).resolve()))
