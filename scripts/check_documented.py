#!/usr/bin/env python3
"""check_documented.py [--list] [COMPILER]: checks everything public that <memprof/memprof.hpp> reaches. Public means outside the
namespace and the folder `detail`. Needs doxygen.

Whatever is in the namespace memprof, and nested classes, have a documentation block. The names that are put into the namespaces
memprof and memprof::extend are those of docs/reference.md, whose section "Names" has each of them once: those of memprof::extend
under "In extensions", the others above. --list prints them, by header.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/reference.md"
TYPES = {"class", "struct", "union", "concept"}
NAMESPACES = ("memprof", "memprof::extend")
FEWEST = 20  # of a namespace: fewer means that Doxygen did not read the headers
LACKING = re.compile(r"(\S+\.hpp):(\d+): warning: (Compound ([^ ]+) is not documented|Member (.+?) \(\w+\) of (?:namespace|file) .* is not documented)")


def reached_headers(compiler):
    made = subprocess.run([compiler, "-std=c++20", "-Iinclude", "-M", "-x", "c++", "include/memprof/memprof.hpp"], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    return sorted({word for word in made.stdout.split() if word.startswith("include/memprof/")})


def read_by_doxygen(headers, folder):
    """The trees of what Doxygen says of the headers, and its warnings."""
    log = pathlib.Path(folder) / "log"
    settings = (ROOT / "docs/Doxyfile").read_text() + f"""
INPUT = {" ".join(headers)}
OUTPUT_DIRECTORY = {folder}
GENERATE_HTML = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
WARN_LOGFILE = {log}
"""
    subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings, text=True, check=True, stderr=subprocess.DEVNULL)
    return [ElementTree.parse(path).getroot() for path in sorted(pathlib.Path(folder).rglob("*.xml"))], log.read_text()


# --- documentation blocks ---------------------------------------------------------------------------------------------

def is_public(location):
    return location is not None and "/detail/" not in location.get("file")


def undocumented(trees, warnings):
    """Faults, and how many public entities there are."""
    entities = sum(is_public(entity.find("location")) for tree in trees for entity in tree.iter()
                   if entity.tag == "memberdef" or entity.tag == "compounddef" and entity.get("kind") in TYPES)
    faults = []
    for header, line, what, _, member in (match.groups() for match in LACKING.finditer(warnings)):
        if "/detail/" in header or member and "<" in member:  # a specialisation; the template itself is documented
            continue
        faults.append(f"{pathlib.Path(header).relative_to(ROOT) if header.startswith('/') else header}:{line}: {what}")
    if entities < 500:
        faults.append(f"doxygen finds only {entities} entities")
    return faults, entities


# --- names ------------------------------------------------------------------------------------------------------------

def declared(trees):
    """{namespace: {name: header}} of everything in the namespaces but nested classes, specialisations and operators."""
    found = {namespace: {} for namespace in NAMESPACES}

    def add(qualified, location):
        namespace, _, name = qualified.rpartition("::")
        if namespace in found and location is not None and re.fullmatch(r"(?!operator\b)\w+", name):
            found[namespace].setdefault(name, location.get("file").split("include/memprof/")[-1])

    for tree in trees:
        for compound in tree.iter("compounddef"):
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
    compilers = [option for option in options if option != "--list"]
    headers = reached_headers(compilers[0] if compilers else "c++")
    with tempfile.TemporaryDirectory() as folder:
        trees, warnings = read_by_doxygen(headers, folder)
    found = declared(trees)
    if "--list" in options:
        for namespace, names in found.items():
            print(f"{namespace}, {len(names)} names")
            for header in sorted(set(names.values())):
                print(f"| `{header}` | {', '.join(f'`{name}`' for name in sorted(names) if names[name] == header)} |")
        return 0
    faults, entities = undocumented(trees, warnings)
    listed = documented()
    faults += [fault for namespace in NAMESPACES for fault in faults_of(namespace, found[namespace], listed[namespace])]
    print("\n".join(faults) or f"{entities} entities of {len(headers)} headers, " +
          " and ".join(f"{len(names)} names of {namespace}" for namespace, names in found.items()))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
