"""Finds the largest number with which a script fits, by running it with others."""

from __future__ import annotations

import dataclasses
from math import isqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ._outcome import Outcome

#: More are not needed: a doubling or halving each would reach any number.
_MOST_TRIALS = 40


@dataclasses.dataclass
class Edge:
    """The largest number that was found to fit and the next one, which does not; of all that were tried, none above fits. If only
    multiples of a number are tried, the next one is the next multiple."""

    #: 0: not even 1 fits.
    largest: int
    #: With that number; None if it is 0.
    below: Outcome | None
    #: With the next number; None where the memory does not grow with the number, or no end was found.
    above: Outcome | None
    #: Whether the run with the next number says nothing of memory: the script refuses it, or has not as many steps to make.
    is_refused: bool = False
    #: The least number from which on the memory is the same; 0: it grows.
    same_from: int = 0
    #: Of which all numbers that were tried are multiples.
    multiple: int = 1

    @property
    def next(self) -> int:
        return self.largest + self.multiple


class _Search:
    def __init__(self, run: Callable[[int], Outcome], capacity: int) -> None:
        self._run = run
        self._capacity = capacity
        self.tried: dict[int, Outcome] = {}
        self._steps = 0
        self._stride = 1
        self._last_side = 0
        self._widths: list[int] = []

    def add(self, number: int, outcome: Outcome) -> None:
        if not self.tried:
            self._steps = outcome.steps
        self.tried[number] = outcome

    def try_(self, number: int) -> None:
        self.add(number, self._run(number))

    def answers(self, number: int) -> bool:
        """Whether the run made the steps that the first one made: with fewer, its peak is another one."""
        outcome = self.tried[number]
        return not outcome.failed and outcome.steps >= self._steps

    def fits(self, number: int) -> bool:
        return self.answers(number) and self.tried[number].fits

    def bracket(self) -> tuple[int, int | None]:
        """The largest number that fits, and the least above it that does not."""
        low = max((number for number in self.tried if self.fits(number)), default=0)
        return low, min((number for number in self.tried if number > low), default=None)

    def same_from(self) -> int:
        """The lesser of two numbers, at least a doubling apart, with the same memory, where all that were tried fit. The peak alone may
        be that of the optimizer's step, which a greater number exceeds."""
        numbers = sorted(number for number in self.tried if self.answers(number))
        for number in numbers[:-1]:
            less, more = self.tried[number], self.tried[numbers[-1]]
            if numbers[-1] >= 2 * number and more.allocated <= less.allocated and more.taken <= less.taken:
                return number
        return 0

    def next_number(self, low: int, high: int | None) -> int:
        """Where the device would be full if memory grew along a line, or beside it: the allocator's waste is no line."""
        expected = self._expected()
        if high is None:
            return max(min(expected, 64 * low), low + self._stride_to(1 if expected <= low + 1 else 0)) if expected else 2 * low
        middle = (low + high) // 2 if high < 4 * low or low == 0 else isqrt(low * high)
        if not self.answers(high):  # nothing is known of its memory
            return low + 1 if expected <= low + 1 else min(expected, middle)
        if low < expected < high:
            self._stride_to(0)
            # Closing in from one side alone may take long.
            return expected if self._is_halved(low, high) else middle
        side = 1 if expected <= low else -1
        stride = self._stride_to(side)
        return min(low + stride, middle) if side > 0 else max(high - stride, middle, low + 1)

    def _stride_to(self, side: int) -> int:
        """How far to go beside what was expected: twice as far each time."""
        self._stride = 2 * self._stride if side != 0 and side == self._last_side else 1
        self._last_side = side
        return self._stride

    def _is_halved(self, low: int, high: int) -> bool:
        """Whether the last trial, or the one before, halved what is left."""
        self._widths.append(high - low)
        return len(self._widths) < 3 or 2 * self._widths[-1] <= self._widths[-3]

    def _expected(self) -> int:
        """0: not known."""
        answered = [number for number in self.tried if self.answers(number)]
        over = [number for number in answered if self.tried[number].allocated > self._capacity]
        under = [number for number in answered if self.tried[number].allocated <= self._capacity]
        nearest = [max(under), min(over)] if under and over else sorted(
            answered, key=lambda number: abs(self.tried[number].allocated - self._capacity)
        )[:2]
        if not nearest:
            return 0
        if len(nearest) == 1:
            return nearest[0] * self._capacity // max(self.tried[nearest[0]].allocated, 1)
        first, second = sorted(nearest)
        bytes_each = (self.tried[second].allocated - self.tried[first].allocated) / (second - first)
        if bytes_each <= 0:
            return 0
        return int(first + (self._capacity - self.tried[first].allocated) / bytes_each)


def find_edge(
    run: Callable[[int], Outcome], capacity: int, given: int | None, outcome: Outcome, multiple: int = 1
) -> Edge:
    """`outcome` is that of the script as it is `given`; where that number is not known, or is no multiple of `multiple`, of which
    all others are, the search begins with the least."""
    times = given // multiple if given is not None and given % multiple == 0 else None
    edge = _find_edge(lambda count: run(count * multiple), capacity, times, outcome)
    return dataclasses.replace(edge, largest=edge.largest * multiple, same_from=edge.same_from * multiple, multiple=multiple)


def _find_edge(run: Callable[[int], Outcome], capacity: int, given: int | None, outcome: Outcome) -> Edge:
    search = _Search(run, capacity)
    if given is None:
        search.try_(1)
        if search.tried[1].failed:
            return Edge(0, None, search.tried[1], is_refused=True)
    else:
        search.add(given, outcome)
    while True:
        low, high = search.bracket()
        if high is not None and high - low == 1:
            refused = not search.answers(high)
            return Edge(low, search.tried.get(low), search.tried[high], is_refused=refused)
        if high is None and (same := search.same_from()):
            return Edge(low, search.tried[low], None, same_from=same)
        if len(search.tried) == _MOST_TRIALS:
            return Edge(low, search.tried.get(low), None)
        search.try_(search.next_number(low, high))
