"""Which of given cases a model was fitted on."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from tests.support.commands import fill, ok
from tests.support.members import problem_of

import askwise
from askwise.cli import main
from askwise.core.problem import Problem
from askwise.errors import Doubt, StateError
from askwise.model import archives, fit_rows


def rows_of(X: np.ndarray) -> Problem:
    return Problem.build(problem_of(4).schema, X, np.arange(len(X)) % 2)


def test_rows_of_the_fit_are_told_from_others(free, frame, others, tmp_path):
    free.save(tmp_path / "m.askwise")
    for model in (free.model_, askwise.load(tmp_path / "m.askwise")):
        with pytest.warns(Doubt, match=r"^these cases are rows that the model was fitted on, so these figures are too good"):
            model.report(model.problem(*frame))
        order = np.random.default_rng(0).permutation(len(frame[1]))[:30]
        with pytest.warns(Doubt, match="^these cases are rows"):
            model.report(model.problem(frame[0].iloc[order], frame[1][order]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.report(model.problem(*others))
            model.report(model.problem(frame[0]))  # without classes there are no figures to be too good


def test_a_part_of_them_is_told_as_a_share(free, frame, others):
    X, y = pd.concat([frame[0].iloc[:60], others[0]]), np.r_[frame[1][:60], others[1]]
    with pytest.warns(Doubt, match="^about (39|40) % of these cases are rows that the model was fitted on"):
        free.model_.report(free.model_.problem(X, y))


def test_many_rows_are_told_by_a_few_numbers():
    X = np.random.default_rng(0).normal(size=(40_000, 4))
    fit, new = rows_of(X[:20_000]), rows_of(X[20_000:])
    facts = {"fit_rows": fit_rows.to_facts(fit, fit)}
    assert len(facts["fit_rows"]["numbers"]) == fit_rows.KEPT
    assert fit_rows.share_of_fit(facts, fit) == 1
    assert fit_rows.share_of_fit(facts, new) == 0
    assert fit_rows.share_of_fit(facts, rows_of(X[15_000:35_000])) == pytest.approx(0.25, abs=0.08)
    assert fit_rows.share_of_fit(facts, rows_of(X[20_000:20_001])) is None
    assert fit_rows.share_of_fit({}, fit) is None


def test_rows_that_are_alike_by_chance_are_not_taken_for_rows_of_the_fit():
    few = np.random.default_rng(0).integers(0, 4, (6_000, 4))
    few[:, 3:] = 0
    facts = {"fit_rows": fit_rows.to_facts(rows_of(few[:3_000]))}
    assert fit_rows.share_of_fit(facts, rows_of(few[3_000:])) == 0


def test_the_command_says_it_and_machines_get_the_share(tmp_path, capsys):
    folder = fill(tmp_path)
    argv = ["evaluate", str(folder / "m.askwise"), str(folder / "cases.csv"), "--target", "diagnosis"]
    assert main(argv) == 0
    assert "askwise: these cases are rows that the model was fitted on" in capsys.readouterr().err
    assert json.loads(ok(*argv, "--json"))["share_of_fit"] == 1


DAMAGE = [{"numbers": []}, {"numbers": [0.5]}, {"numbers": [2**40]}, {"numbers": [1] * 600}, {"upto": "all"}, {"alike": 2.0}]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_whose_numbers_are_none_is_refused(free, tmp_path, damage):
    free.save(tmp_path / "m.askwise")
    arrays, card = archives.read(tmp_path / "m.askwise", archives.MODEL)
    facts = {**card["facts"], "fit_rows": {**card["facts"]["fit_rows"], **damage}}
    archives.write(tmp_path / "m.askwise", archives.MODEL, arrays, {**card, "facts": facts})
    with pytest.raises(StateError, match="numbers of the rows of the fit"):
        askwise.load(tmp_path / "m.askwise")
