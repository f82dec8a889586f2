#!/usr/bin/env python3
"""Compares the outputs that documents show for their programs with what the programs print.

    document_outputs.py [--update] --programs FOLDER [--tool MEMPROF] DOCUMENT...

A program is a block of C++ after a line `<!-- program: NAME -->` (scripts/snippets.awk); FOLDER has the executables. The blocks
that follow it, each after a line `<!-- output -->` or `<!-- output: COMMAND -->`, show what the program prints to stdout and
stderr, or what COMMAND then prints in the same folder, where `memprof` is the tool; without a tool, commands are skipped.
`<!-- output, killed -->` is for a program that dies by SIGKILL, `<!-- output, aborted -->` for one that calls `abort`, and
`<!-- output, status 2: COMMAND -->`, or 1, for one with that exit status.

A block after `<!-- file: NAME -->` is a file of a project; one after `<!-- commands -->` has the commands that a reader types in its
folder to build and run it. The output after that is the last command's; the headers are found as if they were installed.

Times, folders, process ids, the profiler's own usage, the parts of a process that is explained, and line breaks are not compared. A line `...` in a block stands for any
lines. With --update, blocks without such a line are replaced with the actual output.
"""

import argparse
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

ANNOUNCEMENT = re.compile(r"<!-- (?P<kind>program|output|file|commands)(?:, (?P<ending>[a-z0-9 ]+))?(?:: (?P<argument>.*))? -->")
STATUS = {None: 0, "killed": -signal.SIGKILL, "aborted": -signal.SIGABRT, "status 1": 1, "status 2": 2}
INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"
MASKS = (
    (r"exact: [0-9,]+ events", "exact: NUMBER events"),
    (r"profiler [0-9.,]+ ([KMG]i)?B, [0-9.]+ [mun]?s an event", "profiler SIZE, TIME an event"),
    (r"\b[0-9][0-9.,]* (ns|us|µs|ms|s|min|h)\b", "TIME"),
    (r"\b(process|pid) [0-9]+", r"\1 NUMBER"),
    (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+( UTC)?", "DATE"),
    (r"0x[0-9a-f]+", "ADDRESS"),
    (r"'/[^']*/", "'FOLDER/"),
    (r"_[0-9]{8}_[0-9]{6}\b", "_TIME"),
    (r"\s+", " "),
    # A run of some milliseconds has none.
    (r" Process [0-9.]+ [KMG]iB resident( of [0-9.]+ [KMGT]iB that the container may take)?: [^(]* heap not recorded, [0-9.]+ ([KMG]i)?B other(; read at TIME)?", ""),
)


def masked(text):
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text)
    return text.strip()


def blocks_of(lines):
    """The announcement, the first line and the line after the last of each announced block, as line numbers from 0."""
    number = 0
    while number < len(lines):
        announced = ANNOUNCEMENT.fullmatch(lines[number])
        number += 1
        if not announced:
            continue
        if number == len(lines) or not lines[number].startswith("```"):
            sys.exit(f"line {number}: no block follows {lines[number - 1]}")
        first = number + 1
        number = lines.index("```", first)
        yield announced, first, number


def is_shown(expected, printed):
    """Whether `printed` is `expected`, in which lines of three dots stand for any lines."""
    parts = re.split(r"(?m)^ *\.\.\.\n", expected)
    text = masked(printed)
    if len(parts) == 1:
        return masked(expected) == text
    position = 0
    for index, part in enumerate(masked(part) for part in parts):
        found = text.find(part, position)
        if found < 0 or (index == 0 and found != 0):
            return False
        position = found + len(part)
    return not masked(parts[-1]) or text.endswith(masked(parts[-1]))


def run(command, folder, tool):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMPROF") and name != "COLUMNS"}
    environment["CPLUS_INCLUDE_PATH"] = str(INCLUDE)
    environment["MKL_DISABLE_FAST_MM"] = "1"  # else it keeps buffers, whose size hangs on the processor, and they are not recorded
    if tool:
        environment["PATH"] = f"{tool.parent}:{environment['PATH']}"
    return subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def run_program(name, programs, folder):
    """Starts the executable that has the program; it picks its program by the name it is called by."""
    for executable in sorted(programs.glob("programs*")):
        if executable.suffix or f'"{name}"' not in executable.with_suffix(".cpp").read_text():
            continue
        os.symlink(executable, folder / name)
        return run([f"./{name}"], folder, None)
    sys.exit(f"there is no program '{name}' in {programs}")


def check(document, programs, tool, update):
    """The number of blocks that differ."""
    lines = document.read_text().splitlines()
    differing = 0
    folder, done, is_compared = None, None, True
    replaced = []
    with tempfile.TemporaryDirectory() as scratch:
        for announced, first, end in blocks_of(lines):
            where = f"{document}:{first + 1}"
            kind, ending, argument = announced.group("kind", "ending", "argument")
            text = "".join(line + "\n" for line in lines[first:end])
            if kind == "file":
                folder = pathlib.Path(scratch) / "project"
                folder.mkdir(exist_ok=True)
                (folder / argument).write_text(text)
                continue
            if kind == "commands" and folder is not None:
                done, is_compared = run(["sh", "-ec", text], folder, tool), False
                continue
            if kind == "program":
                if not is_compared:
                    sys.exit(f"{where}: the program before it shows no output")
                folder = pathlib.Path(scratch) / argument
                folder.mkdir()
                done, is_compared = run_program(argument, programs, folder), False
                continue
            if folder is None:
                sys.exit(f"{where}: there is no program before it")
            is_compared = True
            if argument and "memprof " in argument and not tool:
                print(f"skipped: {where}, which needs the memprof tool")
                continue
            shown = run(shlex.split(argument), folder, tool) if argument else done
            printed = shown.stdout.decode()
            if shown.returncode != STATUS[ending]:
                print(f"{where}: the exit status is {shown.returncode}, not {STATUS[ending]}; the output was\n{printed}")
                differing += 1
            elif is_shown(text, printed):
                continue
            elif update and "...\n" not in text:
                replaced.append((first, end, printed.rstrip("\n").split("\n")))
            else:
                print(f"{where}: the document shows\n{text}\nbut the output was\n{printed}")
                differing += 1
    if not is_compared:
        sys.exit(f"{document}: its last program shows no output")
    for first, end, printed in reversed(replaced):
        lines[first:end] = printed
    if replaced:
        document.write_text("".join(line + "\n" for line in lines))
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--tool", type=pathlib.Path)
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    tool = options.tool.resolve() if options.tool and options.tool.exists() else None
    sys.exit(1 if sum(check(each, options.programs.resolve(), tool, options.update) for each in options.documents) else 0)


if __name__ == "__main__":
    main()
