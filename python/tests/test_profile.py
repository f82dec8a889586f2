from __future__ import annotations

import copy
import json
import pathlib
import pickle
from typing import Any

import memprof
import pytest


def assert_same(value: Any, document: Any) -> None:
    """Requires that an object has what its JSON document has, and nothing else."""
    if isinstance(document, dict) and not isinstance(value, dict):
        fields = [name for name, field in vars(type(value)).items() if isinstance(field, property)]
        assert set(fields) == set(document)
        for name in fields:
            assert_same(getattr(value, name), document[name])
    elif isinstance(document, dict):
        assert value == document
    elif isinstance(document, list):
        assert len(value) == len(document)
        for element, expected in zip(value, document):
            assert_same(element, expected)
    else:
        assert value == ("" if document is None else document)


def test_every_field_of_the_json_is_an_attribute(recorded: memprof.Capture) -> None:
    document = json.loads(recorded.profile.json())
    assert (document.pop("format"), document.pop("version")) == ("memprof-profile", 2)
    assert_same(recorded.profile, document)


def test_a_profile_survives_json_files_pickle_and_copies(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    profile = recorded.profile
    profile.save(tmp_path / "profile.json")
    assert memprof.read(tmp_path / "profile.json") == profile
    assert memprof.read(str(tmp_path / "profile.json")) == profile
    assert memprof.Profile.from_json(profile.json()) == profile
    assert pickle.loads(pickle.dumps(profile)) == profile
    assert copy.deepcopy(profile) == profile


def test_equality_is_of_values(recorded: memprof.Capture) -> None:
    first, again = recorded.profile, recorded.profile
    assert first.segments == again.segments and first.segments[0] != first.segments[1]
    assert first != "a profile"
    with pytest.raises(TypeError):
        hash(first)


def test_parts_outlive_their_profile(recorded: memprof.Capture) -> None:
    block = recorded.profile.space("dram").live_at_peak.largest_blocks[0]
    memprof.discard_capture()
    assert block.bytes == 1000


def test_a_part_shows_its_values(recorded: memprof.Capture) -> None:
    point = recorded.profile.space("dram").timeline.points[0]
    assert repr(point) == f"TimelinePoint(time_ns={point.time_ns}, peak={point.peak}, current={point.current})"


def test_an_unknown_space_is_refused_by_name(recorded: memprof.Capture) -> None:
    with pytest.raises(memprof.Error, match="dram"):
        recorded.profile.space("l1")


def test_damaged_json_is_refused_with_its_place() -> None:
    with pytest.raises(memprof.Error, match="byte"):
        memprof.Profile.from_json('{"format": "memprof-profile", ')


def test_a_file_that_is_no_recording_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    with pytest.raises(memprof.Error, match="absent.json"):
        memprof.read(tmp_path / "absent.json")
    with pytest.raises(TypeError):
        memprof.read(42)  # type: ignore[arg-type]


def test_the_summary_says_peak_and_owner(recorded: memprof.Capture) -> None:
    text = recorded.profile.text()
    assert str(recorded.profile) == text
    assert "(1,500 B) of dram" in text and "operation forward" in text
    assert len(text.splitlines()) <= 40
    assert "1,500" in recorded.profile.markdown()


def test_the_trackers_text_has_its_lines(recorded: memprof.Capture) -> None:
    assert "--- MODEL_CREATION ---" in recorded.profile.tracker_text()


def test_a_notebook_shows_the_page(recorded: memprof.Capture) -> None:
    page = recorded.profile._repr_html_()  # type: ignore[attr-defined]
    assert page.startswith('<iframe srcdoc="') and "&lt;html" in page


def test_the_breakdown_adds_up_to_the_peak(recorded: memprof.Capture) -> None:
    (summary,) = recorded.profile.breakdown(device_memory=2000)["summaries"]
    parts = summary["peak_parts"]
    assert summary["fits"] is True
    assert sum(parts[name] for name in ("other", "model", "gradients", "optimizer", "activations")) == 1500
    assert parts["model"] == 1000
    assert "Peak DRAM" in recorded.profile.breakdown_text()


def test_an_empty_profile_has_nothing_to_break_down() -> None:
    with pytest.raises(memprof.Error, match="nothing was recorded"):
        memprof.current_profile().breakdown()
