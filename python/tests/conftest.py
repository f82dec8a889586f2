from __future__ import annotations

from collections.abc import Iterator

import memprof
import pytest


@pytest.fixture(autouse=True)
def no_capture_is_left() -> Iterator[None]:
    yield
    memprof.discard_capture()


@pytest.fixture
def recorded() -> memprof.Capture:
    """Two phases of a space of its own: 1,000 bytes of parameters stay, 500 come and go within an operation."""
    memory = memprof.MemorySpace("dram")
    with memprof.capture(trace=True) as capture:
        memory.allocate(0x1000, 1000, "parameter")
        memprof.annotate(0x1000, name="weight", shape="[250]", dtype="float32")
        memprof.snapshot("MODEL_CREATION")
        with memprof.track_operation("forward"):
            memory.allocate(0x2000, 500)
            memory.deallocate(0x2000)
        memprof.snapshot("FORWARD_PASS")
    return capture
