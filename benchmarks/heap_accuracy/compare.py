#!/usr/bin/env python3
"""Compares what `memprof run` records of programs that nobody recompiled with what valgrind's DHAT counts, block by block.

compare.py MEMPROF [--trainings FOLDER] [NAME...]

Prints a page: peak, blocks and bytes of both, and every block that only one of them has, with the code that asked for it. What is not
installed is skipped. The exit status is 1 if a difference has no known cause.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import pathlib
import re
import shutil
import sys
import tempfile

import programs
import recording


@dataclasses.dataclass
class Difference:
    """Blocks of one size that are not as many in both."""

    size: int
    memprof: int
    dhat: int
    live: tuple[int, int]  # at the peak
    code: str
    callers: list[str]  # all that asked for blocks of this size
    cause: str = ""

    def of(self, pattern: re.Pattern[str]) -> str:
        """The first such caller."""
        return next(filter(pattern.search, self.callers), "")

    def is_row(self) -> bool:
        return self.memprof != self.dhat or self.live[0] != self.live[1]


def differences(by_memprof: recording.Recording, by_dhat: recording.Recording) -> list[Difference]:
    sizes = set(by_memprof.sizes) | set(by_dhat.sizes)
    rows = []
    for size in sorted(sizes):
        taken = by_memprof.sizes[size], by_dhat.sizes[size]
        live = by_memprof.live_at_peak[size], by_dhat.live_at_peak[size]
        row = Difference(size, *taken, live, "", [*by_memprof.callers.get(size, ()), *by_dhat.callers.get(size, ())])
        if row.is_row():
            row.code = _code(by_memprof.callers.get(size), by_dhat.callers.get(size))
            rows.append(row)
    return rows


def _code(by_memprof: collections.Counter[str] | None, by_dhat: collections.Counter[str] | None) -> str:
    """Who asked for more blocks of a size in one than in the other, if that is known; else, all who did."""
    known = by_memprof or by_dhat or collections.Counter()
    more = by_memprof - by_dhat if by_memprof and by_dhat else known
    return "; ".join(text for text, _ in (more or known).most_common(3))


#: The table of a thread's modules with thread-local storage has 16 bytes for each, and the preloaded library is one.
THREAD_TABLE = re.compile(r"allocate_dtv|_dl_allocate_tls|_dl_resize_dtv|dl-tls")

#: glibc takes such a block for each further 32 functions that exit calls.
EXIT_TABLE = re.compile(r"__new_exitfn")
EXIT_TABLE_BYTES = 1040

#: setenv and putenv copy it, with 8 bytes for each variable.
ENVIRONMENT = re.compile(r"__add_to_environ")

#: ggc-page.cc of GCC: `set_page_table_entry` has such a table for each 16 MiB of addresses in which the collector's pages lie, so
#: their number changes from run to run.
PAGE_TABLE = re.compile(r"^xcalloc < .*ggc_internal_alloc")
PAGE_TABLE_BYTES = 32_768


def explain(rows: list[Difference]) -> None:
    at = {row.size: row for row in rows}
    for row in rows:
        smaller = at.get(row.size - 16)
        if smaller and row.memprof - row.dhat == smaller.dhat - smaller.memprof > 0 and (own := row.of(THREAD_TABLE) or smaller.of(THREAD_TABLE)):
            row.cause = smaller.cause = "a thread's table of modules: 16 bytes for the preloaded one"
            row.code = smaller.code = own
        if row.size == 0 and 1 in at and row.memprof - row.dhat == at[1].dhat - at[1].memprof:
            row.cause = at[1].cause = "DHAT counts an empty block as 1 byte"
        if (row.size, row.memprof - row.dhat) == (EXIT_TABLE_BYTES, 1) and (own := row.of(EXIT_TABLE)):
            row.cause = "the C library's table of what exit calls: full one entry earlier, by the recording's own end"
            row.code = own
        if row.size == PAGE_TABLE_BYTES and (own := row.of(PAGE_TABLE)):
            row.cause = "the compiler's tables of pages: one for each 16 MiB of addresses that its collector uses, one more or less in the next run"
            row.code = own
        if row.dhat - row.memprof == 1 and (own := row.of(ENVIRONMENT)) and (first := at.get(row.size - 16)) and first.memprof - first.dhat == 1:
            # Copied twice, the second time for a variable more: 352 and 360 bytes in one, 360 and 368 in the other.
            for each in filter(None, (first, at.get(row.size - 8), row)):
                each.cause = "the copied table of the environment: valgrind adds a variable"
                each.code = own


def print_row(*cells: object) -> None:
    print("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells) + " |", flush=True)


def compare(name: str, options: argparse.Namespace) -> tuple[str, list[Difference]] | None:
    """Prints the program's row."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memprof_heap_accuracy_"))
    try:
        program = programs.PROGRAMS[name](folder, options.trainings)
        seen = recording.by_memprof(options.memprof, program.command, program.variables, folder)
        counted = recording.by_dhat(program.command, program.variables, folder)
    except programs.Missing as missing:
        print(f"skipped: {name}, which needs {missing}", file=sys.stderr)
        return None
    finally:
        shutil.rmtree(folder)
    rows = differences(seen, counted)
    explain(rows)
    for what, of in (("memprof", seen), ("DHAT", counted)):
        print_row(name if of is seen else "", what, of.peak, of.count, of.total)
    if (seen.peak, seen.count, seen.total) != (counted.peak, counted.count, counted.total):
        print_row("", "difference", *(f"{value:+,}" for value in (seen.peak - counted.peak, seen.count - counted.count, seen.total - counted.total)))
    return program.version, rows


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("memprof", type=pathlib.Path)
    arguments.add_argument("--trainings", type=pathlib.Path, default=pathlib.Path("/nonexistent"), help="where examples/trainings is built")
    arguments.add_argument("names", nargs="*", metavar="NAME", help=", ".join(programs.PROGRAMS))
    options = arguments.parse_intermixed_args()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed", file=sys.stderr)
        return 0
    print_row("program", "by", "peak", "blocks", "bytes")
    print("|---|---|---:|---:|---:|")
    compared = {name: result for name in options.names or programs.PROGRAMS if (result := compare(name, options))}
    print("\nBlocks that only one of them has:\n")
    print_row("program", "bytes", "memprof", "DHAT", "live at the peak", "asked for by", "cause")
    print("|---|---:|---:|---:|---:|---|---|")
    is_known = True
    for name, (_, rows) in compared.items():
        for row in rows:
            is_known = is_known and bool(row.cause)
            print_row(name, row.size, row.memprof, row.dhat, f"{row.live[0]}, {row.live[1]}", row.code or "?", row.cause or "**not known**")
    print("\nVersions:", "; ".join(f"{name}: {version}" for name, (version, _) in compared.items()))
    return 0 if is_known else 1


if __name__ == "__main__":
    sys.exit(main())
