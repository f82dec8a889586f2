#!/usr/bin/env python3
"""check_public_names.py [--list] [COMPILER]: compares the names that <memprof/memprof.hpp> puts into the namespace memprof with
docs/reference.md, whose section "Names" has each of them once. --list prints them, by header. Needs doxygen.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

from check_documented import ROOT, reached_headers

DOCUMENT = ROOT / "docs/reference.md"
TYPES = {"class", "struct", "union", "concept"}


def is_listed(name):
    """Not nested classes, specialisations, operators, and what is in detail."""
    return re.fullmatch(r"memprof::\w+", name) and not name.startswith(("memprof::detail", "memprof::operator"))


def declared(compiler):
    """{name: header} of everything in the namespace."""
    headers = reached_headers(compiler)
    found = {}

    def add(name, location):
        if is_listed(name) and location is not None:
            found.setdefault(name.removeprefix("memprof::"), location.get("file").split("include/memprof/")[-1])

    with tempfile.TemporaryDirectory() as folder:
        settings = (ROOT / "docs/Doxyfile").read_text() + f"""
INPUT = {" ".join(headers)}
OUTPUT_DIRECTORY = {folder}
GENERATE_HTML = NO
GENERATE_XML = YES
WARNINGS = NO
"""
        subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings, text=True, check=True, stderr=subprocess.DEVNULL)
        for path in sorted(pathlib.Path(folder).rglob("*.xml")):
            for compound in ElementTree.parse(path).getroot().iter("compounddef"):
                name = compound.findtext("compoundname")
                if compound.get("kind") in TYPES:
                    add(name, compound.find("location"))
                elif compound.get("kind") == "namespace" and name == "memprof":
                    for member in compound.iter("memberdef"):
                        add(f"memprof::{member.findtext('name')}", member.find("location"))
    return found


def documented():
    """The names in the tables of the section, in order."""
    section = DOCUMENT.read_text().split("\n## Names\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[2] for line in section.split("\n") if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def main():
    options = sys.argv[1:]
    wants_list = "--list" in options
    compilers = [option for option in options if option != "--list"]
    names = declared(compilers[0] if compilers else "c++")
    if wants_list:
        for header in sorted(set(names.values())):
            print(f"| `{header}` | {', '.join(f'`{name}`' for name in sorted(names) if names[name] == header)} |")
        return 0
    listed = documented()
    faults = [f"{names[name]}: {name} is not in {DOCUMENT.name}, section Names" for name in sorted(names) if name not in listed]
    faults += [f"{DOCUMENT.name}: {name} is not in the namespace memprof" for name in sorted(set(listed)) if name not in names]
    faults += [f"{DOCUMENT.name}: {name} occurs twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    print("\n".join(faults) or f"{len(names)} names are documented")
    return 1 if faults or len(names) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
