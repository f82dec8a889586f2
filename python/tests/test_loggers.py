"""The lines of the page for W&B and MLflow, each without a network; skipped where the package is not installed."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import memprof
import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


def program_of(package: str) -> str:
    (found,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if f"import {package}\n" in block]
    return str(found)


@pytest.fixture
def names(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A run with a page, and a space whose name has a colon."""
    monkeypatch.chdir(tmp_path)
    with memprof.capture(trace=True) as capture:
        memprof.MemorySpace("cuda:0").allocate(0x1000, 3000)
        memprof.snapshot("FORWARD_PASS")
    capture.trace.write_html("run.html")
    return {"capture": capture}


def test_wandb_has_the_numbers_and_the_page(names: dict[str, Any], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    exec(program_of("wandb"), names)
    (record,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")  # what `wandb sync` sends: keys and JSON values, as protobuf
    assert re.search(rb"memory/cuda:0.{1,3}3000\b", record.read_bytes(), re.DOTALL)
    (page,) = tmp_path.glob("wandb/offline-run-*/files/media/html/memory/page_*.html")
    assert page.read_text() == (tmp_path / "run.html").read_text()


def test_mlflow_has_the_numbers_and_the_page(names: dict[str, Any], tmp_path: pathlib.Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    exec(program_of("mlflow"), names)
    number = names["logged"].info.run_id
    assert mlflow.get_run(number).data.metrics == {"memory/cuda:0": 3000.0}
    saved = mlflow.artifacts.download_artifacts(run_id=number, artifact_path="run.html", dst_path=str(tmp_path / "saved"))
    assert pathlib.Path(saved).read_text() == (tmp_path / "run.html").read_text()
