#!/usr/bin/env python3
"""A user's project, built by each compiler that is installed, with the warnings of a strict one as errors.

    check_compilers.py                  every compiler and C++ library that is found, in up to 30 seconds of CPU time each
    check_compilers.py --long           every combination of language, flags and optimization, and every header alone: many minutes
    check_compilers.py --list           what is found, a line each: COMPILER, or COMPILER,libc++; and what is absent
    check_compilers.py --list-usual     the same, of what every change is checked with: g++, and the newest clang with libc++ or alone
    check_compilers.py --only NAME      one of that list, or the path of a compiler

memprof is not a system header here (-I), so what its headers do counts as the user's own code. README's program and strict.cpp,
which uses more of the interface, are built and run; the headers that need no library that is absent are compiled in one unit, or
with --long each alone. Without --long, clang builds README's program alone, but for a new one with libc++.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INCLUDE = ROOT / "include"
TOOLKIT = ROOT / "toolkit"
LINKS = tempfile.TemporaryDirectory()  # has memprof/toolkit, so that the toolkit's headers are <memprof/toolkit/...>
WARNINGS = ("-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wuseless-cast -Wnull-dereference").split()
OLDEST = {"g++": 12, "clang++": 14}
STANDARDS = ("c++26", "c++2c", "c++23", "c++2b")  # the newest that the compiler knows
NO_EXCEPTIONS = ["-fno-exceptions", "-fno-rtti"]
# A new clang says that what an old libstdc++ sorts with is deprecated: to every user of std::stable_sort.
SORT_PROBE = "#include <algorithm>\nvoid sort(int* first, int* last) { std::stable_sort(first, last); }\n"
LIBCXX_PROBE = "#include <map>\n#include <string>\n#include <thread>\n#include <vector>\nint main() { std::thread{[] {}}.join(); }\n"
THIRD_PARTY = {"nlohmann/": "nlohmann/json.hpp", "toml++/": "toml++/toml.h", "protozero/": "protozero/varint.hpp",
               "zstd": "zstd.h", "boost/": "boost/pfr.hpp"}
NEEDS_EXCEPTIONS = ("nlohmann/", "protozero/", "toml++/")


def try_to(command, text=""):
    return subprocess.run([*command, "-x", "c++", "-"], input=text, text=True, capture_output=True)


# --- what there is ----------------------------------------------------------------------------------------------------

class Compiler:
    """A compiler with a C++ library."""

    def __init__(self, path, library=""):
        self.command = [path] + ([f"-stdlib={library}"] if library else [])
        self.library = library
        macros = dict(re.findall(r"#define (\w+) (.*)", try_to([path, "-dM", "-E"]).stdout))
        self.is_clang = "__clang_major__" in macros
        self.family = "clang++" if self.is_clang else "g++"
        self.major = int(macros.get("__clang_major__" if self.is_clang else "__GNUC__", 0))
        self.name = f"{self.family}-{self.major}" + (f",{library}" if library else "")

    def knows(self, flag):
        return try_to([*self.command, "-Werror", flag, "-fsyntax-only"]).returncode == 0

    def newest_standard(self):
        return next((name for name in STANDARDS if self.knows(f"-std={name}")), "c++20")

    def links(self):
        return try_to([*self.command, "-std=c++20", "-pthread", "-o", os.devnull], LIBCXX_PROBE).returncode == 0


def installed():
    """Every compiler of a version that is supported, once; with clang also libc++, where that works."""
    found = {}
    for family, oldest in OLDEST.items():
        for program in [family] + [f"{family}-{major}" for major in range(oldest, oldest + 20)]:
            path = shutil.which(program)
            compiler = Compiler(path) if path else None
            if compiler and compiler.family == family and compiler.major >= oldest:
                found.setdefault(compiler.name, compiler)
    with_libcxx = [Compiler(each.command[0], "libc++") for each in found.values() if each.is_clang]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for compiler, links in zip(with_libcxx, pool.map(Compiler.links, with_libcxx)):
            if links:
                found[compiler.name] = compiler
    return sorted(found.values(), key=lambda each: (each.family, each.major, each.library))


def usual(found):
    clangs = [each for each in found if each.is_clang]
    return [each for each in found if not each.is_clang] + clangs[-1:]  # sorted: libc++ is last


def absent(found):
    for family, oldest in OLDEST.items():
        majors = [each.major for each in found if each.family == family]
        if oldest not in majors:
            yield f"{family} {oldest}, the oldest that is supported"
        if max(majors, default=0) <= oldest:
            yield f"a {family} newer than {oldest}"
    if not any(each.library for each in found):
        yield "libc++ (libc++-dev and libc++abi-dev on Debian)"


# --- what is compiled -------------------------------------------------------------------------------------------------

def readme_program():
    text = (ROOT / "README.md").read_text()
    return re.search(r"<!-- program: \w+ -->\n```cpp\n(.*?)```", text, re.DOTALL)[1]


def path_of(header):
    return TOOLKIT / header.removeprefix("memprof/toolkit/") if header.startswith("memprof/toolkit/") else INCLUDE / header


def header_names():
    names = [str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.hpp")]
    return sorted(names + [f"memprof/toolkit/{path.relative_to(TOOLKIT)}" for path in TOOLKIT.rglob("*.hpp")])


def third_party_of(header, known):
    """Prefixes of what a header reaches that is neither memprof nor the standard library; "?" for libtorch, CUDA and NVTX."""
    if header not in known:
        known[header] = set()
        for name in re.findall(r"^ *# *include [<\"]([^>\"]+)", path_of(header).read_text(), re.MULTILINE):
            if name.startswith("memprof/"):
                known[header] |= third_party_of(name, known)
            elif re.match(r"(torch|ATen|c10|cuda|nvtx3)", name):
                known[header].add("?")
            known[header] |= {prefix for prefix in THIRD_PARTY if name.startswith(prefix)}
    return known[header]


def headers(compiler, with_exceptions):
    known, result = {}, []
    there = {prefix for prefix, name in THIRD_PARTY.items()
             if try_to([*compiler.command, "-std=c++20", *search_path(), "-fsyntax-only"], f"#include <{name}>\n").returncode == 0}
    if not with_exceptions:
        there -= set(NEEDS_EXCEPTIONS)
    for header in header_names():
        if third_party_of(header, known) <= there:
            result.append(header)
    return result


def search_path():
    return [f"-I{INCLUDE}", f"-I{LINKS.name}", "-isystem", str(ROOT / "build/packages/usr/include")]


class Job:
    def __init__(self, compiler, what, unit, flags, runs=False):
        self.compiler, self.what, self.unit, self.flags, self.runs = compiler, what, unit, flags, runs

    def run(self, folder, number):
        """An empty text, or what went wrong."""
        source, program = folder / f"unit_{number}.cpp", folder / f"program_{number}"
        source.write_text(self.unit)
        command = [*self.compiler.command, *self.flags, str(source)]
        command += ["-o", str(program), "-pthread", "-ldl"] if self.runs else []
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode != 0:
            return f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        if not self.runs:
            return ""
        done = subprocess.run([str(program)], text=True, capture_output=True, cwd=folder)
        if done.returncode != 0 or "Peak " not in done.stdout:
            return f"{shlex.join(command)}\nthe program ended with {done.returncode} and printed\n{done.stdout}{done.stderr}"
        return ""


def jobs_of(compiler, is_long):
    warnings = [flag for flag in WARNINGS if compiler.knows(flag)] + ["-Werror"]
    newest = compiler.newest_standard()
    if try_to([*compiler.command, "-std=c++20", "-Werror", "-fsyntax-only"], SORT_PROBE).returncode != 0:
        warnings.append("-Wno-deprecated-declarations")
    units = {"README's program": readme_program(), "strict.cpp": (HERE / "strict.cpp").read_text()}
    if compiler.library and try_to([*compiler.command, "-std=c++20", "-fsyntax-only"], "#include <memory_resource>").returncode != 0:
        del units["strict.cpp"]  # its memory_resource needs that

    variants = [(name, standard, level, extra) for name in units for standard in dict.fromkeys(["c++20", newest])
                for level in ("-O0", "-O2") for extra in ([], NO_EXCEPTIONS)]
    if not is_long:  # clang warns of the same at any level
        variants = [("README's program", newest, "-O0" if compiler.is_clang else "-O2", []), ([*units][-1], "c++20", "-O0", NO_EXCEPTIONS)]
        if compiler.is_clang and not (compiler.library and compiler.major > OLDEST["clang++"]):
            variants = variants[:1]  # the preset asan has clang compile the unit tests
    for name, standard, level, extra in variants:
        given = [f"-std={standard}", level, *extra]
        without = ["-DWITHOUT_JSON"] if extra else []
        yield Job(compiler, " ".join([name, *given]), units[name], [*given, *warnings, *without, *search_path()], runs=True)

    if not is_long and len(variants) == 1:
        return
    for standard, extra in [("c++20", []), (newest, NO_EXCEPTIONS), (newest, []), ("c++20", NO_EXCEPTIONS)][:4 if is_long else 1]:
        names = headers(compiler, not extra)
        given = [f"-std={standard}", *extra]
        for group in [[name] for name in names] if is_long else [names]:
            what = group[0] if is_long else f"{len(group)} headers"
            yield Job(compiler, " ".join([what, *given]), "".join(f"#include <{name}>\n" for name in group),
                      [*given, *warnings, "-fsyntax-only", *search_path()])
        for source in sorted(TOOLKIT.rglob("*.cpp")) if is_long and not extra else []:
            yield Job(compiler, " ".join([source.name, *given]), f'#include "{source}"\n',
                      [*given, *warnings, "-fsyntax-only", *search_path()])


def check(compilers, is_long):
    jobs = [job for compiler in compilers for job in jobs_of(compiler, is_long)]
    failed = 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = pool.map(lambda numbered: numbered[1].run(pathlib.Path(scratch), numbered[0]), enumerate(jobs))
        for job, fault in zip(jobs, faults):
            if fault or not is_long:
                print(f"{'FAILED' if fault else 'passed'}: {job.compiler.name}, {job.what}", flush=True)
            if fault:
                print(fault, flush=True)
                failed += 1
    print(f"{len(jobs) - failed} of {len(jobs)} passed in {time.monotonic() - begin:.0f} s")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--list-usual", action="store_true")
    parser.add_argument("--only", metavar="NAME")
    options = parser.parse_args()
    (pathlib.Path(LINKS.name) / "memprof").mkdir()
    (pathlib.Path(LINKS.name) / "memprof/toolkit").symlink_to(TOOLKIT)
    found = installed()
    if options.list or options.list_usual:
        print("\n".join([each.name for each in (found if options.list else usual(found))] + [f"absent: {name}" for name in absent(found)]))
        return
    if options.only:
        path, _, library = options.only.partition(",")
        found = [each for each in found if each.name == options.only] or ([Compiler(path, library)] if shutil.which(path) else [])
        if not found:
            parser.error(f"no compiler {options.only}; see --list")
    else:
        for name in absent(found):
            print(f"skipped: {name} is not installed")
    sys.exit(1 if check(found, options.long) else 0)


if __name__ == "__main__":
    main()
