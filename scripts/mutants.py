#!/usr/bin/env python3
"""Puts known bugs into the code, one at a time, and requires that the tests notice: tests/mutants/mutants.toml.

Each mutant is one changed header in a folder that the compiler searches first, or one changed source of the toolkit; the sources that
should detect it are compiled against that, and linked with the toolkit, of which what the change reaches is compiled again. A mutant survives if all its tests pass. Those tests must pass without it: they are run first.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT_S = 300


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="run only mutants with one of these words in their description or file")
    parser.add_argument("--check", action="store_true", help="compile nothing; only check that each mutant still matches the code")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    parser.add_argument("--flags", default="-std=c++20 -O1 -w", help="flags for the compiler")
    parser.add_argument("--packages", default=str(ROOT / "build/packages/usr"), help="where Catch2 is, if not installed in the system")
    return parser.parse_args()


def path_of(name):
    """Of a file that includes name as <memprof/...>: "trace/event.hpp", "toolkit/format/gzip.hpp"."""
    return ROOT / name if name.startswith("toolkit/") else ROOT / "include/memprof" / name


def mutated(mutant):
    """The text of the changed file; raises ValueError if the list no longer matches the code."""
    text = path_of(mutant["file"]).read_text()
    count = text.count(mutant["old"])
    if count != 1:
        raise ValueError(f"its text occurs {count} times in {mutant['file']}")
    return text.replace(mutant["old"], mutant["new"])


def libraries(packages):
    folders = [path.parent for path in pathlib.Path(packages).rglob("libCatch2.a")]
    return [f"-L{folder}" for folder in folders] + ["-lCatch2Main", "-lCatch2", "-ldl", "-pthread"]


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, **options)


def toolkit_sources():
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "toolkit").rglob("*.cpp"))


def reached_from(path):
    """The headers of memprof that a file includes, directly or not, by their names below memprof/."""
    found = set()
    pending = [path]
    while pending:
        names = re.findall(r"^\s*#\s*include <memprof/([^>]+)>", pending.pop().read_text(), re.MULTILINE)
        pending += [path_of(name) for name in set(names) - found]
        found.update(names)
    return found


def command_of(options, folder):
    return [options.compiler, *shlex.split(options.flags), f"-I{folder / 'include'}", f"-I{ROOT / 'include'}",
            f"-I{options.toolkit / 'include'}", f"-I{ROOT / 'tests'}", f"-I{ROOT / 'examples'}", "-isystem",
            f"{options.packages}/include", f'-DMEMPROF_SOURCE_DIR="{ROOT}"', "-c"]


def build_toolkit(options):
    """The toolkit as it is, which most mutants do not reach: its headers as <memprof/toolkit/...>, and an archive."""
    (options.toolkit / "include/memprof").mkdir(parents=True)
    (options.toolkit / "include/memprof/toolkit").symlink_to(ROOT / "toolkit")
    objects = [str(options.toolkit / (source.replace("/", "_") + ".o")) for source in toolkit_sources()]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        commands = [[*command_of(options, options.toolkit), str(ROOT / source), "-o", made]
                    for source, made in zip(toolkit_sources(), objects)]
        for done in pool.map(run, commands):
            if done.returncode != 0:
                sys.exit(f"the toolkit does not compile: {done.stdout[-2000:]}")
    run(["ar", "rcs", str(options.toolkit / "libmemprof_toolkit.a"), *objects])


def judge(options, mutant, folder):
    """(verdict, details): killed, survived, or stale if it does not compile or no longer matches the code."""
    sources = [ROOT / "tests" / source for source in mutant["tests"] + ["replay.cpp"]]
    if "text" in mutant:
        changed = folder / "include/memprof" / mutant["file"]
        changed.parent.mkdir(parents=True)
        changed.write_text(mutant["text"])
        if changed.suffix == ".cpp":
            sources.append(changed)
        else:
            sources += [ROOT / source for source in toolkit_sources() if mutant["file"] in reached_from(ROOT / source)]
    objects = []
    for source in sources:
        objects.append(str(folder / f"{len(objects)}_{source.stem}.o"))
        done = run([*command_of(options, folder), str(source), "-o", objects[-1]])
        if done.returncode != 0:
            return "stale", done.stdout[-2000:]
    program = str(folder / "tests")
    toolkit = str(options.toolkit / "libmemprof_toolkit.a")
    done = run([options.compiler, *objects, toolkit, *libraries(options.packages), "-rdynamic", "-o", program])
    if done.returncode != 0:
        return "stale", done.stdout[-2000:]
    try:
        done = run([program], cwd=folder, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "killed", "it hangs"
    failed = [line for line in done.stdout.splitlines() if "FAILED" in line]
    return ("survived", "") if done.returncode == 0 else ("killed", failed[0] if failed else "it crashes")


def try_one(options, mutant):
    with tempfile.TemporaryDirectory(prefix="memprof_mutant_") as folder:
        return judge(options, mutant, pathlib.Path(folder))


def main():
    options = arguments()
    mutants = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text())["mutant"]
    if options.words:
        mutants = [each for each in mutants if any(word in each["what"] or word in each["file"] for word in options.words)]
    if options.check:
        faults = 0
        for each in mutants:
            try:
                mutated(each)
            except ValueError as fault:
                faults += 1
                print(f"stale     {each['what']}: {fault}")
        return 1 if faults else 0
    with tempfile.TemporaryDirectory(prefix="memprof_toolkit_") as folder:
        options.toolkit = pathlib.Path(folder)
        build_toolkit(options)
        return judge_all(options, mutants)


def judge_all(options, mutants):
    counts = {"killed": 0, "survived": 0, "stale": 0}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # All tests must pass without a mutant, or a failure would say nothing.
        sources = sorted({tuple(each["tests"]) for each in mutants})
        sound = {tests: pool.submit(try_one, options, {"tests": list(tests)}) for tests in sources}
        for tests, result in sound.items():
            verdict, details = result.result()
            if verdict != "survived":
                print(f"{' '.join(tests)}: fails without a mutant: {details}")
                return 2
        running = []
        for each in mutants:
            try:
                running.append((each, pool.submit(try_one, options, {**each, "text": mutated(each)})))
            except ValueError as fault:
                counts["stale"] += 1
                print(f"stale     {each['what']}: {fault}")
        for each, result in running:
            verdict, details = result.result()
            counts[verdict] += 1
            print(f"{verdict:9} {each['what']} ({each['file']})" + (f": {details}" if verdict == "stale" else ""), flush=True)
    print(f"{counts['killed']} of {len(mutants)} mutants killed, {counts['survived']} survived, {counts['stale']} stale")
    return 0 if counts["killed"] == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
