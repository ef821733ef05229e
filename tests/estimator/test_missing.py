"""What is missing as information: opt-in, free, the same whichever way a case comes in; a blind fit says what it would gain."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from tests.support.commands import run
from tests.support.patients import QUICK, QUICK_FAMILY

import askwise
from askwise import CostlyClassifier, HardBudget, StackConfig
from askwise.core.missingness import go_with_class
from askwise.errors import Doubt, InputError, StateError
from askwise.model import archives
from askwise.model.archives import MODEL
from askwise.reports.model_report import card, describe
from askwise.tables.doubts import about_gaps
from askwise.tables.gaps import worth
from askwise.web.api import model_card

CONFIGS = {"stack": StackConfig.quick(), "family": QUICK_FAMILY, "paper": QUICK}
COSTS = {"age": 1, "lab": 3, "index": 0, "town": 2}
GAINS = (
    r"that values of 'lab', 'index' are missing goes with the class, and is not used: if it were, deciding at once would be "
    r"right in \d\d\.\d % of cases instead of \d\d\.\d %, with a log loss of 0\.\d+ instead of 0\.\d+ "
    r"\(measured on 300 rows, each held out in turn\); if a missing value will mean the same in use, fit with "
    r"missing='informative' \(on the command line: --missing informative\)"
)


def cases(rows: int = 400, seed: int = 0, tells: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    """Nobody orders `lab` for the well, or it is missing at random; values tell little. `index` is computed from `lab`."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.5
    X = pd.DataFrame({"age": rng.normal(size=rows).round(2), "lab": (rng.normal(size=rows) + 0.3 * ill).round(2)})
    X["index"] = X["age"] + X["lab"]
    X["town"] = rng.choice(["Rom", "Bonn"], rows)
    X.loc[rng.random(rows) < (np.where(ill, 0.1, 0.9) if tells else 0.5), "lab"] = np.nan
    X.loc[rng.random(rows) < 0.2, "town"] = None
    return X, np.where(ill, "ill", "well")


@cache
def fitted(algorithm: str, missing: str = "informative", **more) -> CostlyClassifier:
    config = {"config": CONFIGS[algorithm], "algorithm": algorithm, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)
        return CostlyClassifier(COSTS, derived={"index": ["age", "lab"]}, missing=missing, **config, **more).fit(*cases())


def test_what_is_missing_tells_the_class_at_no_cost():
    X, y = cases(300, seed=1)
    blind, told = (fitted("stack", missing).at(HardBudget(0)) for missing in ("blind", "informative"))
    assert blind.score(X, y) < 0.65
    assert told.score(X, y) > 0.85
    assert not told.acquire(X).cost.any()
    assert set(told.acquire(X).tests) == {()}  # it is known, not bought


def test_a_blind_fit_says_what_is_not_used_and_what_it_would_gain():
    X, y = cases()
    made = CostlyClassifier(COSTS, derived={"index": ["age", "lab"]}, config=QUICK, algorithm="paper", random_state=0)
    with pytest.warns(Doubt, match=GAINS) as warned:
        made.fit(X, y)
    gain = worth(made.prepare(X, y).problem)
    shares = [f"{100 * share:.1f} %" for share in gain.accuracy]
    assert f"right in {shares[1]} of cases instead of {shares[0]}" in str(warned[0].message)
    assert gain.accuracy[0] < 0.6 < 0.85 < gain.accuracy[1]
    assert gain.log_loss[1] < 0.6 * gain.log_loss[0]
    assert go_with_class(made.prepare(X, y).problem)
    assert not go_with_class(made.set_params(missing="informative").prepare(X, y).problem)  # so nothing is filled


def test_values_missing_at_random_are_not_worth_a_word():
    X, y = cases(tells=False)
    made = CostlyClassifier(COSTS, derived={"index": ["age", "lab"]}, config=QUICK, algorithm="paper", random_state=0)
    made.fit(X, y)  # warnings are errors in tests
    gain = worth(made.prepare(X, y).problem)
    assert abs(gain.log_loss[1] - gain.log_loss[0]) < 0.03


