from __future__ import annotations

import array
import gc
import random
import subprocess
import sys
import threading

import memprof
import pytest


def test_segments_have_the_numbers_of_their_allocations(recorded: memprof.Capture) -> None:
    space = recorded.profile.space("dram")
    assert (space.cumulative_peak, space.cumulative_current) == (1500, 1000)
    assert space.peak_operation == "forward"
    changes = [(usage.segment, usage.segment_peak, usage.segment_change) for usage in space.segments]
    assert changes == [("MODEL_CREATION", 1000, 1000), ("FORWARD_PASS", 500, 0), ("END_TRACE", 0, 0)]
    assert [segment.name for segment in recorded.profile.segments] == ["MODEL_CREATION", "FORWARD_PASS", "END_TRACE"]


def test_a_block_has_its_annotation_and_category(recorded: memprof.Capture) -> None:
    live = recorded.profile.space("dram").live_at_peak
    blocks = {block.name: block for block in live.largest_blocks}
    weight = blocks["weight"]
    assert (weight.bytes, weight.category, weight.shape, weight.dtype) == (1000, "parameter", "[250]", "float32")


def test_the_capture_is_exact_and_complete(recorded: memprof.Capture) -> None:
    assert recorded.profile.exact and recorded.profile.complete and recorded.profile.mode == "normal"


def test_a_capture_ends_once_and_names_its_last_segment() -> None:
    capture = memprof.capture()
    assert capture.is_active and memprof.is_capturing()
    capture.snapshot("FIRST")
    capture.end("ITERATION_COMPLETE")
    capture.end("AGAIN")
    assert not capture.is_active and not memprof.is_capturing()
    assert [segment.name for segment in capture.profile.segments] == ["FIRST", "ITERATION_COMPLETE"]


def test_a_capture_ends_with_its_last_reference() -> None:
    capture = memprof.capture()
    del capture
    gc.collect()
    assert not memprof.is_capturing()


def test_a_capture_ends_when_its_block_raises() -> None:
    with pytest.raises(KeyError), memprof.capture():
        raise KeyError
    assert not memprof.is_capturing()


def test_a_second_capture_is_refused() -> None:
    with memprof.capture(), pytest.raises(memprof.Error, match="capture"):
        memprof.capture()


def test_the_profile_of_an_ended_capture_lasts() -> None:
    with memprof.capture() as first:
        memprof.MemorySpace("dram").allocate(0x1000, 10)
    with memprof.capture() as second:
        pass
    memprof.discard_capture()
    assert first.profile.space("dram").cumulative_peak == 10
    assert second.profile.spaces == []


def test_a_capture_that_others_ended_and_followed_has_no_profile() -> None:
    first = memprof.capture()
    memprof.end_capture("ENDED")
    assert first.profile.segments[0].name == "ENDED"
    with memprof.capture(), pytest.raises(memprof.Error, match="gone"):
        first.profile


def test_an_unknown_device_is_refused_by_name() -> None:
    with pytest.raises(memprof.Error, match="gpu-24gb"):
        memprof.capture(device="gpu-25gb")
    assert not memprof.is_capturing()


def test_a_device_limits_the_spaces_it_names() -> None:
    with memprof.capture(device="gpu-24gb") as capture:
        memprof.MemorySpace("cuda:0").allocate(0x1000, 512)
    assert capture.profile.device == "gpu-24gb"
    assert capture.profile.space("cuda:0").capacity == 24207 << 20


def test_marks_do_nothing_without_a_capture() -> None:
    memprof.snapshot("NOTHING")
    memprof.memory_checkpoint("nothing")
    memprof.annotate(0x1000, name="nothing")
    with memprof.track_operation("nothing"):
        memprof.MemorySpace("dram").allocate(0x1000, 1)
    assert memprof.current_profile().segments == []


def test_a_checkpoint_keeps_what_is_live() -> None:
    memory = memprof.MemorySpace("dram")
    with memprof.capture() as capture:
        memory.allocate(0x1000, 300)
        memprof.memory_checkpoint("after_model_load")
        memory.deallocate(0x1000)
    (checkpoint,) = capture.profile.checkpoints
    assert (checkpoint.name, checkpoint.live_bytes, checkpoint.live_blocks) == ("after_model_load", 300, 1)


