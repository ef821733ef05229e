"""How often tests are bought and the common paths, as a fit measures them and a file keeps them."""

import json
from dataclasses import replace

import numpy as np
import pytest

import askwise
from askwise import AverageBudget, HardBudget
from askwise.errors import StateError
from askwise.model import archives
from askwise.model.purchases import usage


def test_shares_are_those_of_the_rows_it_was_measured_on(free, frame):
    model = free.model_
    kept = free.validation_rows_
    report = model.acquire(frame[0].iloc[kept])
    found = usage(model)
    assert found.rows == len(kept)
    for test in model.schema.tests:
        assert found.bought[test] == pytest.approx(np.mean([test in tests for tests in report.tests]), abs=1e-4)
    path, share = found.paths[0]
    assert share == pytest.approx(np.mean([tests == path for tests in report.tests]), abs=1e-4)
    assert [s for _, s in found.paths] == sorted((s for _, s in found.paths), reverse=True)


def test_between_two_points_shares_are_mixed(free):
    model = free.model_
    first, second = model.points[0].cost, model.points[-1].cost
    mixed = model.at(AverageBudget(round((first + second) / 2, 3)))
    assert 0 < mixed.blend.share < 1
    found = usage(mixed)
    for test, share in found.bought.items():
        low = model.facts["usage"]["points"][mixed.blend.first]["bought"][model.schema.tests.index(test)]
        high = model.facts["usage"]["points"][mixed.blend.second]["bought"][model.schema.tests.index(test)]
        assert share == pytest.approx((1 - mixed.blend.share) * low + mixed.blend.share * high)


def test_it_survives_a_file_and_old_files_do_without(free, tmp_path):
    model = free.model_
    model.save(tmp_path / "m.askwise")
    assert usage(askwise.load(tmp_path / "m.askwise")) == usage(model)
    old = replace(model, facts={k: v for k, v in model.facts.items() if k != "usage"})
    old.save(tmp_path / "old.askwise")
    assert usage(askwise.load(tmp_path / "old.askwise")) is None


def test_what_was_measured_under_another_hard_budget_is_not_told(hard):
    assert usage(hard.model_) is not None
    other = replace(hard.model_, budget=HardBudget(1))
    assert usage(other) is None


@pytest.mark.parametrize("damage", [{"rows": "many"}, {"points": [{"bought": [0.5], "paths": []}]}, {"points": 3}])
def test_a_file_whose_shares_do_not_hold_together_is_refused(free, tmp_path, damage):
    facts = json.loads(json.dumps(free.model_.facts))
    facts["usage"] |= damage
    free.save(tmp_path / "m.askwise")
    arrays, card = archives.read(tmp_path / "m.askwise", archives.MODEL)
    archives.write(tmp_path / "m.askwise", archives.MODEL, arrays, {**card, "facts": facts})
    with pytest.raises(StateError, match="damaged"):
        askwise.load(tmp_path / "m.askwise")
