"""The answers of `memprof fit` as text and as JSON."""

from __future__ import annotations

import itertools
import re
import sys
import textwrap

from .. import _core
from .._closed_pipe import discard_output
from ._changes import AUTOCAST, DEFAULT_DTYPE, ONE_BY_ONE, RECOMPUTE
from ._request import batch_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._outcome import Outcome
    from ._request import Request
    from ._search import Edge

_WIDTH = 100
_BACKWARD = "gradients of "


def place_of(path: str) -> str:
    """Where an operation of a trial is: "backward of h.11.mlp"."""
    parts = path.split("/")
    for part in parts:
        if part.startswith("Optimizer.step#"):
            return f"the optimizer's step ({part.partition('#')[2].partition('.')[0]})"
        if part.startswith(_BACKWARD):
            return f"backward of {part[len(_BACKWARD) :]}"
        if re.fullmatch(r"\w+Backward\d+", part):
            return f"backward ({part}), outside of every module"
    modules = list(itertools.takewhile(lambda part: "::" not in part, parts))
    return f"forward of {modules[-1]}" if modules and path else f"{parts[0]}, outside of every module" if path else "no operation"


def size_of(nbytes: int) -> str:
    unit, name = (2**30, "GiB") if nbytes >= 2**30 else (2**20, "MiB")
    return f"{nbytes / unit:.3g} {name}" if nbytes < 1000 * unit else f"{nbytes / unit:,.0f} {name}"


def amount_of(need: int, capacity: int) -> str:
    """"23.3 of 22.5 GiB", with as many digits as tell them apart."""
    unit, name = (2**30, "GiB") if capacity >= 2**30 else (2**20, "MiB")
    if need < unit / 10:
        return f"{size_of(need)} of {size_of(capacity)}"
    for digits in (1, 2, 3, 6):
        texts = f"{need / unit:.{digits}f}", f"{capacity / unit:.{digits}f}"
        if texts[0] != texts[1] or need == capacity:
            break
    return f"{texts[0]} of {texts[1]} {name}"


def need_of(outcome: Outcome, capacity: int) -> int:
    """What is compared with the device: all parts. Where the allocator fits by giving cached blocks back, that is what there is."""
    return min(outcome.total, capacity) if outcome.fits else outcome.total


def brief(outcome: Outcome, request: Request) -> str:
    """"fits, 21.2 of 22.5 GiB"."""
    amount = amount_of(need_of(outcome, request.capacity), request.capacity)
    text = f"{verdict_of(outcome)}, {amount}"
    return text if outcome.fits else f"{text}, in {_place_of(outcome, request)}"


def verdict_of(outcome: Outcome) -> str:
    """"fits", "probably does not fit"."""
    return ("" if outcome.is_certain else "probably ") + ("fits" if outcome.fits else "does not fit")


def _place_of(outcome: Outcome, request: Request) -> str:
    """The operations of programs have names of their own."""
    return place_of(outcome.operation) if not request.is_program else outcome.operation or "no operation"