def test_operations_nest_and_decorate_recursive_functions() -> None:
    memory = memprof.MemorySpace("dram")

    @memprof.track_operation("fold", category="temporary")
    def fold(depth: int) -> int:
        """Its own text."""
        memory.allocate(0x1000 * (depth + 1), 10)
        return depth if depth == 0 else fold(depth - 1)

    with memprof.capture() as capture:
        assert fold(2) == 0
    assert (fold.__name__, fold.__doc__) == ("fold", "Its own text.")
    assert [operation.path for operation in capture.profile.operations] == ["fold", "fold/fold", "fold/fold/fold"]
    outermost = capture.profile.find_operation("fold")
    assert outermost is not None
    assert [(usage.space, usage.allocated, usage.self_allocated) for usage in outermost.usage] == [("dram", 30, 10)]
    assert capture.profile.find_operation("unfold") is None
    (owned,) = capture.profile.space("dram").current_by_category
    assert (owned.owner, owned.bytes) == ("temporary", 30)


def test_one_operation_object_is_not_opened_twice() -> None:
    operation = memprof.track_operation("forward")
    with operation, pytest.raises(memprof.Error, match="forward"):
        operation.__enter__()
    with operation:
        pass


def test_an_unknown_category_is_refused() -> None:
    with pytest.raises(ValueError, match="kv_cache"):
        memprof.track_operation("forward", category="weights")  # type: ignore[arg-type]


def test_threads_record_into_one_capture() -> None:
    memory = memprof.MemorySpace("dram")

    def work(number: int) -> None:
        with memprof.track_operation(f"worker {number}"):
            for block in range(100):
                memory.allocate(0x100000 * (number + 1) + 0x100 * block, 16)

    with memprof.capture() as capture:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert capture.profile.space("dram").cumulative_current == 4 * 100 * 16
    assert sorted(operation.path for operation in capture.profile.operations) == [f"worker {number}" for number in range(4)]


def test_a_tracked_buffer_is_a_block_until_it_is_collected() -> None:
    with memprof.capture() as capture:
        values = memprof.track(array.array("d", [0.0] * 100), space="numbers", name="values", category="input")
        assert values[99] == 0.0
        assert capture.profile.space("numbers").cumulative_current == 100 * 8
        del values
    space = capture.profile.space("numbers")
    assert (space.cumulative_peak, space.cumulative_current) == (800, 0)
    assert space.anomalies.unmatched_frees.count == 0
    (block,) = space.live_at_peak.largest_blocks
    assert (block.name, block.category) == ("values", "input")


def test_a_tracked_array_of_numpy_brings_shape_and_dtype() -> None:
    numpy = pytest.importorskip("numpy")
    with memprof.capture() as capture:
        values = memprof.track(numpy.zeros((3, 5), dtype="float32", order="F"), space="numbers", name="values")
        (block,) = capture.profile.space("numbers").live_at_peak.largest_blocks
    assert (block.bytes, block.shape, block.dtype) == (values.nbytes, "[3, 5]", "float32")


def test_objects_without_a_buffer_are_not_tracked() -> None:
    with pytest.raises(TypeError):
        memprof.track({})


@pytest.mark.parametrize("values", [bytearray(1000), b"x" * 1000])
def test_what_cannot_be_referred_to_weakly_is_refused_and_its_view_is_tracked(values: bytes | bytearray) -> None:
    with memprof.capture() as capture:
        with pytest.raises(memprof.Error, match=f"'{type(values).__name__}'.*memoryview"):
            memprof.track(values)
        assert not capture.profile.spaces or capture.profile.space("cpu").allocations == 0
        view = memprof.track(memoryview(values))
        assert capture.profile.space("cpu").cumulative_current == 1000
        del view
        assert capture.profile.space("cpu").cumulative_current == 0


def test_a_view_of_a_tracked_object_adds_nothing() -> None:
    numpy = pytest.importorskip("numpy")
    with memprof.capture() as capture:
        values = memprof.track(numpy.zeros(100))
        views = [memprof.track(values[:50]), memprof.track(values[::-2]), memprof.track(values), memprof.track(memoryview(values)[10:20])]
        space = capture.profile.space("cpu")
        assert (space.cumulative_current, space.allocation_count) == (800, 1)
        del views
        assert capture.profile.space("cpu").cumulative_current == 800
        del values
    space = capture.profile.space("cpu")
    assert space.cumulative_current == 0 and capture.profile.exact
    assert space.anomalies.unmatched_frees.count == 0 and space.anomalies.replaced_allocations.count == 0


def test_an_object_takes_the_place_of_its_tracked_views() -> None:
    numpy = pytest.importorskip("numpy")
    with memprof.capture() as capture:
        values = numpy.zeros(100)
        first, other = memprof.track(values[:50]), memprof.track(values[60:])  # of 400 and 320 bytes
        assert capture.profile.space("cpu").cumulative_current == 720
        memprof.track(values)
        assert capture.profile.space("cpu").cumulative_current == 800
        del first, other
        assert capture.profile.space("cpu").cumulative_current == 800
        del values
    space = capture.profile.space("cpu")
    assert space.cumulative_current == 0 and space.anomalies.unmatched_frees.count == 0


