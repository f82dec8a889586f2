#!/usr/bin/env python3
"""Measures what each public header costs a unit that includes it and nothing else.

    compile_cost.py [--rounds N] [--output FILE] [HEADER...]   measures, prints a table, writes JSON
    compile_cost.py --check [--budget FILE] [HEADER...]        compares lines with benchmarks/compile_budget.txt
    compile_cost.py --check-programs [--budget FILE] [NAME...] compares functions and bytes of code with the same file
    compile_cost.py --update                                   writes that file
    compile_cost.py --programs [--rounds N]                    measures only whole programs, see below

Lines are the non-blank lines after preprocessing: of memprof's headers, of third-party headers, and of the standard library and
the system. Time (CPU, the median of the rounds) and memory (the compiler's largest resident set) are those of `-O2 -c`, minus an
empty unit's.

Without headers, it also measures whole programs: the first one in README.md, header-only and with memprof::compiled; a file that
only marks scopes; one that logs a line with header-only spdlog; and, if the environment variable MEMPROF_QUILL names a checkout of
quill, one that logs a line with quill. Time is here the user's part of the CPU time alone, at -O0 and at -O2, with each compiler.

The budget has what is the same in every run: lines, and of memprof's programs the functions and the bytes of machine code that the
compiler emits, on which its time depends. memprof's own lines are compared with any compiler, the rest only with the compiler that
the file names. The checks fail for a header more than a tenth, and more than 100 lines, above its budget, and for a program a
twentieth above it. Headers based on libtorch, and those in detail/, are left out.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
BUDGET = ROOT / "benchmarks" / "compile_budget.txt"
UPDATE = "./dev bench --compile --update"
SKIPPED = 4  # for ctest
SLACK = 1.1
SLACK_LINES = 100
SLACK_CODE = 1.05
LEVELS = ("-O0", "-O2")
THIRD_PARTY = re.compile(r"/(nlohmann|boost|toml\+\+|protozero|catch2|gtest)/|/zstd(_errors)?\.h$")
ORIGINS = ("memprof", "third_party", "standard")
MARKER = re.compile(r'# \d+ "([^"]*)"')
FLAGS = ["-std=c++20", f"-I{INCLUDE}", f"-I{ROOT / 'build/packages/usr/include'}"]


def public_headers():
    names = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.hpp"))
    return [name for name in names if "/detail/" not in name and not name.startswith(("memprof/backend/torch", "memprof/torch"))]


def unit_of(header):
    return f"#include <{header}>\n" if header else ""


def origin_of(path):
    if path.startswith(str(INCLUDE)):
        return "memprof"
    return "third_party" if THIRD_PARTY.search(path) else "standard"


def lines_of(compiler, header):
    """Lines by origin, or None if the header includes a file that is missing."""
    done = subprocess.run([compiler, *FLAGS, "-x", "c++", "-E", "-"], input=unit_of(header), text=True, capture_output=True)
    if done.returncode != 0:
        if "No such file" in done.stderr or "file not found" in done.stderr:
            return None
        sys.exit(f"{header} cannot be preprocessed:\n{done.stderr}")
    counts = dict.fromkeys(ORIGINS, 0)
    origin = None
    for line in done.stdout.splitlines():
        if line.startswith("#"):
            marker = MARKER.match(line)
            if marker:
                origin = None if marker[1] == "<stdin>" or marker[1].startswith("<") else origin_of(marker[1])
                continue
        if origin and line.strip():
            counts[origin] += 1
    return counts


def standard_headers_of(compiler, header):
    """What memprof's and third-party headers include of the standard library and the system."""
    done = subprocess.run([compiler, *FLAGS, "-x", "c++", "-fsyntax-only", "-H", "-"], input=unit_of(header), text=True, capture_output=True)
    direct, includers = {}, []
    for dots, path in re.findall(r"^(\.+) (.+)$", done.stderr, re.MULTILINE):
        del includers[len(dots) - 1:]
        includers.append(origin_of(path) == "standard")
        if includers[-1] and not any(includers[:-1]):
            direct[path] = None
    return list(direct)


def usage_of(compiler, source, *flags):
    """What one compilation took."""
    process = subprocess.Popen([compiler, *FLAGS, *flags, "-c", source, "-o", os.devnull])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{source} does not compile")
    return usage


