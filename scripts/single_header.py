#!/usr/bin/env python3
"""Writes single_include/memprof/memprof.hpp: the library, which needs no build, in one file. The toolkit is not in it.

scripts/single_header.py                   writes it from include/
scripts/single_header.py --check           exits with 1 if it is out of date
scripts/single_header.py --stand-ins DIR   writes, for each other header, one that takes its content from the single header;
                                           with both folders in the include path, the tests compile against it

The umbrella and every header it reaches are always included. The others come in parts, each behind a macro:
MEMPROF_WITH_MALLOC (backend/malloc.hpp), MEMPROF_WITH_NEW_DELETE (backend/new_delete.hpp), MEMPROF_WITH_CUDA_RUNTIME
(backend/cuda_no_dispatch_runtime.hpp), MEMPROF_WITH_ALL (what needs no third-party header) and MEMPROF_WITH_JSON (what needs
nlohmann/json). Headers that need other libraries remain in include/ only.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
OUTPUT = ROOT / "single_include" / "memprof" / "memprof.hpp"
UMBRELLA = "memprof/memprof.hpp"

INCLUDE_LINE = re.compile(r"\s*#\s*include\s*[<\"]([^>\"]+)[>\"]")
JSON_LIBRARIES = {"nlohmann"}
# Libraries whose headers have no folder of their own.
LONE_HEADERS = {"zstd.h", "zlib.h", "cuda.h", "cuda_runtime.h", "cupti.h"}
SYSTEM_FOLDERS = {"sys", "linux", "mach-o"}


def stop(what):
    sys.exit(f"single_header: {what}")


def header_only(lines):
    """The lines, except those that are only for separate compilation."""
    kept = []
    branches = []  # of each open #if: its kept branch, or None where it is about something else
    current = []
    for line in lines:
        directive = re.match(r"\s*#\s*(if|el|endif)", line)
        asked = re.fullmatch(r"#if (!?)MEMPROF_SEPARATE_COMPILATION", line)
        if directive and directive[1] == "if":
            branches.append(None if not asked else asked[1] == "!")
            current.append(True)
        elif directive and directive[1] == "el" and branches[-1] is not None:
            current[-1] = False
        if directive and branches[-1] is not None:
            pass
        elif all(branch is None or branch == is_first for branch, is_first in zip(branches, current)):
            kept.append(line)
        if directive and directive[1] == "endif":
            branches.pop()
            current.pop()
    return kept


class Header:
    """A header's lines and its includes: (line, name, the conditions around it)."""

    def __init__(self, name):
        self.name = name
        self.lines = header_only((INCLUDE / name).read_text().split("\n"))
        self.included = {}
        self.trailing = []  # numbers of the lines that include what defines what this header declares
        self.libraries = set()
        ends = [number for number, line in enumerate(self.lines) if line.startswith("}  // namespace")]
        conditions = []
        for number, line in enumerate(self.lines):
            directive = re.match(r"\s*#\s*(if|el|endif)", line)
            if directive:
                if directive[1] == "if":
                    conditions.append(line)
                elif directive[1] == "el":
                    conditions[-1] += " / " + line
                else:
                    conditions.pop()
            included = INCLUDE_LINE.match(line)
            if not included:
                continue
            folder, slash, _ = included[1].partition("/")
            if folder == "memprof":
                self.included[number] = (included[1], tuple(conditions))
                if ends and number > ends[-1]:
                    self.trailing.append(number)
            elif included[1] in LONE_HEADERS or (slash and folder not in SYSTEM_FOLDERS):
                self.libraries.add(folder)


HEADERS = {
    name: Header(name)
    for name in sorted(path.relative_to(INCLUDE).as_posix() for path in (INCLUDE / "memprof").rglob("*.hpp"))
    if name != "memprof/implementation.hpp"
}


def reached_from(roots, unconditionally=False):
    found = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        pending += [other for other, conditions in HEADERS[name].included.values() if not (unconditionally and conditions)]
    return found


