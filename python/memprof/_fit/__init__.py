"""Will a script fit on a device, and with which batch at most? `memprof fit --device gpu-24gb train.py --batch-size 16`.

Each answer about a script is a run of the script as it is, without memory and without kernels (NO_DISPATCH), up to its second
optimizer step, in a process of its own: a fork of this one, which has only done the imports.
"""

from __future__ import annotations

import sys

from .. import _core
from .._closed_pipe import discard_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._outcome import Outcome
    from ._program import ProgramTrials
    from ._request import Request
    from ._trials import Trials

#: Exit statuses; that of a script which fails is the script's own.
FITS, BAD_INPUT, DOES_NOT_FIT = 0, 2, 3


def has_command(arguments: list[str]) -> bool:
    """Whether the arguments of `memprof fit` name a script or a module of Python or, after `--`, a program, and not the dimensions
    of a model."""
    return any(argument in ("-m", "--") or argument.endswith((".py", ".pyw")) for argument in arguments)


def main(arguments: list[str]) -> int:
    """Answers on the standard output. Returns the exit status."""
    from ._request import Request

    try:
        with Request(arguments) as request:
            return _answer(request)
    except _core.Error as fault:
        print(f"memprof fit: {fault}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130


def _answer(request: Request) -> int:
    from ._program import ProgramTrials
    from ._trials import Trials

    trials: Trials | ProgramTrials = ProgramTrials(request) if request.is_program else Trials(request)
    given = trials.run(None)
    if (status := _status_of_failure(request, given)) is not None:
        return status
    try:
        _report(request, trials, given)
    except BrokenPipeError:
        discard_output()  # nobody reads further: no more trials
    return FITS if given.fits else DOES_NOT_FIT


def _report(request: Request, trials: Trials | ProgramTrials, given: Outcome) -> None:
    from ._report import Report
    from ._trials import Trials

    report = Report(request, given)
    report.say_verdict()
    request.choose_number(given.options)
    if request.number is not None and not request.only_as_given:
        from ._search import find_edge

        edge = find_edge(trials.run, request.capacity - given.besides, request.number.given, given, request.multiple)
        report.say_edge(edge)
    if isinstance(trials, Trials) and not given.fits and not request.only_as_given:
        from ._changes import helpful_changes

        report.say_changes(helpful_changes(trials, given))
    report.finish(trials.seconds)


def _status_of_failure(request: Request, given: Outcome) -> int | None:
    """Of a script that fails as it is given, or that has nothing to answer about; None if there is an answer."""
    if given.failed:
        if given.output and not request.shows_output:
            print(given.output, end="", file=sys.stderr)
        print(f"memprof fit: {request.script} {given.failure}{request.misplaced if given.status else ''}", file=sys.stderr)
        return given.status
    if given.live == 0:
        advice = f"used no memory of {request.space}: does it move its model to \"cuda\", and train in its own process?"
        how = given.how_it_ended
        if request.is_program:
            how, advice = "ended", _needs_of_program(request)
        if given.output and not request.shows_output:
            print(given.output, end="", file=sys.stderr)
        print(f"memprof fit: {request.script} {how} and {advice}{request.misplaced}", file=sys.stderr)
        return BAD_INPUT
    return None


def _needs_of_program(request: Request) -> str:
    """Of one that recorded nothing: only its own session sees a program's memory."""
    if request.script.startswith("python"):
        return "recorded nothing: without '--', memprof fit asks a script of Python: memprof fit --device NAME SCRIPT.py [ARGUMENTS]"
    return (
        "recorded nothing: after '--', memprof fit needs a program that was built with memprof: does it have a memprof::session, and allocate "
        f"through memprof::memory_resource? What any program takes from malloc: memprof run -- {' '.join(request.command)}"
    )
