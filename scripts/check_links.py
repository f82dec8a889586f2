#!/usr/bin/env python3
"""Checks that every link in the Markdown documents leads to an existing file of the repository, and to an existing heading in it.
Links to other sites are not followed."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def without_code(text):
    text = re.sub(r"(?ms)^( *)```.*?^ *```$", "", text)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def anchors(path):
    """The anchors that GitHub gives to headings: in lower case, without punctuation, with hyphens for spaces."""
    counts = {}
    found = set()
    text = re.sub(r"(?ms)^( *)```.*?^ *```$", "", path.read_text())
    for heading in re.findall(r"(?m)^#+ +(.*?) *$", text):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = counts.get(anchor, 0)
        counts[anchor] = number + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True,
                            text=True)
    names = listed.stdout.split() if listed.returncode == 0 else ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
    faults = []
    count = 0
    for name in names:
        path = ROOT / name
        if not path.exists():
            continue
        for target in LINK.findall(without_code(path.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            file, _, anchor = target.partition("#")
            there = (path.parent / file).resolve() if file else path
            if not there.exists():
                faults.append(f"{name}: there is no {target}")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there):
                faults.append(f"{name}: {target} has no such heading")
    # Readers do not find a page that no other page links to.
    linked = {link.split("#")[0] for link in LINK.findall(without_code((ROOT / "docs/index.md").read_text()))}
    faults += [f"docs/index.md does not lead to {page.name}" for page in sorted(ROOT.glob("docs/*.md"))
               if page.name != "index.md" and page.name not in linked]
    print("\n".join(faults) or f"{count} links are valid")
    sys.exit(1 if faults or count == 0 else 0)


if __name__ == "__main__":
    main()
