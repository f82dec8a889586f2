"""`memprof config update`: pie's switch for its memory profiler, in a backend's TOML file."""

from __future__ import annotations

import argparse
import os
import re
import sys

_KEY = "enable_memory_profiling"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="memprof config", description="changes the configuration file of a memory tracker")
    update = parser.add_subparsers(required=True, metavar="update").add_parser("update", help="set a key of the file")
    named = os.environ.get("MEMPROF_CONFIG")
    update.add_argument("--config", default=named, help="the file (default: the one that MEMPROF_CONFIG names)")
    update.add_argument("--backend-enable-memory-profiling", choices=("true", "false"), required=True, dest="enabled")
    asked = update.parse_args(arguments[1:]) if arguments[:1] == ["update"] else parser.parse_args(arguments)
    if not asked.config:
        update.error("name the file with --config, or in MEMPROF_CONFIG")
    try:
        set_enabled(asked.config, asked.enabled == "true")
    except OSError as fault:
        sys.exit(f"memprof config: cannot change '{asked.config}': {fault.strerror}")
    except ValueError as fault:
        sys.exit(f"memprof config: '{asked.config}' is not changed: {fault}")


def set_enabled(path: str, enabled: bool) -> None:
    """Sets the key in the first `[[backend]]`, which is added if there is none; all else in the file stays as it is."""
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    made = f"{_KEY} = {str(enabled).lower()}"
    heads = [number for number, line in enumerate(lines) if re.match(r"\s*\[\[\s*backend\s*\]\]", line)]
    if not heads:
        lines += ["[[backend]]", made]
    else:
        end = next((number for number in range(heads[0] + 1, len(lines)) if re.match(r"\s*\[", lines[number])), len(lines))
        place = next((number for number in range(heads[0] + 1, end) if re.match(rf"\s*{_KEY}\s*=", lines[number])), None)
        if place is None:
            lines.insert(heads[0] + 1, made)
        else:
            lines[place] = made
    text = "\n".join(lines) + "\n"
    _check(text)
    written = f"{path}.{os.getpid()}"
    with open(written, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(written, path)


def _check(text: str) -> None:
    if sys.version_info >= (3, 11):
        import tomllib

        tomllib.loads(text)