def libraries_of(name):
    return set().union(*(HEADERS[other].libraries for other in reached_from([name])))


class Merger:
    """Merges headers into one text.

    A header that every configuration includes comes before the first header that includes it, even if that one does so under an
    #if, so that it never ends up in a branch that is not taken. A header that only some configurations include stays in its branch.
    """

    def __init__(self):
        self.merged_under = {}
        self.looked_at = set()

    def merge(self, name, everywhere, write, under=()):
        if name in self.merged_under:
            if not set(self.merged_under[name]) <= set(under):
                stop(f"<{name}> is included under different conditions, and never without one: {self.merged_under[name]}, {under}")
            return
        self.merged_under[name] = under
        if not under:
            self.merge_what_must_come_before(name, everywhere, write)
        text = [f"// ---- <{name}>"]
        is_blank = True  # no empty lines at the start
        header = HEADERS[name]
        for number, line in enumerate(header.lines):
            if number in header.trailing:
                continue
            if number in header.included:
                other, conditions = header.included[number]
                if other not in everywhere:
                    self.merge(other, everywhere, lambda _, more: text.extend(more), under + conditions)
            elif not line.startswith("#pragma once") and not (line == "" and is_blank):
                text.append(line)
                is_blank = line == ""
        if not is_blank:
            text.append("")
        write(name, text)
        for number in header.trailing:
            self.merge(header.included[number][0], everywhere, write, under)

    def merge_what_must_come_before(self, name, everywhere, write):
        if name in self.looked_at:
            return
        self.looked_at.add(name)
        for number, (other, _) in HEADERS[name].included.items():
            if other not in everywhere:
                self.merge_what_must_come_before(other, everywhere, write)
            elif number not in HEADERS[name].trailing:
                self.merge(other, everywhere, write)


def parts():
    """The roots of each part, by the part's macro."""
    in_umbrella = reached_from([UMBRELLA])
    found = {  # malloc.hpp first: it says where the operators of new_delete.hpp take memory from
        "MEMPROF_WITH_MALLOC": ["memprof/backend/malloc.hpp"],
        "MEMPROF_WITH_NEW_DELETE": ["memprof/backend/new_delete.hpp"],
        "MEMPROF_WITH_ALL": [],
        "MEMPROF_WITH_JSON": [],
        "MEMPROF_WITH_CUDA_RUNTIME": ["memprof/backend/cuda_no_dispatch_runtime.hpp"],  # last: what it includes is of MEMPROF_WITH_ALL
    }
    of_heap = reached_from(["memprof/backend/malloc.hpp"])
    # Functions that are not inline, as those of the heap.
    alone = found["MEMPROF_WITH_CUDA_RUNTIME"] + [name for name in HEADERS if name.startswith("memprof/backend/cuda/replaced_")]
    others = [name for name in HEADERS if name not in in_umbrella and name not in of_heap and name not in alone]
    by_macro = {"MEMPROF_WITH_ALL": [], "MEMPROF_WITH_JSON": []}
    for name in others:
        libraries = libraries_of(name)
        if not libraries:
            by_macro["MEMPROF_WITH_ALL"].append(name)
        elif libraries <= JSON_LIBRARIES:
            by_macro["MEMPROF_WITH_JSON"].append(name)
    for macro, names in by_macro.items():
        # A header that another header of the part includes comes with that one, under its conditions.
        included = {
            other for name in names for number, (other, _) in HEADERS[name].included.items() if number not in HEADERS[name].trailing
        }
        found[macro] = [name for name in names if name not in included]
    return found


def conditions_in_umbrella():
    """The condition under which the umbrella reaches a header; "" if it always does."""
    found = {}

    def visit(name, conditions):
        if name in found and (found[name] == "" or conditions):
            if found[name] not in ("", *conditions):
                stop(f"the umbrella reaches <{name}> under different conditions")
            return
        if len(conditions) > 1 or not all(re.fullmatch(r"#if [^/]+", each) for each in conditions):
            stop(f"the umbrella reaches <{name}> under conditions that cannot be written in one #if: {conditions}")
        found[name] = "".join(conditions)
        for other, more in HEADERS[name].included.values():
            visit(other, conditions + tuple(each for each in more if each not in conditions))

    visit(UMBRELLA, ())
    return {name: condition.removeprefix("#if ") for name, condition in found.items()}


