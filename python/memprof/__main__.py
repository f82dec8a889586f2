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
    if (command := _command_to_explain(sys.argv[1:])) is not None:
        from . import _script_help

        try:
            _script_help.show(command)
        except BrokenPipeError:
            return discard_output()
        call = [program, command, "--help"]
    elif sys.argv[1:2] == ["run"]:
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
        if _waterfall.names_script(sys.argv[2:]):
            sys.exit(_waterfall.refuse_script(sys.argv[2:]))
    elif sys.argv[1:2] == ["fit"]:
        from . import _fit

        if _fit.has_command(sys.argv[2:]):
            sys.exit(_fit.main(sys.argv[2:]))
    die_of_closed_pipes()
    try:
        os.execve(program, call, environment)
    except OSError as fault:
        sys.exit(f"memprof: cannot run {program}: {fault.strerror}")


def _command_to_explain(arguments: list[str]) -> str | None:
    """The command with scripts whose help the arguments ask for, rather than that of a script."""
    command, *rest = arguments or [""]
    if command == "help":
        command, rest = (rest or [""])[0], ["--help"]
    if command not in ("run", "fit", "waterfall"):
        return None
    for argument in rest:
        if argument in ("-h", "--help"):
            return command
        if argument in ("-m", "--") or argument.endswith((".py", ".pyw")):
            break
    return None


if __name__ == "__main__":
    main()
