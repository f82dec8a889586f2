from __future__ import annotations

import importlib.util
import pathlib
import re
from typing import Any

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


def test_the_programs_of_the_page_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, Any] = {}
    for block in blocks:
        needs = [name for name in ("torch", "wandb", "mlflow") if f"import {name}\n" in block]
        if needs in ([], ["torch"]) and all(map(importlib.util.find_spec, needs)):  # the loggers have a test of their own
            exec(block, names)
    for file in ("profile.json", "run.memtrace", "run.html", "run.perfetto"):
        assert (tmp_path / file).stat().st_size > 0