@pytest.mark.parametrize("loss", ["brier", [[0, 5], [1, 0]]])
def test_the_gain_is_told_in_what_the_fit_is_judged_by(loss):
    X, y = cases()
    made = CostlyClassifier(COSTS, derived={"index": ["age", "lab"]}, loss=loss, known=["age"], random_state=0)
    problem = made.prepare(X, y).problem
    (sentence,) = about_gaps(problem, "blind")
    before, after = worth(problem).loss
    name = "Brier score" if loss == "brier" else "loss"
    assert f"with a {name} of {after:.3g} instead of {before:.3g}" in sentence
    assert after < 0.7 * before


def test_nothing_missing_and_a_wrong_word_are_told_in_a_sentence():
    X, y = cases()
    made = CostlyClassifier(config=QUICK, algorithm="paper", random_state=0, missing="informative")
    with pytest.warns(Doubt, match="no test is missing in some rows and there in others; leave it out"):
        made.fit(X[["age"]].assign(lab=np.nan), y)
    assert made.model_.schema.tests == ("age", "lab")
    with pytest.raises(InputError, match="missing is 'x'; it must be"):
        CostlyClassifier(missing="x").fit(X, y)


@pytest.mark.parametrize("algorithm", CONFIGS)
def test_all_ways_in_agree(algorithm, tmp_path):
    model, (X, _) = fitted(algorithm).model_, cases(12, seed=2)
    ids, report = list(range(len(X))), fitted(algorithm).acquire(X, ids=list(range(len(X))))
    assert fitted(algorithm).predict(X, ids=ids).tolist() == report.prediction.tolist()
    model.save(tmp_path / "m.askwise")
    model.export(tmp_path / "m.npz")
    for each in (model, askwise.load(tmp_path / "m.askwise"), askwise.load(tmp_path / "m.npz")):
        again = each.acquire(X, ids=ids)
        assert (again.tests, again.prediction.tolist()) == (report.tests, report.prediction.tolist())
        for i, (_, row) in enumerate(X.iterrows()):
            session = each.session(refused=[t for t in COSTS if pd.isna(row[t])], case_id=i, outside=True)
            while (step := session.next()).decision is None:
                session.tell(step.test, row[step.test])
            assert (tuple(session.answers), step.decision) == (report.tests[i], report.prediction[i])
            assert step.probability == pytest.approx(report.probability[i], abs=1e-4)


def test_what_is_refused_on_the_way_is_known_from_then_on():
    model = fitted("stack").model_
    session = model.session(case_id=1)
    before = session.next().probabilities
    session.refuse("lab")  # and with it what is computed from it
    after = session.next().probabilities
    assert after["well"] > before["well"] + 0.3
    assert after == model.session(refused=["lab"], case_id=1).next().probabilities
    assert after == model.session(refused=["lab", "index"], case_id=1).next().probabilities
    session.undo()
    assert session.next().probabilities == before
    assert askwise.Session.replay(model, session.trace()).next().probabilities == before
    session.refuse("lab")
    session.tell("lab", 0.5)  # it came after all
    assert session.next().probabilities == model.session({"lab": 0.5}, case_id=1).next().probabilities


def test_it_is_not_a_test_that_can_be_bought_answered_or_listed():
    model = fitted("stack").model_
    assert model.schema.tests == (*COSTS, "what is missing")
    assert model.schema.columns[-3:] == ("lab is missing", "index is missing", "town is missing")
    assert model.encoding.columns == tuple(COSTS)
    assert model.known == ()
    assert "4 tests" in describe(model)
    assert describe(model).endswith("which of these tests a case lacks: lab, index, town")
    assert card(model)["missing"] == ["lab", "index", "town"]
    assert card(model)["tests"].keys() == COSTS.keys()
    shown = model_card("m", model)
    assert [each["test"] for each in shown["tests"]] == list(shown["bought"]) == list(COSTS)
    for act in (lambda s: s.tell("what is missing", True), lambda s: s.refuse("what is missing")):
        with pytest.raises(InputError, match="there is no test 'what is missing'"):
            act(model.session())
    with pytest.raises(InputError, match="'what is missing' is listed as known, but does not exist"):
        model.predict(cases(5)[0], known=["what is missing"])


