"""What the command line analyses, from Python: the same numbers as the program's own JSON."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import memprof
import pytest


def steps(forward: int = 500, leaked: int = 64, count: int = 10) -> memprof.Capture:
    """1,000 bytes of parameters; in each step `forward` bytes come and go, and `leaked` stay."""
    memory = memprof.MemorySpace("dram")
    with memprof.capture(trace=True) as capture:
        memory.allocate(0x1000, 1000, "parameter")
        for step in range(count):
            with memprof.track_operation("forward"):
                memory.allocate(0x8000, forward)
                memory.deallocate(0x8000)
            with memprof.track_operation("cache"):
                if leaked:
                    memory.allocate(0x100000 + step * 0x1000, leaked)
            memprof.snapshot("STEP")
    return capture


def program(*arguments: object) -> Any:
    """The JSON that the command line writes."""
    done = subprocess.run([sys.executable, "-m", "memprof", *map(str, arguments), "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def saved(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "run.memtrace"
    steps().trace.save(path)
    return path


def test_leaks_name_who_grows_by_how_much(saved: pathlib.Path) -> None:
    report = memprof.Trace(saved).leaks()
    (owner,) = report.growing
    assert (owner.operation, owner.trend.kind, owner.trend.per_step, owner.blocks) == ("cache", "grows", 64.0, 10)
    assert (report.segment, report.steps, report.is_long_enough()) == ("STEP", 10, True)
    assert [(space.name, space.per_step, space.last) for space in report.spaces] == [("dram", 64.0, 1640)]
    assert json.loads(report.json()) == program("leaks", saved)
    assert report.text() == str(report) and "64 B per step" in report.verdict()
    assert "1 more step" in report.text(more_steps=1)


def test_a_run_that_frees_has_no_leak() -> None:
    assert steps(leaked=0).trace.leaks().growing == []


def test_nothing_has_no_leaks() -> None:
    with memprof.capture(trace=True) as capture:
        pass
    with pytest.raises(memprof.Error, match="nothing was recorded"):
        capture.trace.leaks()


def test_a_comparison_adds_up_to_the_difference(tmp_path: pathlib.Path) -> None:
    before, after = steps(500), steps(800)
    # Both peak in the forward pass of the last step: 1,000 of parameters, nine leaks and the forward pass.
    assert before.profile.space("dram").cumulative_peak == 1000 + 9 * 64 + 500
    for sides in ((before.trace, after.trace), (before.profile, after.profile), (before.trace, after.profile)):
        found = memprof.compare(*sides)
        assert (found.before.bytes, found.after.bytes, found.change(), found.is_equal()) == (2076, 2376, 300, False)
        assert found.operations[0].owner == "forward" and found.operations[0].after - found.operations[0].before == 300
        assert sum(row.after - row.before for row in found.operations) == 300
    before.trace.save(tmp_path / "before.memtrace")
    after.trace.save(tmp_path / "after.memtrace")
    of_files = memprof.compare(tmp_path / "before.memtrace", tmp_path / "after.memtrace")
    whole = json.loads(of_files.json())
    for key, value in program("compare", tmp_path / "before.memtrace", tmp_path / "after.memtrace").items():
        if key != "left_out" and not isinstance(value, (dict, list)):
            assert whole[key] == value, key
    of_files.write_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert "+300 B" in of_files.markdown()


def test_several_runs_a_side_are_compared_by_their_medians() -> None:
    found = memprof.compare([steps(size).profile for size in (500, 510, 520)], [steps(size).profile for size in (700, 710, 720)])
    assert (found.runs_before.runs, found.runs_before.median, found.runs_after.median) == (3, 1576 + 510, 1576 + 710)
    assert found.change() == 200


def test_a_comparison_is_at_the_end_or_in_a_segment_if_asked() -> None:
    before, after = steps(leaked=64), steps(leaked=100)
    assert memprof.compare(before.trace, after.trace, at_end=True).change() == 10 * 36
    assert memprof.compare(before.trace, after.trace, segment="STEP").before.segment == "STEP"
    with pytest.raises(ValueError, match="two moments"):
        memprof.compare(before.trace, after.trace, segment="STEP", at_end=True)
    with pytest.raises(memprof.Error, match="STEPS"):
        memprof.compare(before.trace, after.trace, segment="STEPS")


def test_what_cannot_be_compared_is_refused(tmp_path: pathlib.Path) -> None:
    other = memprof.MemorySpace("l1")
    with memprof.capture() as capture:
        with memprof.track_operation("another"):
            other.allocate(0x1000, 10)
        memprof.snapshot("OTHER")
    with pytest.raises(memprof.Error, match="dram"):
        memprof.compare(steps().profile, capture.profile)
    with pytest.raises(TypeError, match="Profile"):
        memprof._core._compare([3], [4], "", "", False, False)
    with pytest.raises(memprof.Error, match="absent"):
        memprof.compare(tmp_path / "absent", capture.profile)
    with pytest.raises(memprof.Error, match="no recording"):
        memprof.compare([], [capture.profile])


def test_different_programs_are_compared_only_if_asked() -> None:
    memory = memprof.MemorySpace("dram")
    with memprof.capture() as capture:
        with memprof.track_operation("another"):
            memory.allocate(0x1000, 10)
        memprof.snapshot("OTHER")
    with pytest.raises(memprof.Error, match="any_program=True"):
        memprof.compare(steps().profile, capture.profile)
    assert memprof.compare(steps().profile, capture.profile, any_program=True).change() == 10 - 2076


def test_a_check_says_which_limit_by_how_much(saved: pathlib.Path) -> None:
    run = memprof.Trace(saved)
    assert memprof.check(run, peak_at_most=2076, grow_at_most="64")
    report = memprof.check(run, peak_at_most="1.5 KiB", grow_at_most=0, limits={"operation:forward": 400, "segment:STEP": 4096})
    assert not report and not report.has_passed() and report.failures() == 3
    over = {(each.reason, each.subject): each.over() for each in report.conditions}
    assert over[("limit", "space")] == 2076 - 1536 and over[("limit", "operation")] == 100 and over[("growth", "space")] == 64
    assert over[("limit", "segment")] < 0
    assert json.loads(report.json())["conditions"] == (
        program("check", saved, "--peak-at-most", "1536", "--grow-at-most", 0, "--limit", "operation:forward=400", "--limit", "segment:STEP=4096")
    )["conditions"]
    assert "<testsuite" in report.junit() and report.annotations("github").startswith("::error ")
    assert isinstance(json.loads(report.annotations("gitlab")), list) and "failed" in report.markdown()


def test_a_check_compares_with_a_baseline_in_any_form(tmp_path: pathlib.Path) -> None:
    before = steps(500)
    numbers = memprof.baseline(before.trace)
    assert memprof.RunBaseline.from_json(numbers.json()) == numbers != memprof.baseline(steps(501).trace)
    (tmp_path / "baseline.json").write_text(numbers.json())
    before.trace.save(tmp_path / "before.memtrace")
    grown = steps(600).profile
    for baseline in (before.trace, before.profile, numbers, tmp_path / "baseline.json", tmp_path / "before.memtrace"):
        report = memprof.check(grown, baseline=baseline)
        assert not report and report.conditions[0].before == 2076 and report.conditions[0].over() == 100
        assert memprof.check(grown, baseline=baseline, tolerance="100")
    each = memprof.check(grown, baseline=numbers, each=["segment", "operation"])
    assert {condition.subject for condition in each.conditions} == {"segment", "operation"}


def test_a_baseline_is_the_programs_file(saved: pathlib.Path, tmp_path: pathlib.Path) -> None:
    subprocess.run([sys.executable, "-m", "memprof", "check", str(saved), "--write-baseline", str(tmp_path / "b.json")], check=True)
    assert memprof.baseline(saved).json() == (tmp_path / "b.json").read_text()


def test_a_check_without_a_condition_is_refused() -> None:
    run = steps().profile
    with pytest.raises(memprof.Error, match="nothing to check"):
        memprof.check(run)
    with pytest.raises(memprof.Error, match="baseline"):
        memprof.check(run, peak_at_most=1, tolerance="1%")
    with pytest.raises(ValueError, match="segment:NAME"):
        memprof.check(run, limits={"STEP": 1})
    with pytest.raises(memprof.Error, match="forwards"):
        memprof.check(run, limits={"operation:forwards": 1})


def test_what_if_replays_the_run_with_the_change(saved: pathlib.Path) -> None:
    run = memprof.Trace(saved)
    gone = run.what_if(without=["forward"])
    assert (gone.before.bytes, gone.after.bytes, gone.saved()) == (2076, 1640, 436)
    assert json.loads(gone.json()) == program("what-if", saved, "--without", "forward")
    assert run.what_if(categories=["parameter"]).saved() == 1000
    ranking = run.rank_owners()
    assert {owner.owner: owner.peak for owner in ranking.owners}["cache"] == 1500
    assert json.loads(ranking.json()) == program("what-if", saved, "--rank")
    target = run.find_target(1700)
    assert (target.new_peak, [owner.owner for owner in target.owners]) == (1640, ["forward"])
    with pytest.raises(memprof.Error, match="cannot be below"):
        run.find_target(10)
    with pytest.raises(memprof.Error, match="forwards"):
        run.what_if(without=["forwards"])
    with pytest.raises(ValueError, match="parameters"):
        run.what_if(categories=["parameters"])
    with pytest.raises(memprof.Error, match="batch"):
        run.what_if(batch_run=run)


def test_what_if_retypes_and_scales() -> None:
    memory = memprof.MemorySpace("dram")

    def batch(samples: int) -> memprof.Trace:
        with memprof.capture(trace=True) as capture:
            memory.allocate(0x1000, 4000, "parameter")
            memprof.annotate(0x1000, name="weight", shape="[1000]", dtype="float32")
            with memprof.track_operation("forward"):
                memory.allocate(0x8000, samples * 400, "activation")
                memprof.annotate(0x8000, name="x", shape=f"[{samples}, 100]", dtype="float32")
        return capture.trace

    run = batch(8)
    assert run.what_if(dtypes={"forward": "bf16"}).after.bytes == 4000 + 8 * 200
    assert run.what_if(batch=2, batch_size=8).after.bytes == 4000 + 16 * 400
    assert run.what_if(batch=3, batch_run=batch(16)).after.bytes == 4000 + 24 * 400


def test_ranks_are_merged_from_a_folder_or_from_objects(tmp_path: pathlib.Path) -> None:
    for rank, size in enumerate((500, 500, 500, 900)):
        steps(size).profile.save(tmp_path / f"run_rank{rank}.json")
    (tmp_path / "damaged_rank9.json").write_text('{"format": "memprof-profile", ')
    merged = memprof.merge(tmp_path)
    assert (merged.ranks, merged.median, merged.greatest, merged.sum) == (4, 2076, 2476, 4 * 2076 + 400)
    (finding,) = merged.findings
    assert finding.stands_out and finding.change == 400
    assert finding.difference is not None and finding.difference.operations[0].owner == "forward"
    assert merged.unfinished_count == 1 and merged.mean() == 2176
    again = memprof.merge([memprof.read(file) for file in sorted(tmp_path.glob("run_*"))])
    assert (again.median, again.greatest, again.findings[0].change) == (2076, 2476, 400)
    assert json.loads(merged.json())["format"] == "memprof-merge" and "rank" in merged.markdown()
    with pytest.raises(memprof.Error, match="no recording"):
        memprof.merge([])
    with pytest.raises(memprof.Error, match="absent"):
        memprof.merge(tmp_path / "absent")


def test_a_forward_pass_is_estimated_as_the_program_does() -> None:
    estimate = memprof.estimate("gpt2-124m", batch_size=2, seq_len=512)
    forward = program("estimate", "--config", "gpt2-124m", "--batch-size", 2, "--seq-len", 512)["forward"]
    assert sum(bucket.fp32_bytes for bucket in estimate.buckets) == forward["fp32_bytes"]
    assert sum(operation.total.fp32_bytes for operation in estimate.operations) == forward["fp32_bytes"]
    assert "in bf16" in estimate.verdict() and json.loads(estimate.json())["bucket_totals"]
    assert memprof.estimate("gpt2-124m") == memprof.estimate(memprof.decoder("gpt2-124m"), seq_len=1024)
    assert memprof.decoder("gpt2-124m").parameters(1024) == 124_439_808  # Radford et al., 2019, as published
    with pytest.raises(memprof.Error, match="seq_len"):
        memprof.estimate(memprof.DecoderModel())
    with pytest.raises(memprof.Error, match="llama-7b"):
        memprof.estimate("gpt5")
    assert "llama-7b" in memprof.published_decoders


def test_a_step_is_estimated_with_its_profile_and_its_trace() -> None:
    setup = memprof.TrainingSetup(batch_size=2, seq_len=256, optimizer="sgd", device="gpu-24gb")
    step = memprof.estimate_step("gpt2-124m", setup, trace=True)
    assert step.fits is True and step.parameters == 124_439_808 - 768 * (1024 - 256)  # learned positions for 256 only
    assert step.trace.profile().space("cuda:0").cumulative_peak == step.peak == step.profile.space("cuda:0").cumulative_peak
    known = program("estimate", "--config", "gpt2-124m", "--batch-size", 2, "--seq-len", 256, "--step", "--optimizer", "sgd", "--device", "gpu-24gb")
    assert step.peak == max(phase["peak_bytes"] for phase in known["step"]["phases"])
    # Parameters and gradients in float32, and something of the forward pass.
    assert step.peak > 2 * 4 * step.parameters
    assert memprof.estimate_step("gpt2-124m").fits is None
    with pytest.raises(memprof.Error, match="trace=True"):
        memprof.estimate_step("gpt2-124m").trace


def test_the_greatest_batch_is_found_by_its_edge() -> None:
    setup = memprof.TrainingSetup(seq_len=256, device="gpu-24gb")
    found = memprof.find_fit("gpt2-124m", setup)
    assert found.need.fits and found.one_more is not None and not found.one_more.fits
    largest = memprof.TrainingSetup(batch_size=found.size, seq_len=256, device="gpu-24gb")
    assert memprof.estimate_step("gpt2-124m", largest).peak == found.need.peak
    with pytest.raises(ValueError, match="batch_size"):
        memprof.find_fit("gpt2-124m", setup, "batch")  # type: ignore[arg-type]


def test_a_setup_takes_its_fields_by_name_and_refuses_others() -> None:
    setup = memprof.TrainingSetup(type="bf16", state_type="fp32", parallel=memprof.ParallelDegrees(tensor=2), device="gpu-80gb")
    assert (setup.type, setup.gradient_type, setup.state_type) == ("bf16", None, "fp32")
    assert (setup.parallel.tensor, setup.parallel.pipeline, setup.device, setup.seq_len) == (2, 1, "gpu-80gb", 1024)
    assert setup != memprof.TrainingSetup() == memprof.TrainingSetup()
    for wrong, message in (({"dtype": "bf16"}, "only the fields"), ({"batch_size": "2"}, "batch_size"), ({"parallel": 2}, "ParallelDegrees")):
        with pytest.raises(TypeError, match=message):
            memprof.TrainingSetup(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'fp64'"):
        memprof.TrainingSetup(type="fp64")  # type: ignore[arg-type]
    with pytest.raises(memprof.Error, match="gpu-80gb"):
        memprof.TrainingSetup(device="gpu-80")


def test_fields_are_those_of_the_header() -> None:
    """They come from the compiler; the names of one struct, as `toolkit/analysis/leaks.hpp` declares them."""
    fields = [name for name, value in vars(memprof.LeakReport).items() if isinstance(value, property)]
    assert fields == [
        "segment", "missing_steps", "steps", "exact", "is_by_count", "growing", "levelled", "unclear", "spaces", "remarks",
    ]  # fmt: skip
