"""Importing, comparing, checking, merging and estimating: what `memprof import`, `compare`, `waterfall`, `check`, `merge` and
`estimate` do."""

from __future__ import annotations

import os

from ._core import (
    CheckReport,
    Comparison,
    DecoderModel,
    Error,
    FitAnswer,
    MergedRanks,
    Profile,
    RunBaseline,
    ShapeEstimate,
    Trace,
    TrainingEstimate,
    TrainingSetup,
    Waterfall,
    _all_numbers,
    _baseline,
    _check,
    _compare,
    _decoder,
    _estimate,
    _estimate_step,
    _find_fit,
    _import_recording,
    _merge,
    _open_recording,
    _parse_byte_size,
    _rank_files,
    _waterfall,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal, TypeAlias, Union

    Path: TypeAlias = Union[str, "os.PathLike[str]"]
    Recording: TypeAlias = Union[Profile, Trace, Path]
    Size: TypeAlias = Union[int, str]
    Subject: TypeAlias = Literal["space", "segment", "operation"]
    ImportFormat: TypeAlias = Literal["auto", "torch-snapshot", "rmm", "heaptrack", "xplane", "tt-mlir", "ttnn-graph", "session"]
    Frames: TypeAlias = Literal["own", "all"]


def _opened(recording: Recording) -> Profile | Trace:
    return recording if isinstance(recording, (Profile, Trace)) else _open_recording(recording)


def _all_opened(side: Recording | Iterable[Recording]) -> list[Profile | Trace]:
    if isinstance(side, (Profile, Trace, str, os.PathLike)):
        return [_opened(side)]
    return [_opened(each) for each in side]


def _bytes(size: Size) -> int:
    return _parse_byte_size(size) if isinstance(size, str) else size


def import_recording(
    path: str | os.PathLike[str],
    format: ImportFormat = "auto",
    *,
    frames: Frames | None = None,
    module: str = "",
    classes: str | os.PathLike[str] = "",
    per_core: bool = False,
    operations: int = 0,
    keep_damaged: bool = False,
) -> Trace:
    """The recording of another tool as a trace: the same as `memprof import FORMAT FILE` writes (docs/formats.md).

    `format` is 'torch-snapshot' (PyTorch's `_dump_snapshot`, pickle or JSON), 'rmm' (CSV of its logging adaptor), 'heaptrack' (packed or
    not), 'xplane' (XLA profile, *.xplane.pb or *.hlo_proto.pb), 'tt-mlir' (log of its runtime), 'ttnn-graph' (JSON of GraphProcessor),
    'session' (JSON of pie's memory profiler), or 'auto': by the content. `frames`, for 'heaptrack' and 'torch-snapshot': which frames of
    stacks become operations; `module` and `classes`, for 'xplane': the one program to read, and a file of rules; `per_core`, for
    'ttnn-graph'. `operations` is how many have a row of their own in the profile; 0: as many as the program keeps.

    What there is to remark about a recording is warned about. One that is damaged raises `Error`, which says where; with `keep_damaged`,
    it is a warning, and the trace, whose profile is not exact, has all before the damage. The trace is in memory.
    """
    trace, remarks = _import_recording(path, format, frames or "", module, os.fspath(classes), per_core, operations, keep_damaged)
    if remarks:
        import warnings
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    return trace


def compare(
    before: Recording | Iterable[Recording],
    after: Recording | Iterable[Recording],
    *,
    space: str = "",
    segment: str = "",
    at_end: bool = False,
    any_program: bool = False,
) -> Comparison:
    """By how much the peaks of two runs differ, and whose bytes make the difference (docs/compare.md).

    A side is a profile, a trace or the path of one, or several of them: then the runs with the median peak are compared. `space`: by default
    the one with the greatest peak before; `segment`: the greatest peaks in the segments of that name; `at_end`: what is live at the end.
    """
    if segment and at_end:
        raise ValueError("segment and at_end are two moments; give one")
    return _compare(_all_opened(before), _all_opened(after), space, segment, at_end, any_program)


def waterfall(
    runs: Sequence[Recording | TrainingEstimate] | Mapping[str, Recording | TrainingEstimate],
    *,
    parts: Mapping[str, str] = {},
    space: str = "",
) -> Waterfall:
    """Two or three accounts of one step side by side, with every byte by which their peaks differ (docs/estimate.md).

    `runs` are an estimate (`estimate_step(..., trace=True)`), a run without dispatch and a real one, or two of them, in the order of the
    columns; a mapping gives the columns their titles. `parts` assigns operations to a part: `{"encoder/*/attn/**": "attention"}`.
    `space` is the memory space of the runs, by default the one with the greatest peak.
    """
    from collections.abc import Mapping  # typing's costs an import

    titles, given = (list(runs), list(runs.values())) if isinstance(runs, Mapping) else ([""] * len(runs), list(runs))
    estimates = [isinstance(run, TrainingEstimate) for run in given]
    if any(estimates[1:]):
        raise ValueError("an estimate is the first column of a waterfall")
    if estimates[:1] == [True] and not titles[0]:
        titles[0] = "estimate"
    opened = [run.trace if isinstance(run, TrainingEstimate) else _opened(run) for run in given]
    return _waterfall(opened, titles, estimates[:1] == [True], list(parts.items()), space)


def baseline(run: Recording) -> RunBaseline:
    """The few numbers of a run to commit: `baseline(run).json()` is the file that `memprof check --write-baseline` writes."""
    return _baseline(_opened(run))


def _opened_baseline(given: Recording | RunBaseline) -> RunBaseline:
    if isinstance(given, RunBaseline):
        return given
    if not isinstance(given, (Profile, Trace)):
        with open(given, "rb") as file:
            begin = file.read(1024)
            if b"memprof-baseline" in begin:
                return RunBaseline.from_json((begin + file.read()).decode("utf-8", "replace"), os.fspath(given))
    return _all_numbers(_opened(given))


def _limit(named: str, size: Size) -> tuple[str, str, int]:
    subject, colon, name = named.partition(":")
    if not colon or not name or subject not in ("space", "segment", "operation"):
        raise ValueError(f"{named!r} is no limit: write 'space:NAME', 'segment:NAME' or 'operation:PATH'")
    return subject, name, _bytes(size)


def check(
    run: Recording,
    *,
    peak_at_most: Size | None = None,
    grow_at_most: Size | None = None,
    limits: Mapping[str, Size] = {},
    baseline: Recording | RunBaseline | None = None,
    tolerance: str = "",
    each: Sequence[Subject] = ("space",),
    any_program: bool = False,
    space: str = "",
) -> CheckReport:
    """Whether a run keeps within limits and close to a baseline, and who brought it over (docs/check.md). True if it does.

    `peak_at_most` limits the peak of every memory space, `grow_at_most` what is live more after every step, `limits` the peaks of what its
    keys name: `{"segment:FORWARD_PASS": "8 GiB", "operation:model/h.*": 1 << 30}`. Sizes are bytes or texts such as "24 GiB". `tolerance`
    is by how much the baseline's peaks may be exceeded: "1%", "16MiB".
    """
    asked = [] if peak_at_most is None else [("space", "", _bytes(peak_at_most))]
    asked += [_limit(name, size) for name, size in limits.items()]
    growth = None if grow_at_most is None else _bytes(grow_at_most)
    if not asked and growth is None and baseline is None:
        raise Error("there is nothing to check: give peak_at_most, grow_at_most, limits or a baseline")
    if baseline is None and tolerance:
        raise Error("a tolerance needs a baseline to compare with")
    numbers = None if baseline is None else _opened_baseline(baseline)
    file = os.fspath(baseline) if isinstance(baseline, (str, os.PathLike)) else ""
    return _check(_opened(run), asked, growth, numbers, file, tolerance, list(each), any_program, space)


def merge(ranks: Path | Iterable[Recording], *, space: str = "") -> MergedRanks:
    """Which ranks of a job need more memory than the others, and which operations it is in (docs/merge.md).

    `ranks` is the folder into which they wrote, or their recordings. `space`, such as "cuda:0", stands for every space of its kind.
    """
    given = [ranks] if isinstance(ranks, (str, os.PathLike)) else list(ranks)
    recordings = [each for each in given if isinstance(each, (Profile, Trace))]
    names = [f"recording {index}" for index in range(len(recordings))]
    unreadable: list[tuple[int, str, str]] = []
    paths = [os.fspath(each) for each in given if not isinstance(each, (Profile, Trace))]
    files = _rank_files(paths) if paths else []
    for path, trace, rank, is_leftover in files:
        if is_leftover:
            unreadable.append((rank, path, f"it was ended while it wrote '{path}'"))
            continue
        try:
            path, opened = _opened_rank(path, trace)
        except Error:
            if len(files) == 1:
                raise
            unreadable.append((rank, path, f"'{path}' cannot be read"))
            continue
        recordings.append(opened)
        names.append(path)
    return _merge(recordings, names, unreadable, space)


def _opened_rank(path: str, trace: str) -> tuple[str, Profile | Trace]:
    """A rank's profile, or, if that is missing, damaged or not complete, its trace."""
    if not trace:
        return path, _open_recording(path)
    try:
        profile = _open_recording(path)
        if isinstance(profile, Profile) and profile.complete:
            return path, profile
    except Error:
        pass  # the trace says more, or why it does not
    return trace, _open_recording(trace)


def decoder(name: Path) -> DecoderModel:
    """The published decoder of that name (`memprof.published_decoders`), or that of a config.json or run_config.json."""
    return _decoder(os.fspath(name))[0]


def _decoder_and_sequence(given: DecoderModel | Path) -> tuple[DecoderModel, int]:
    return (given, 0) if isinstance(given, DecoderModel) else _decoder(os.fspath(given))


def estimate(decoder: DecoderModel | Path, *, batch_size: int = 1, seq_len: int | None = None) -> ShapeEstimate:
    """What the forward pass of a decoder keeps for its backward pass, from its dimensions alone (docs/estimate.md).

    `decoder` is one of `memprof.published_decoders`, a config.json, or dimensions. `seq_len`: by default the one it was made for.
    """
    model, longest = _decoder_and_sequence(decoder)
    if seq_len is None and longest == 0:
        raise Error("the decoder does not say how long its sequences are: give seq_len")
    return _estimate(model, batch_size, longest if seq_len is None else seq_len)


def estimate_step(decoder: DecoderModel | Path, setup: TrainingSetup | None = None, *, trace: bool = False) -> TrainingEstimate:
    """What one device holds during a training step of a decoder, by phase and operation, and whether it fits (docs/estimate.md)."""
    return _estimate_step(_decoder_and_sequence(decoder)[0], TrainingSetup() if setup is None else setup, trace)


def find_fit(decoder: DecoderModel | Path, setup: TrainingSetup, sought: Literal["batch_size", "seq_len"] = "batch_size") -> FitAnswer:
    """The greatest batch, or the longest sequence, at which a step fits the device of `setup`; some 40 estimates."""
    model, longest = _decoder_and_sequence(decoder)
    return _find_fit(model, setup, sought, longest if sought == "seq_len" else 0)