def compiled(compiler, source):
    """CPU seconds and KiB of the largest process for one compilation."""
    usage = usage_of(compiler, source, "-O2")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def compiler_name(compiler):
    """Name and major version, which determine the standard library's headers: "GNU 12"."""
    text = subprocess.run([compiler, "-std=c++20", "-x", "c++", "-dM", "-E", os.devnull], text=True, capture_output=True, check=True).stdout
    macros = dict(re.findall(r"#define (__GNUC__|__clang_major__) (\d+)", text))
    return f"clang {macros['__clang_major__']}" if "__clang_major__" in macros else f"GNU {macros['__GNUC__']}"


def count_all(compiler, headers):
    """Lines of each header that can be preprocessed; reports those that cannot."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        counted = dict(zip(headers, pool.map(lines_of, [compiler] * len(headers), headers, chunksize=8)))
    missing = [header for header, lines in counted.items() if lines is None]
    if missing:
        print(f"skipped: {len(missing)} headers that include missing files: {', '.join(missing)}")
    return {header: lines for header, lines in counted.items() if lines is not None}


def code_of(compiler, text, *flags):
    """The functions that a program's compilation emits, and the bytes of their machine code."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = pathlib.Path(folder) / "program.cpp", pathlib.Path(folder) / "program.o"
        source.write_text(text)
        subprocess.run([compiler, *FLAGS, *flags, "-c", source, "-o", output], check=True)
        symbols = subprocess.run(["nm", "--defined-only", output], text=True, capture_output=True, check=True).stdout
        sections = subprocess.run(["size", "--format=sysv", output], text=True, capture_output=True, check=True).stdout
    functions = len(re.findall(r"^[0-9a-f]+ [tTwW] ", symbols, re.MULTILINE))
    return functions, sum(map(int, re.findall(r"^\.text\S*\s+(\d+)", sections, re.MULTILINE)))


def code_of_programs(compiler, names=()):
    """{(program, level): (functions, bytes)} of memprof's programs, or of those named."""
    cases = {(name, level): (text, "-pthread", level, *flags) for name, (text, flags) in memprof_programs().items() for level in LEVELS
             if not names or name in names}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(cases, pool.map(lambda case: code_of(compiler, *case), cases.values())))


# --- the budget -------------------------------------------------------------------------------------------------------

def write_budget(compiler, counted):
    rows = [
        "# Lines after preprocessing a unit that includes the header: memprof's own, those of third-party libraries, and those of the",
        "# standard library and the system. A test fails if memprof's lines or, with this compiler, the others exceed these by more",
        "# than a tenth and more than 100 lines. Before them the functions and the bytes of code of programs with this compiler, which",
        f"# may be a twentieth more. To accept new numbers: {UPDATE}",
        f"compiler {compiler_name(compiler)}",
    ]
    rows += [f"program {name} {level} {functions} {size}" for (name, level), (functions, size) in code_of_programs(compiler).items()]
    rows += [f"{header} " + " ".join(str(lines[origin]) for origin in ORIGINS) for header, lines in counted.items()]
    BUDGET.write_text("\n".join(rows) + "\n")
    print(f"{len(counted)} headers are in {BUDGET.relative_to(ROOT)}")


def read_budget(path):
    """The compiler, the lines of each header, and {(program, level): (functions, bytes)}."""
    name, budget, programs = "", {}, {}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        first, *numbers = line.split()
        if first == "compiler":
            name = " ".join(numbers)
        elif first == "program":
            *words, level, functions, size = numbers
            programs[" ".join(words), level] = int(functions), int(size)
        else:
            budget[first] = dict(zip(ORIGINS, map(int, numbers)))
    return name, budget, programs


def check_programs(compiler, names, path):
    wanted, _, budget = read_budget(path)
    if wanted != compiler_name(compiler):
        print(f"skipped: the budget was made with {wanted}, but this is {compiler_name(compiler)}")
        return SKIPPED
    found = code_of_programs(compiler, names)
    faults = [f"{name} {level} has no budget" for name, level in found.keys() - budget.keys()]
    faults += [f"{name} {level} is in the budget, and is no program" for name, level in budget if name not in memprof_programs()]
    for case in found.keys() & budget.keys():
        for number, allowed, what in zip(found[case], budget[case], ("functions", "bytes of code")):
            if number > allowed * SLACK_CODE:
                faults.append(f"{' '.join(case)}: {number} {what}, {allowed} in the budget")
    if faults:
        print("\n".join(sorted(faults)))
        print(f"\nHave the compiler emit less (`nm --size-sort` shows the functions), or accept the cost: {UPDATE}")
        return 1
    print("\n".join(f"{' '.join(case)}: {functions} functions, {size} bytes of code" for case, (functions, size) in found.items()))
    return 0