class Report:
    """Says each answer once it is there, unless they are to be one JSON document."""

    def __init__(self, request: Request, given: Outcome) -> None:
        self._request = request
        self._given = given
        self._document: dict[str, Any] = {
            "format": "memprof-script-fit",
            "version": 1,
            "device": request.device_name,
            "capacity": request.capacity,
            "command": request.command,
            "given": _document_of(given),
            "fits": given.fits,
            "certain": given.is_certain,
            "smallest_preset": self._smallest_preset(),
            "varied": None,
            "largest": None,
            "changes": [],
        }

    def say_verdict(self) -> None:
        given, request = self._given, self._request
        amount = amount_of(need_of(given, request.capacity), request.capacity)
        if given.fits:
            self._say(f"{verdict_of(given)} {request.device_name}: {amount}")
        else:
            self._say(f"{verdict_of(given)} {request.device_name}: {amount}, in {_place_of(given, request)}")
        self._say("")
        reserved = f", {size_of(given.reserved)} reserved by PyTorch's caching allocator" if given.reserved != given.live else ""
        self._row("Peak", f"{size_of(given.live)} live{reserved}")
        if given.fits and given.total > request.capacity:
            self._row("", "of a device without a limit; here it gives cached blocks back")
        if given.parts_text:
            self._row("Parts", given.parts_text)
        for index, line in enumerate(given.sources_text):
            self._row("Besides" if index == 0 else "", line)
        if given.requested:
            self._row("Fails", f"{size_of(given.requested)} requested by {given.operation or 'no operation'}")
        smallest = self._smallest_preset()
        self._row("Device", f"{smallest} is the smallest preset that it fits" if smallest else "it fits none of the presets")

    def say_edge(self, edge: Edge) -> None:
        number = self._request.number
        assert number is not None
        self._document["varied"] = {"name": number.name, "given": number.given}
        self._document["largest"] = {
            "value": edge.largest,
            "outcome": None if edge.below is None else _document_of(edge.below),
            "one_more": None if edge.above is None else _document_of(edge.above),
            "one_more_is_refused": edge.is_refused,
            "same_from": edge.same_from,
            "multiple_of": edge.multiple,
        }
        if edge.below is None and edge.above is not None:
            reason = f"it {edge.above.reason}" if edge.is_refused else brief(edge.above, self._request)
            self._row("Largest", f"{number.text(edge.next)} {'cannot be run' if edge.is_refused else 'already does not fit'}: {reason}")
            return
        if edge.below is None:
            self._row("Largest", f"not found: no {number.name} was seen to fit")
            return
        self._row("Largest", f"{number.text(edge.largest)}: {brief(edge.below, self._request)}")
        if edge.same_from:
            name, numbers = number.name.rstrip("="), f"{edge.same_from} and {edge.largest}"
            self._row("", f"the same memory with {numbers}: does it depend on {name}, or is the data set smaller?")
        elif edge.above is None:
            self._row("", "no end was found above it")
        elif edge.is_refused:
            self._row("", f"{number.text(edge.next)}: {_why_refused(edge.above)}")
            if edge.above.failed and edge.multiple == 1:
                self._row("", "if it must be a multiple of some number, --multiple-of N tries those alone")
        else:
            self._row("", f"{number.text(edge.next)}: {brief(edge.above, self._request)}")

    def say_changes(self, changes: list[tuple[tuple[str, ...], Outcome]]) -> None:
        title = "Helps"
        if self._given.fits_expandable:
            self._row(title, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: fits")
            title = ""
        self._document["expandable_segments_fit"] = self._given.fits_expandable
        for names, outcome in sorted(changes, key=lambda change: (change[1].failed, not change[1].fits)):
            ran = not outcome.failed and outcome.steps >= self._given.steps
            what = " and ".join(self._text_of(name) for name in names)
            if ran and outcome.live == self._given.live:
                self._row(title, f"{what}: does not lower the peak")
            elif ran:
                self._row(title, f"{what}: {brief(outcome, self._request)}")
            else:
                why = outcome.failure if outcome.failed else outcome.how_it_ended
                self._row(title, f"{what}: cannot be tried: the script {why}")
            title = ""
            self._document["changes"].append({"changes": list(names), "text": what, "ran": ran, "outcome": _document_of(outcome)})

    def finish(self, seconds: list[float]) -> None:
        """With the time of each trial."""
        request, given = self._request, self._given
        if request.number is None and not request.only_as_given:
            variable = variables[0] if (variables := batch_variables()) else "NAME"
            advice = f"name an option of the script or a variable, --vary OPTION or --vary env:{variable}"
            self._row("Largest", f"no number to vary was found: {advice}")
        how = "up to its end" if given.ended == "end" else f"of {given.steps} optimizer steps"
        estimated = ", sizes estimated in part" if given.is_estimated else ""
        self._row("Runs", f"each answer is a run {how}, simulated without memory (NO_DISPATCH){estimated}")
        self._document["seconds"] = [round(each, 3) for each in seconds]
        if request.as_json or request.json_file:
            import json

            text = json.dumps(self._document, indent=2) + "\n"
            if request.as_json:
                self._write(text)
            if request.json_file:
                _replace(request.json_file, text)

    def _smallest_preset(self) -> str:
        known = sorted((_core._cuda_capacity(name) or 0, name) for name, fits in self._given.presets.items() if fits)
        return known[0][1] if known else ""

    def _text_of(self, change: str) -> str:
        if change.startswith(RECOMPUTE):
            path, kind, count = self._given.repeated or ("", change[len(RECOMPUTE) :], 0)
            return f"recomputing each {kind.rpartition('.')[2]} ({count} in {path or 'the model'}; torch.utils.checkpoint)"
        return {
            AUTOCAST: 'torch.autocast("cuda", dtype=torch.bfloat16) around the model',
            ONE_BY_ONE: "foreach=False in the optimizer",
            DEFAULT_DTYPE: "torch.set_default_dtype(torch.bfloat16)",
        }[change]

    def _say(self, text: str) -> None:
        if not self._request.as_json:
            self._write(text + "\n")

    def _write(self, text: str) -> None:
        """Raises BrokenPipeError once nobody reads it, unless a file is to have the whole answer."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            if not self._request.json_file:
                raise
            discard_output()

    def _row(self, title: str, text: str) -> None:
        lines = textwrap.wrap(text, _WIDTH - 10, break_long_words=False, break_on_hyphens=False)
        for index, line in enumerate(lines):
            self._say(f"{title if index == 0 else '':<10}{line}")


def _replace(path: str, text: str) -> None:
    """The whole file or, if it cannot be written, what was there."""
    import os

    made = f"{path}.{os.getpid()}"
    try:
        with open(made, "w") as file:
            file.write(text)
        os.replace(made, path)
    except OSError as fault:
        raise _core.Error(f"cannot write '{path}': {fault.strerror}") from None


def _why_refused(outcome: Outcome) -> str:
    return f"it {outcome.reason}" if outcome.failed else f"it {outcome.how_it_ended}, less than as it is given"


def _document_of(outcome: Outcome) -> dict[str, Any]:
    return {
        "ended": outcome.ended,
        "status": outcome.status,
        "fault": outcome.fault,
        "optimizer_steps": outcome.steps,
        "fits": outcome.fits,
        "certain": outcome.is_certain,
        "live": outcome.live,
        "reserved": outcome.reserved,
        "total": outcome.total,
        "parts": [
            {"part": name, "bytes": nbytes, "least_bytes": least, "most_bytes": most, "source": source}
            for name, nbytes, least, most, source in outcome.parts
        ],
        "fails_at": outcome.operation,
        "requested": outcome.requested,
        "estimated": outcome.is_estimated,
    }