def single_header():
    roots_of = {"": [UMBRELLA], **parts()}
    roots = [root for each in roots_of.values() for root in each]
    reached = {macro: reached_from(each) for macro, each in roots_of.items() if macro}
    in_umbrella = conditions_in_umbrella()
    everywhere = reached_from(roots, unconditionally=True)

    merger = Merger()
    merged = []
    for root in roots:
        merger.merge(root, everywhere, lambda name, text: merged.append((name, text)))

    left_out = [name for name in HEADERS if libraries_of(name) <= JSON_LIBRARIES and name not in merger.merged_under]
    if left_out:
        stop(f"nothing leads to {', '.join(left_out)}")

    # Headers needed under the same conditions are grouped together.
    groups = []
    for name, text in merged:
        wanted = [f"defined({macro})" for macro in reached if name in reached[macro]]
        if name in in_umbrella:
            wanted = [in_umbrella[name], *wanted] if in_umbrella[name] else []
        if not groups or groups[-1][0] != wanted:
            groups.append((wanted, []))
        groups[-1][1].extend(text)

    output = [
        "// memprof in one header, written by ./dev single-header. Do not edit: change the files under include/.",
        "//",
        "// Define before the include, where you want it; the header may be included again for more:",
        "//   MEMPROF_WITH_MALLOC      replaces malloc and its family, and these operators; in exactly one .cpp",
        "//   MEMPROF_WITH_NEW_DELETE  replaces the global operators new and delete; in exactly one .cpp",
        "//   MEMPROF_WITH_CUDA_RUNTIME  takes the place of CUDA's runtime; in exactly one .cpp",
        "//   MEMPROF_WITH_ALL         reading trace files, writing JSON: all that needs no other library",
        "//   MEMPROF_WITH_JSON        reading profiles, sessions: needs nlohmann/json",
        "//",
    ]
    output += [("// " + line).rstrip() for line in (ROOT / "LICENSE").read_text().rstrip("\n").split("\n")]
    output += ["", "#if MEMPROF_SEPARATE_COMPILATION"]
    output += ['#error "MEMPROF_SEPARATE_COMPILATION needs the headers under include/: this one is header-only"', "#endif"]
    for number, (wanted, text) in enumerate(groups, 1):
        guard = f"MEMPROF_SINGLE_HEADER_{number}"
        condition = f"#if !defined({guard})" + (f" && ({' || '.join(wanted)})" if wanted else "")
        output += ["", condition, f"#define {guard}", "", *text, f"#endif  // {guard}"]
    return "\n".join(output) + "\n"


def write_stand_ins(folder):
    in_umbrella = reached_from([UMBRELLA])
    reached = {macro: reached_from(roots) for macro, roots in parts().items()}
    for name, header in HEADERS.items():
        if name == UMBRELLA:
            continue
        text = "#pragma once\n"
        macro = next((macro for macro in reached if name in reached[macro]), None)
        if name not in in_umbrella and not macro:
            text = "\n".join(header.lines)
        else:
            if name not in in_umbrella:
                text += f"#ifndef {macro}\n#define {macro}\n#endif\n"
            text += f"#include <{UMBRELLA}>\n"
        target = pathlib.Path(folder) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def main(arguments):
    if arguments[:1] == ["--stand-ins"] and len(arguments) == 2:
        write_stand_ins(arguments[1])
    elif arguments == ["--check"]:
        lone = [path for path in OUTPUT.parent.parent.rglob("*") if path.is_file() and path != OUTPUT]
        if lone or not OUTPUT.exists() or OUTPUT.read_text() != single_header():
            stop("single_include/ is not current; run ./dev single-header")
    elif not arguments:
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        OUTPUT.write_text(single_header())
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
