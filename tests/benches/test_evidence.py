"""What the repository shows as evidence is whole: the transcript of a first run, its pictures, and the measured start."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / "docs" / "thyroid"


def test_the_page_of_the_first_run_shows_every_picture_and_the_transcript() -> None:
    shown = set(re.findall(r"\]\(([^)]+)\)", (RUN / "README.md").read_text()))
    assert shown == {path.name for path in RUN.iterdir()} - {"README.md"}


def test_the_transcript_is_of_a_run_that_went_well_and_names_no_machine() -> None:
    text = (RUN / "transcript.txt").read_text()
    assert text.startswith("$ askwise fit --data thyroid\n\nexit code 0, ")
    assert "written: thyroid.askwise, " in text
    assert not re.search(r"(^|\s)/\w+/", text)


@pytest.mark.parametrize("path", sorted(RUN.glob("*.svg")), ids=lambda p: p.name)
def test_pictures_are_small_and_carry_no_date(path: Path) -> None:
    assert path.stat().st_size < 200_000
    assert "<dc:date>" not in path.read_text()


def test_it_starts_quickly_and_without_torch() -> None:
    found = json.loads((ROOT / "benchmarks" / "speed" / "start.json").read_text())
    assert found["import"]["median_s"] < 0.3
    assert found["help"]["median_s"] < 0.5
    assert found["torch_after_import"] is False