def test_what_some_cases_know_is_marked_without_it():
    X, y = cases()
    knows = X.notna().to_numpy() & (np.arange(len(X)) % 2 == 0)[:, None]
    made = CostlyClassifier(COSTS, known=knows, missing="informative", config=QUICK, algorithm="paper", random_state=0).fit(X, y)
    report = made.acquire(X[:6], known=knows[:6])
    assert not report.cost[::2].any()
    with pytest.raises(InputError, match=r"true and false of shape \(6, 4\)"):
        made.acquire(X[:6], known=np.zeros((6, 5), bool))


def test_names_that_are_taken_are_not_taken_twice():
    X, y = cases()
    X = X.rename(columns={"age": "lab is missing", "town": "what is missing"}).drop(columns="index")
    ready = CostlyClassifier(missing="informative", random_state=0).prepare(X, y)
    assert ready.problem.schema.tests == ("lab is missing", "lab", "what is missing", "what is missing'")
    assert ready.problem.schema.columns[-2:] == ("lab is missing'", "what is missing is missing")
    array = CostlyClassifier(missing="informative", random_state=0, config=QUICK, algorithm="paper").fit(X[["lab"]].to_numpy(), y)
    assert array.predict(X[["lab"]].to_numpy()[:3]).shape == (3,)


def test_files_that_tell_it_wrongly_are_refused(tmp_path):
    fitted("family").save(tmp_path / "m.askwise")
    arrays, facts = archives.read(tmp_path / "m.askwise", MODEL)
    *rest, last = facts["encoding"]["columns"]
    moved, costly, owner = arrays["costs/own"].copy(), arrays["costs/own"].copy(), arrays["owner"].copy()
    costly[-1], owner[-1] = 1, 0
    wrong = {
        "the encoding of the columns is damaged": (
            arrays,
            {**facts, "encoding": {"columns": [*rest, {**last, "of": ["nobody"]}]}},
        ),
        "damaged": (arrays, {**facts, "encoding": {"columns": [last, *rest]}}),
        "what tells what is missing is free": ({**arrays, "costs/own": costly}, facts),
        "what is missing is told by the last test": ({**arrays, "owner": owner}, facts),
        "what is missing is told to everyone": ({**arrays, "costs/own": moved}, {**facts, "known": ["what is missing"]}),
    }
    for reason, parts in wrong.items():
        archives.write(tmp_path / "wrong.askwise", MODEL, *parts)
        with pytest.raises(StateError, match=reason):
            askwise.load(tmp_path / "wrong.askwise")


def test_on_the_command_line(tmp_path):
    X, y = cases()
    X.assign(label=y).to_csv(tmp_path / "cases.csv", index=False)
    words = ("fit", tmp_path / "cases.csv", "--target", "label", "--algorithm", "paper", "--time-limit", "1", "--quiet")
    code, out, err = run(*words, "--hard-budget", "0", "--missing", "informative", "--out", tmp_path / "told.askwise")
    assert (code, err) == (0, "")
    assert "is told from the start, at no cost, which of these tests a case lacks: lab, town" in out
    code, out, err = run("predict", tmp_path / "told.askwise", tmp_path / "cases.csv")
    assert (code, err) == (0, "")
    decided = np.array([line.split(",")[1] for line in out.splitlines()[1:]])
    assert (decided == askwise.load(tmp_path / "told.askwise").predict(X)).all()
    assert (decided == y).mean() > 0.8
    code, out, err = run("evaluate", tmp_path / "told.askwise", tmp_path / "cases.csv", "--target", "label")
    assert (code, err) == (0, "")
    code, out, simulated = run("ask", tmp_path / "told.askwise", "--simulate", tmp_path / "cases.csv")
    assert (code, simulated) == (0, "")
    assert [line.split(" -> ")[1].split(" ")[0] for line in out.splitlines()[:-1]] == decided.tolist()
    code, out, err = run(*words, "--out", tmp_path / "blind.askwise")
    assert code == 0
    assert "are missing goes with the class, and is not used" in err
    with pytest.raises(SystemExit, match="2"):
        run(*words, "--missing", "x")
