#!/usr/bin/env python3
"""check_documented.py [COMPILER]: checks that everything public that <memprof/memprof.hpp> reaches has a documentation block:
whatever is in the namespace memprof, and nested classes. Public means outside the namespace and the folder `detail`. Needs doxygen.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LACKING = re.compile(r"(\S+\.hpp):(\d+): warning: (Compound ([^ ]+) is not documented|Member (.+?) \(\w+\) of (?:namespace|file) .* is not documented)")


def reached_headers(compiler):
    made = subprocess.run([compiler, "-std=c++20", "-Iinclude", "-M", "-x", "c++", "include/memprof/memprof.hpp"], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    return sorted({word for word in made.stdout.split() if word.startswith("include/memprof/")})


def main():
    headers = reached_headers(sys.argv[1] if len(sys.argv) > 1 else "c++")
    public = [header for header in headers if "/detail/" not in header]
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        settings = (ROOT / "docs/Doxyfile").read_text() + f"""
INPUT = {" ".join(public)}
OUTPUT_DIRECTORY = {folder}
GENERATE_HTML = NO
GENERATE_XML = YES
WARN_LOGFILE = {log}
"""
        subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings, text=True, check=True, stderr=subprocess.DEVNULL)
        warnings = log.read_text()
        entities = sum(len(re.findall(r"<memberdef |<compounddef .*kind=\"(?:class|struct|concept)\"", path.read_text()))
                       for path in pathlib.Path(folder).rglob("*.xml"))
    faults = []
    for header, line, what, _, member in (match.groups() for match in LACKING.finditer(warnings)):
        if member and "<" in member:  # a specialisation; the template itself is documented
            continue
        faults.append(f"{pathlib.Path(header).relative_to(ROOT) if header.startswith('/') else header}:{line}: {what}")
    print("\n".join(faults) or f"{entities} entities of {len(public)} headers")
    sys.exit(1 if faults or entities < 500 else 0)


if __name__ == "__main__":
    main()
