#!/usr/bin/env python3
"""check_public_names.py [--list] [COMPILER]: compares the names that <memprof/memprof.hpp> puts into the namespaces memprof and
memprof::extend with docs/reference.md, whose section "Names" has each of them once: those of memprof::extend under "In extensions",
the others above. --list prints them, by header. Needs doxygen.
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
NAMESPACES = ("memprof", "memprof::extend")
FEWEST = 20  # of a namespace: fewer means that Doxygen did not read the headers


def declared(compiler):
    """{namespace: {name: header}} of everything in the namespaces but nested classes, specialisations and operators."""
    headers = reached_headers(compiler)
    found = {namespace: {} for namespace in NAMESPACES}

    def add(qualified, location):
        namespace, _, name = qualified.rpartition("::")
        if namespace in found and location is not None and re.fullmatch(r"(?!operator\b)\w+", name):
            found[namespace].setdefault(name, location.get("file").split("include/memprof/")[-1])

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
                elif compound.get("kind") == "namespace" and name in found:
                    for member in compound.iter("memberdef"):
                        add(f"{name}::{member.findtext('name')}", member.find("location"))
    return found


def documented():
    """{namespace: names} in the tables of the section, in order."""
    section = DOCUMENT.read_text().split("\n## Names\n", 1)[1].split("\n## ", 1)[0]
    return {namespace: [name for line in part.split("\n") if line.startswith("| `")
                        for name in re.findall(r"`(\w+)`", line.split("|")[2])]
            for namespace, part in zip(NAMESPACES, section.split("\n### In extensions\n"))}


def faults_of(namespace, names, listed):
    faults = [f"{names[name]}: {name} is not in {DOCUMENT.name}, section Names, among those of {namespace}"
              for name in sorted(names) if name not in listed]
    faults += [f"{DOCUMENT.name}: {name} is not in the namespace {namespace}" for name in sorted(set(listed)) if name not in names]
    faults += [f"{DOCUMENT.name}: {name} occurs twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    if len(names) < FEWEST:
        faults.append(f"doxygen finds only {len(names)} names in {namespace}")
    return faults


def main():
    options = sys.argv[1:]
    wants_list = "--list" in options
    compilers = [option for option in options if option != "--list"]
    found = declared(compilers[0] if compilers else "c++")
    if wants_list:
        for namespace, names in found.items():
            print(f"{namespace}, {len(names)} names")
            for header in sorted(set(names.values())):
                print(f"| `{header}` | {', '.join(f'`{name}`' for name in sorted(names) if names[name] == header)} |")
        return 0
    listed = documented()
    faults = [fault for namespace in NAMESPACES for fault in faults_of(namespace, found[namespace], listed[namespace])]
    print("\n".join(faults) or " and ".join(f"{len(names)} names of {namespace}" for namespace, names in found.items()))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
