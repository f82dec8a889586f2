"""The command line: `memprof ...` and `python -m memprof ...`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Becomes the program that the package brings."""
    program = os.path.join(os.path.dirname(__file__), "bin", "memprof")
    if sys.argv[1:2] == ["config"]:
        from . import _config

        return _config.main(sys.argv[2:])
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as fault:
        sys.exit(f"memprof: cannot run {program}: {fault.strerror}")


if __name__ == "__main__":
    main()