def check(compiler, counted, path):
    wanted, budget, _ = read_budget(path)
    compared = ORIGINS if wanted == compiler_name(compiler) else ("memprof",)
    if len(compared) == 1:
        print(f"the budget was made with {wanted}, but this is {compiler_name(compiler)}: only memprof's own lines are compared")
    faults = []
    for header, lines in counted.items():
        if header not in budget:
            faults.append(f"{header} has no budget")
            continue
        for origin in compared:
            allowed = budget[header][origin]
            if lines[origin] > max(allowed * SLACK, allowed + SLACK_LINES):
                faults.append(f"{header}: {lines[origin]} {origin.replace('_', '-')} lines, {allowed} in the budget")
    faults += [f"{header} is in the budget, and is no header" for header in budget if not (INCLUDE / header).exists()]
    if faults:
        print("\n".join(faults))
        print(f"\nInclude less (`g++ -H` shows the included files), or accept the cost: {UPDATE}")
        return 1
    cheaper = [header for header, lines in counted.items() if lines["memprof"] * SLACK + SLACK_LINES < budget[header]["memprof"]]
    print(f"{len(counted)} headers are within the budget" +
          (f"; {len(cheaper)} are far below it, so it can be lowered: {UPDATE}" if cheaper else ""))
    return 0


# --- measuring --------------------------------------------------------------------------------------------------------

def measure(compiler, counted, rounds):
    """The rows of the table, most expensive header first."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "unit.cpp"
        for number, (header, lines) in enumerate(counted.items(), 1):
            print(f"\r{number} of {len(counted)}", end="", file=sys.stderr, flush=True)
            standard = "".join(f'#include "{path}"\n' for path in standard_headers_of(compiler, header))
            seconds, kib, ratios = [], [], []
            for _ in range(rounds):  # alternating with the empty unit, so that a slow moment affects both
                source.write_text("")
                empty = compiled(compiler, source)
                source.write_text(unit_of(header))
                full = compiled(compiler, source)
                source.write_text(standard)
                ratios.append(full[0] / compiled(compiler, source)[0])
                seconds.append(full[0] - empty[0])
                kib.append(full[1] - empty[1])
            rows.append({"header": header, "seconds": round(statistics.median(seconds), 3), "samples": [round(s, 4) for s in seconds],
                         "times_standard": round(statistics.median(ratios), 2),
                         "mebibytes": round(statistics.median(kib) / 1024, 1),
                         "lines": {**lines, "total": sum(lines.values())}})
    print(file=sys.stderr)
    return sorted(rows, key=lambda row: -row["seconds"])


def print_table(rows):
    width = max(len(row["header"]) for row in rows)
    print(f"{'Over an empty unit':{width}}  {'seconds':>8} {'x standard':>10} {'MiB':>6}  {'lines':>8} {'memprof':>8} {'third-party':>11} {'standard':>9}")
    for row in rows:
        lines = row["lines"]
        print(f"{row['header']:{width}}  {row['seconds']:8.2f} {row['times_standard']:10.2f} {row['mebibytes']:6.0f}  {lines['total']:8,} {lines['memprof']:8,} "
              f"{lines['third_party']:11,} {lines['standard']:9,}")


# --- whole programs ---------------------------------------------------------------------------------------------------

SPDLOG = """#include <spdlog/spdlog.h>

int main() { spdlog::info("one line: {}", 42); }
"""
QUILL = """#include <quill/LogFunctions.h>
#include <quill/SimpleSetup.h>

