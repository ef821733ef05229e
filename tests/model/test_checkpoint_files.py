"""State files: exact, whole, and refused in one sentence when they are not."""

import json
import os

import numpy as np
import pytest

from askwise.errors import StateError
from askwise.model import archives
from askwise.model.file import read_state, write_state

ARRAYS = {"a/b": np.arange(6, dtype=np.int16).reshape(2, 3), "mask": np.array([True, False]), "x": np.array(0.1, np.float32)}
FACTS = {"rng": {"state": 2**100}, "lam": 0.1 + 0.2, "words": "ε"}


def test_a_round_trip_is_exact(tmp_path) -> None:
    write_state(tmp_path / "s", ARRAYS, FACTS)
    arrays, facts = read_state(tmp_path / "s")
    assert facts == FACTS
    assert set(arrays) == set(ARRAYS)
    for name, value in ARRAYS.items():
        assert arrays[name].dtype == value.dtype
        assert arrays[name].tobytes() == value.tobytes()
        assert arrays[name].shape == value.shape


def test_a_crash_in_the_middle_of_writing_loses_nothing(tmp_path, monkeypatch) -> None:
    write_state(tmp_path / "s", ARRAYS, FACTS)

    def crash(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        write_state(tmp_path / "s", {"a": np.zeros(1)}, {})
    assert read_state(tmp_path / "s")[1] == FACTS
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_state_of_an_earlier_version_says_what_to_do(tmp_path) -> None:
    archives.write(tmp_path / "s", "askwise-state-1", ARRAYS, FACTS)
    with pytest.raises(StateError, match=r"earlier version of askwise, which this one does not read; start the training again$"):
        read_state(tmp_path / "s")


@pytest.mark.parametrize("keep", [0, 4, 9, 100, -1])
def test_a_file_cut_short_is_refused(tmp_path, keep: int) -> None:
    write_state(tmp_path / "s", ARRAYS, FACTS)
    whole = (tmp_path / "s").read_bytes()
    (tmp_path / "s").write_bytes(whole[:keep])
    with pytest.raises(StateError) as caught:
        read_state(tmp_path / "s")
    assert "\n" not in str(caught.value)
    assert "cut short or damaged" in str(caught.value)


def test_other_files_are_refused(tmp_path) -> None:
    with pytest.raises(StateError, match="there is no file"):
        read_state(tmp_path / "nothing")
    (tmp_path / "text").write_text(json.dumps(FACTS))
    with pytest.raises(StateError, match="cannot be read"):
        read_state(tmp_path / "text")
    import safetensors.numpy

    safetensors.numpy.save_file(ARRAYS, tmp_path / "foreign")
    with pytest.raises(StateError, match="is not a state of a training run"):
        read_state(tmp_path / "foreign")
