"""What the package takes as a wheel: its files, as zip archives pack them."""

from __future__ import annotations

import importlib.metadata
import re
import zlib

import memprof
import pytest

MOST = 6_000_000


def packed_sizes() -> dict[str, int]:
    """Of each installed file, as in the wheel: zlib's default, and the two headers that a zip archive has for a file."""
    files = importlib.metadata.files("memprof")
    if not files or not any(str(file).startswith("memprof/_core") for file in files):
        pytest.skip("the package was not installed from a wheel")
    sizes = {}
    for file in files:
        name = str(file)
        if "__pycache__" in name or name.startswith("..") or not file.locate().is_file():  # type: ignore[union-attr]
            continue
        sizes[name] = len(zlib.compress(file.read_binary(), 6)) + 30 + 46 + 2 * len(name)
    return sizes


def test_the_wheel_is_small() -> None:
    sizes = packed_sizes()
    parts = {part: sum(size for name, size in sizes.items() if re.match(part, name)) for part in ("memprof/_core", "memprof/bin/", "memprof/include/")}
    assert all(parts.values()), parts
    assert sum(sizes.values()) <= MOST, (parts, sum(sizes.values()))


def test_no_symbols_are_left_that_nobody_needs() -> None:
    with open(memprof._core.__file__ or "", "rb") as file:
        assert b".symtab" not in file.read()