int main() { quill::info(quill::simple_logger(), "one line: {}", 42); }
"""


def readme_program():
    return re.search(r"^```cpp\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]


def memprof_programs():
    """Source and flags by name."""
    return {"memprof": (readme_program(), []), "memprof, marks only": ((ROOT / "tests/language/marks_scopes.cpp").read_text(), []),
            "memprof::compiled": (readme_program(), ["-DMEMPROF_SEPARATE_COMPILATION=1"])}


def preprocesses(compiler, source, flags):
    command = [compiler, *FLAGS, *flags, "-x", "c++", "-E", "-", "-o", os.devnull]
    return subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0


def programs_for(compiler):
    """Source and flags by name; says which are skipped."""
    programs = memprof_programs()
    # Debian's has the library fmt beside it, not in it.
    ways = [["-DSPDLOG_HEADER_ONLY"], ["-DSPDLOG_HEADER_ONLY", "-DSPDLOG_FMT_EXTERNAL", "-DFMT_HEADER_ONLY"]]
    found = next((flags for flags in ways if preprocesses(compiler, SPDLOG, flags)), None)
    if found:
        programs["spdlog"] = (SPDLOG, found)
    else:
        print(f"skipped: spdlog with {compiler} (Debian: libspdlog-dev)")
    checkout = os.environ.get("MEMPROF_QUILL")
    if not checkout:
        print(f"skipped: quill with {compiler} (MEMPROF_QUILL does not name a checkout)")
    elif not preprocesses(compiler, QUILL, [f"-I{checkout}/include"]):
        print(f"skipped: quill with {compiler} ({checkout}/include has no quill/SimpleSetup.h that compiles)")
    else:
        programs["quill"] = (QUILL, [f"-I{checkout}/include"])
    return programs


def measure_programs(compilers, rounds):
    """A row for each compiler, level and program, with the samples."""
    rows = []
    for compiler in compilers:
        if not shutil.which(compiler):
            print(f"skipped: programs with {compiler} (not installed)")
            continue
        programs = programs_for(compiler)
        for level in LEVELS:
            samples = {name: [] for name in programs}
            with tempfile.TemporaryDirectory() as folder:
                for _ in range(rounds):  # alternating, so that a slow moment affects all
                    for name, (text, flags) in programs.items():
                        source = pathlib.Path(folder) / f"{name}.cpp"
                        source.write_text(text)
                        samples[name].append(usage_of(compiler, source, "-pthread", level, *flags).ru_utime)
            rows += [{"compiler": compiler_name(compiler), "level": level, "program": name, "seconds": round(statistics.median(each), 2),
                      "samples": [round(seconds, 3) for seconds in each],
                      "memprof_times": round(statistics.median(ours / other for ours, other in zip(samples["memprof"], each)), 2)}
                     for name, each in samples.items()]
    return rows


def print_programs(rows):
    print(f"{'Whole program':20} {'compiler':12} {'level':6} {'user s':>8} {'memprof / it':>13}")
    for row in rows:
        print(f"{row['program']:20} {row['compiler']:12} {row['level']:6} {row['seconds']:8.2f} {row['memprof_times']:13.2f}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --compile", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--check-programs", action="store_true")
    mode.add_argument("--update", action="store_true")
    mode.add_argument("--programs", action="store_true", help="only whole programs")
    parser.add_argument("--budget", type=pathlib.Path, default=BUDGET)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compiled", action="store_true", help="as where a program links memprof::compiled")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "out" / "compile.json")
    parser.add_argument("headers", nargs="*", metavar="HEADER", help="as in an #include (default: all public headers)")
    options = parser.parse_args()
    if options.headers and options.update:
        parser.error("the budget is of all headers: name none")
    if options.programs and options.headers or (options.programs or options.check_programs) and options.compiled:
        parser.error("programs have no headers to choose, and flags of their own")
    if options.rounds < 1:
        parser.error("at least one round")
    if options.check_programs:
        unknown = [name for name in options.headers if name not in memprof_programs()]
        if unknown:
            parser.error(f"no such program: {', '.join(unknown)} (there are: {', '.join(memprof_programs())})")
        sys.exit(check_programs(options.compiler, options.headers, options.budget))
    unknown = [header for header in options.headers if not (INCLUDE / header).exists()]
    if unknown:
        parser.error(f"no such header: {', '.join(unknown)} (write it as in an #include: memprof/record.hpp)")

    if options.compiled:
        if options.check or options.update:
            parser.error("the budget is of header-only units")
        FLAGS.append("-DMEMPROF_SEPARATE_COMPILATION=1")
    counted = {} if options.programs else count_all(options.compiler, options.headers or public_headers())
    if options.check:
        sys.exit(check(options.compiler, counted, options.budget))
    if options.update:
        write_budget(options.compiler, counted)
        return
    rows = measure(options.compiler, counted, options.rounds) if counted else []
    if rows:
        print_table(rows)
    programs = []
    if not options.headers and not options.compiled:
        programs = measure_programs(dict.fromkeys([options.compiler, "clang++"]), options.rounds)
        print_programs(programs)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"format": "memprof-compile-cost", "version": 1, "compiler": compiler_name(options.compiler),
                                          "flags": "-std=c++20 -O2 -c" + (" (memprof::compiled)" if options.compiled else ""), "rounds": options.rounds, "headers": rows,
                                          "programs": programs}, indent=1) + "\n")
    print(f"The results are in {options.output}")


if __name__ == "__main__":
    main()