def test_what_an_earlier_capture_tracked_counts_in_the_next() -> None:
    values = array.array("d", [0.0] * 100)
    with memprof.capture():
        memprof.track(values)
    with memprof.capture() as capture:
        memprof.track(values)
        assert capture.profile.space("cpu").cumulative_current == 800
        del values
    space = capture.profile.space("cpu")
    assert space.cumulative_current == 0 and space.anomalies.unmatched_frees.count == 0


def test_what_is_refused_is_not_tracked() -> None:
    values = array.array("d", [0.0] * 100)
    with memprof.capture() as capture:
        with pytest.raises(ValueError, match="unknown category 'weights'"):
            memprof.track(values, category="weights")  # type: ignore[arg-type]
        memprof.track(values)
        assert capture.profile.space("cpu").cumulative_current == 800


def test_numbers_that_are_no_addresses_or_sizes_are_named() -> None:
    memory = memprof.MemorySpace("dram")
    for call in (lambda: memory.allocate(-1, 5), lambda: memory.deallocate(-1), lambda: memprof.annotate(-1, name="weight")):
        with pytest.raises(ValueError, match=r"address=-1: expected 0 to 2\*\*64 - 1"):
            call()
    with pytest.raises(ValueError, match="nbytes=18446744073709551616: expected"):
        memory.allocate(0x1000, 1 << 64)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        memory.allocate("0x1000", 5)  # type: ignore[arg-type]


def test_a_trace_needs_asking_for_and_an_end() -> None:
    with memprof.capture() as without:
        pass
    with pytest.raises(memprof.Error, match="trace=True"):
        without.trace
    with memprof.capture(trace=True) as capture:
        with pytest.raises(memprof.Error, match="ended"):
            capture.trace
    assert len(capture.trace.table("events")) > 0


def test_print_memory_usage_prints_the_summary(recorded: memprof.Capture, capsys: pytest.CaptureFixture[str]) -> None:
    memprof.print_memory_usage()
    assert capsys.readouterr().out == recorded.profile.text()


def test_a_forked_child_and_its_parent_both_end_well() -> None:
    program = (
        "import memprof, os\n"
        "memory = memprof.MemorySpace('dram')\n"
        "with memprof.capture() as capture:\n"
        "    memory.allocate(0x1000, 10)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        memory.allocate(0x2000, 10)\n"
        "        memprof.snapshot('CHILD')\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "print(capture.profile.space('dram').cumulative_peak)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "10\n"


def test_importing_takes_nothing_but_the_package_with_it() -> None:
    program = f"import sys; sys.path[:] = {sys.path!r}; had = set(sys.modules); import memprof; print(*sorted({{*sys.modules}} - had))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    # Its own modules are few, and `atexit` is in the interpreter: it takes some milliseconds, most of them to load _core.
    own = ["memprof", "memprof._analyses", "memprof._capture", "memprof._core", "memprof._notebook"]
    assert [name for name in done.stdout.split() if name not in ("__future__", "atexit")] == own


def test_importing_takes_no_large_module_with_it() -> None:
    program = f"import sys; sys.path[:] = {sys.path!r}; import memprof; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", program], check=True, capture_output=True, text=True)
    large = {"collections", "functools", "json", "numpy", "pandas", "pathlib", "re", "torch", "typing"}
    assert "memprof._core" in done.stdout.split() and not large & set(done.stdout.split())


def test_random_views_of_one_object_count_as_a_model_says() -> None:
    """Each view that no other covers counts, and ends where its array does, or where one that covers it is tracked."""
    numbers, memory = random.Random(2026), bytearray(5000)
    alive: dict[tuple[int, int], memoryview] = {}
    counted: set[tuple[int, int]] = set()
    with memprof.capture(torch=False) as capture:
        for step in range(3000):
            begin, length = numbers.randrange(4000), numbers.randrange(1, 1000 if step % 2 else 5)
            made = (begin, begin + length)
            if made not in alive:
                alive[made] = memprof.track(memoryview(memory)[slice(*made)])
                if not any(other[0] <= made[0] and made[1] <= other[1] for other in counted):
                    counted = {other for other in counted if not (made[0] <= other[0] and other[1] <= made[1])} | {made}
            gone = numbers.choice(list(alive))
            if numbers.random() < 0.7:
                del alive[gone]
                counted.discard(gone)
            if step % 500 == 0:
                memprof.memory_checkpoint(str(sum(end - begin for begin, end in counted)))
    checkpoints = capture.profile.checkpoints
    assert len(checkpoints) == 6 and [str(each.live_bytes) for each in checkpoints] == [each.name for each in checkpoints]
    assert capture.profile.exact
