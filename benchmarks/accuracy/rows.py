#!/usr/bin/env python3
"""Prints tables of published runs of language models beside predictions, in Markdown: litgpt, torchtune, torchtitan and Megatron-LM.

Needs memprof's Python package with its program, torch, litgpt and torchtune.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import pathlib
import sys
import warnings

import estimated_runs
import litgpt_runs
import torchtune_ladder


def _preface(name: str) -> str:
    return (pathlib.Path(__file__).parent / f"{name}.md.in").read_text(encoding="utf-8")


def tables(seconds: float, written: pathlib.Path | None) -> list[str]:
    """All tables. Raises `ValueError` for a table that cannot be read or made."""
    import memprof

    lines = []
    with contextlib.redirect_stdout(sys.stderr):  # the libraries say what they think of the machine
        of_litgpt = litgpt_runs.predict(litgpt_runs.read(), seconds)
        ladder = torchtune_ladder.predict(torchtune_ladder.STEPS, seconds)
    if written is not None:
        litgpt_runs.write(written, of_litgpt)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("memprof", "torch", "litgpt", "torchtune"))
    lines += litgpt_runs.report(of_litgpt, _preface("litgpt").replace("VERSIONS", versions))
    lines += ["", *torchtune_ladder.report(ladder, _preface("torchtune"))]
    program = pathlib.Path(memprof.__file__).parent / "bin/memprof"
    lines += ["", *estimated_runs.report(program, estimated_runs.RUNS, _preface("estimated"))]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, metavar="S", help="of a prediction, at most (default: 300)")
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE", help="also write every prediction of litgpt's runs to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        print("\n".join(tables(options.seconds, options.csv)))
    except (OSError, ValueError) as fault:
        print(f"rows.py: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
