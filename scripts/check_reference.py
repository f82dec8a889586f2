#!/usr/bin/env python3
"""Checks that docs/reference.md is complete: it has every field of the options, every environment variable that is read and every
subcommand, and each message that it quotes occurs in the sources."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
STRUCTS = {
    "capture_options": "include/memprof/record/options.hpp",
    "session_options": "include/memprof/record/session_options.hpp",
    "text_options": "include/memprof/report/text/text_options.hpp",
    "html_options": "toolkit/page/html_options.hpp",
}


def fields(struct, path):
    body = re.search(rf"struct {struct} {{(.*?)\n}};", (ROOT / path).read_text(), re.S).group(1)
    body = re.sub(r"//.*", "", body)
    found = []
    for statement in body.split(";"):
        pointer = re.search(r"\(\*(\w+)\)", statement)
        member = re.search(r"(\w+)\s*(?:=.*|\{.*\})?$", statement.strip(), re.S)
        if pointer or member:
            found.append((pointer or member).group(1))
    return found


def sources():
    """The text of the sources, with adjacent string literals joined."""
    text = "".join(path.read_text() for folder in ("include", "tools/memprof", "cmake") for path in sorted((ROOT / folder).rglob("*"))
                   if path.suffix in (".hpp", ".cpp", ".cmake", ".in"))
    return re.sub(r'"\s*\n\s*"', "", text)


def main():
    reference = (ROOT / "docs/reference.md").read_text()
    text = sources()
    faults = []
    for struct, path in STRUCTS.items():
        section = reference.split(f"`{struct}`", 1)[-1].split("\n## ", 1)[0]
        names = fields(struct, path)
        if len(names) < 4:
            faults.append(f"the fields of {struct} were not found in {path}")
        faults += [f"`{struct}` has no row for `{name}`" for name in names if f"| `{name}` |" not in section]
    variables = set(re.findall(r'"(MEMPROF[A-Z_]*|NO_COLOR)"', text)) - {"MEMPROF_", "MEMPROF_TEST_", "MEMPROF_OPTIONS"}
    subcommands = set(re.findall(r'add_subcommand\("([a-z-]+)"', text))
    subcommands -= {"run", "log", "visualize"}  # those of tt-mlir
    if len(variables) < 7 or len(subcommands) < 5:
        faults.append("the sources' variables and subcommands were not found")
    faults += [f"no row for the variable {name}" for name in sorted(variables) if f"| `{name}` |" not in reference]
    faults += [f"no row for the subcommand {name}" for name in sorted(subcommands) if f"| `memprof {name}` |" not in reference]
    messages = re.findall(r"(?m)^\| `([^`]+)` \|", reference.split("## Messages", 1)[-1])
    for message in messages:
        parts = [part.strip() for part in message.split("…")]
        faults += [f"no source says: {part}" for part in parts if part and part.strip("'.,:; ") and part not in text]
    print("\n".join(faults) or f"{len(messages)} messages, {len(variables)} variables and {len(subcommands)} subcommands are documented")
    sys.exit(1 if faults or not messages else 0)


if __name__ == "__main__":
    main()
