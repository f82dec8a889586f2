"""What a trial found out."""

from __future__ import annotations

import dataclasses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from .. import _core


@dataclasses.dataclass
class Outcome:
    """Of one simulated run. Sizes are bytes of the device."""

    #: After enough optimizer steps, at the script's end, by an exit status other than 0, by an exception, or killed.
    ended: Literal["steps", "end", "exit", "raised", "died"]
    #: The script's own exit status.
    status: int = 0
    #: The exception in one line, or why the process is gone.
    fault: str = ""
    #: The last of what the script printed.
    output: str = ""
    steps: int = 0
    #: The most in tensors at one moment.
    live: int = 0
    #: That, in the blocks of the allocator, which rounds sizes.
    allocated: int = 0
    #: In all requests of the run together.
    taken: int = 0
    #: What the allocator would reserve of a device without a limit.
    reserved: int = 0
    #: All parts, with the CUDA context and what else is not the allocator's.
    total: int = 0
    #: Whether the device has room for them; and whether the answer is the same with the least and the most that is known of each.
    fits: bool = False
    is_certain: bool = True
    #: Name, bytes, least and most bytes (None: not known) and source of each part; in words; and the sources, in words.
    parts: list[tuple[str, int, int, int | None, str]] = dataclasses.field(default_factory=list)
    parts_text: str = ""
    sources_text: list[str] = dataclasses.field(default_factory=list)
    #: Of the request that fails: the operation's path, and its size.
    operation: str = ""
    requested: int = 0
    #: Whether sizes had to be estimated.
    is_estimated: bool = False
    #: Of each GPU's preset, whether the same run fits on it; and here, with expandable segments.
    presets: dict[str, bool] = dataclasses.field(default_factory=dict)
    fits_expandable: bool = False
    #: Modules that are not the script's own, in the order in which it imported them.
    imported: list[str] = dataclasses.field(default_factory=list)
    #: Whole numbers among the options that its argparse knows: spellings and value.
    options: list[tuple[list[str], int]] = dataclasses.field(default_factory=list)
    #: The largest group of modules of one class in the model: where it is, its class, how many; and how to recompute it.
    repeated: tuple[str, str, int] | None = None

    @property
    def failed(self) -> bool:
        return self.ended in ("exit", "raised", "died")

    def judge(self, prediction: _core._Prediction) -> None:
        """Takes what a replay says of the device."""
        self.allocated, self.reserved, self.total = prediction.allocated, prediction.reserved, prediction.total
        self.fits, self.is_certain = prediction.fits, prediction.is_certain
        self.operation, self.requested = prediction.fails_at, prediction.requested
        self.parts, self.parts_text, self.sources_text = prediction.parts, prediction.parts_text, prediction.sources_text

    @property
    def besides(self) -> int:
        """What is not the allocator's."""
        return self.total - self.reserved

    @property
    def failure(self) -> str:
        if self.ended == "exit":
            return f"ended with exit status {self.status} after {_steps(self.steps)}"
        if self.ended == "raised":
            return f"failed under simulation after {_steps(self.steps)}: {self.fault}"
        return self.fault

    @property
    def reason(self) -> str:
        """The same with the last line that the script printed, if it chose to end: argparse's complaint, for one."""
        lines = self.output.rstrip().splitlines()
        return f"{self.failure}: {lines[-1].strip()}" if self.ended == "exit" and lines else self.failure

    @property
    def how_it_ended(self) -> str:
        return f"made {_steps(self.steps)}" if self.ended == "steps" else f"ended after {_steps(self.steps)}"


def _steps(count: int) -> str:
    return f"{count or 'no'} optimizer step{'' if count == 1 else 's'}"
