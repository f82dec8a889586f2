"""The command line: `memprof ...` and `python -m memprof ...`."""

from __future__ import annotations

import os
import sys

from ._closed_pipe import die_of_closed_pipes, discard_output


def main() -> None:
    """Becomes the program that the package brings."""
    program = os.path.join(os.path.dirname(__file__), "bin", "memprof")
    if sys.argv[1:2] == ["config"]:
        from . import _config

        try:
            _config.main(sys.argv[2:])
            sys.stdout.flush()
            return
        except BrokenPipeError:
            return discard_output()
    call, environment = [program, *sys.argv[1:]], os.environ
    if sys.argv[1:2] == ["run"]:
        from . import run

        if run.is_script(sys.argv[2:]):
            run.require_script(run.script_of(sys.argv[2:]), "memprof run")
            call = run.command_of(program, sys.argv[2:])
            environment = {**environment, "RUN_BY_MEMPROF_ITSELF": "1"}  # type: ignore[assignment]
    elif sys.argv[1:2] == ["waterfall"]:
        from . import _waterfall

        place = _waterfall.place_of_script(sys.argv[2:])
        if place is not None:
            sys.exit(_waterfall.main(program, sys.argv[2:], place))
    elif sys.argv[1:2] == ["fit"] or sys.argv[1:3] == ["help", "fit"]:
        from . import _fit

        if sys.argv[1] == "help" or _fit.asks_for_help(sys.argv[2:]):
            try:
                _fit.print_help()
            except BrokenPipeError:
                return discard_output()
            call = [program, "fit", "--help"]
        elif _fit.has_command(sys.argv[2:]):
            sys.exit(_fit.main(sys.argv[2:]))
    die_of_closed_pipes()
    try:
        os.execve(program, call, environment)
    except OSError as fault:
        sys.exit(f"memprof: cannot run {program}: {fault.strerror}")


if __name__ == "__main__":
    main()
