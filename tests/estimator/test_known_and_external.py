"""What cases know before the start, and an existing classifier as one more way to decide."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.support.naive import NaiveCosts
from tests.support.patients import classifier, numbers

import askwise
from askwise import HardBudget, Tradeoff
from askwise.core.episode import rollout
from askwise.core.policy import Choice, Policy
from askwise.errors import InputError, StateError

pd = pytest.importorskip("pandas", reason="pandas is not installed")

COSTS = {"a": "0.7", "b": 2, "c": "0.1"}
SETUP = {"draw": (1, ["a", "b"])}
NAIVE = NaiveCosts(COSTS, SETUP)


def table(n=120, seed=0, holes=False):
    X, y = numbers(n, seed)
    frame = pd.DataFrame(X, columns=list(COSTS))
    if holes:
        frame.loc[::5, "a"] = np.nan
        frame.loc[::7, "c"] = np.nan
    return frame, np.array(["ill", "well"])[y]


# ---------------------------------------------------------------------- known


@pytest.mark.parametrize("known", [["a"], ("a",), np.array(["a"]), {"a"}, pd.Index(["a"])], ids=lambda k: type(k).__name__)
def test_what_everyone_knows_is_never_bought_again(known):
    X, y = table()
    fitted = classifier(costs=COSTS, setup=SETUP, known=known, budget=Tradeoff(0)).fit(X, y)
    report = fitted.acquire(X)
    assert any(report.tests), "nothing was bought, so nothing is tested"
    assert not [t for t in report.tests if "a" in t]
    assert report.cost == pytest.approx([float(NAIVE.cost(set(t), {"a"})) for t in report.tests])
    assert (fitted.predict(X) == y).mean() > 0.8  # by `a` alone


def test_one_name_is_one_name():
    """A word is also a sequence of letters."""
    X, y = table()
    fitted = classifier(known="age", time_limit=0).fit(X.rename(columns={"a": "age"}), y)
    assert fitted.model_.known == ("age",)


def test_nothing_known_may_be_said_as_none():
    X, y = table()
    assert classifier(known=None, time_limit=0).fit(X, y).model_.known == ()


@pytest.mark.parametrize("make", [np.asarray, lambda m: pd.DataFrame(m, columns=list(COSTS)), lambda m: m.tolist()],
                         ids=["array", "frame", "list"])  # fmt: skip
def test_what_each_case_knows(make):
    X, y = table()
    mask = np.zeros((len(X), 3), bool)
    mask[::2, 0] = True
    fitted = classifier(costs=COSTS, setup=SETUP, known=make(mask), budget=Tradeoff(0)).fit(X, y)
    report = fitted.acquire(X, known=make(mask))
    assert not [t for t in report.tests[::2] if "a" in t]
    assert any("a" in t for t in report.tests[1::2])
    expected = [float(NAIVE.cost(set(t), {"a"} if m[0] else set())) for t, m in zip(report.tests, mask, strict=True)]
    assert report.cost == pytest.approx(expected)
    assert fitted.model_.known == (), "new cases know nothing unless it is said"


def test_a_mask_adds_to_what_everyone_knows():
    X, y = table()
    fitted = classifier(costs=COSTS, setup=SETUP, known=["a"], budget=Tradeoff(0)).fit(X, y)
    mask = np.zeros((len(X), 3), bool)
    mask[:, 2] = True
    assert {t for tests in fitted.acquire(X, known=mask).tests for t in tests} <= {"b"}


@pytest.mark.parametrize("rows", [100, 140])
def test_a_mask_of_another_length_is_refused(rows):
    X, y = table()
    with pytest.raises(InputError, match=r"known .*\(120, 3\)"):
        classifier(known=np.zeros((rows, 3), bool)).fit(X, y)


def test_known_names_are_checked():
    X, y = table()
    with pytest.raises(InputError, match="'aa' is listed as known, but does not exist; did you mean 'a'"):
        classifier(known=["aa"]).fit(X, y)


def test_what_everyone_knows_may_still_be_missing():
    X, y = table(holes=True)
    fitted = classifier(costs=COSTS, setup=SETUP, known=["a"], budget=Tradeoff(0)).fit(X, y)
    report = fitted.acquire(X)
    expected = [float(NAIVE.cost(set(t), {"a"})) for t in report.tests]
    assert report.cost == pytest.approx(expected)


# ---------------------------------------------------------------------- an existing classifier


@pytest.fixture(scope="module")
def asked():
    """Fitted with a classifier that knows columns by name, and needs only two of them; asking it is worth its price."""
    X, y = table(holes=True)
    whole = X.notna().all(axis=1)
    oracle = LogisticRegression().fit(X.loc[whole, ["b", "a"]], y[whole])
    return classifier(costs=COSTS, setup=SETUP, external=oracle, budget=Tradeoff(0), random_state=1).fit(X, y), oracle


def last_actions(fitted, X):
    problem = fitted.model_.problem(X)
    done = fitted.model_.rollout(problem)
    return done.action[done.first + done.length - 1]


def test_it_is_asked_by_name_and_believed(asked):
    fitted, oracle = asked
    X, _ = table(90, seed=5, holes=True)
    asks = last_actions(fitted, X) == 2
    assert asks.any(), "it was never asked, so nothing is tested"
    said = fitted.predict(X)
    assert said[asks].tolist() == oracle.predict(X.loc[asks, ["b", "a"]]).tolist()
    proba = fitted.predict_proba(X)
    assert fitted.classes_[proba.argmax(1)].tolist() == said.tolist()
    shuffled = X[["c", "b", "a"]].assign(more=1.0)
    assert fitted.predict(shuffled).tolist() == said.tolist()


def test_it_is_not_asked_where_it_lacks_something(asked):
    fitted, _ = asked
    X, _ = table(90, seed=5, holes=True)
    asks = last_actions(fitted, X) == 2
    assert not (asks & X["a"].isna().to_numpy()).any()


def test_what_it_needs_is_paid_and_named(asked):
    fitted, _ = asked
    X, _ = table(90, seed=5, holes=True)
    report = fitted.acquire(X)
    asks = last_actions(fitted, X) == 2
    needed = float(NAIVE.cost({"a", "b"}))
    assert report.cost[asks].min() >= needed
    # `tests` are the names in the order bought; the bill must be theirs
    assert report.cost == pytest.approx([float(NAIVE.cost(set(t))) for t in report.tests])


def test_it_keeps_to_a_hard_budget(asked):
    _, oracle = asked
    X, y = table(holes=True)
    fitted = classifier(costs=COSTS, setup=SETUP, external=oracle, budget=HardBudget("3.6")).fit(X, y)
    assert fitted.acquire(X).cost.max() <= 3.6
    assert not (last_actions(fitted, X) == 2).any(), "it would cost 3.7"


def test_it_may_be_fitted_on_arrays():
    X, y = numbers()
    X[::5, 1] = np.nan
    whole = ~np.isnan(X).any(1)
    oracle = LogisticRegression().fit(X[whole], y[whole])
    fitted = classifier(external=oracle, budget=Tradeoff(0)).fit(X, y)
    assert fitted.predict(X).shape == (len(X),)
    problem = fitted.model_.problem(X)
    assert problem.external[whole].tolist() == oracle.predict(X[whole]).tolist()


def test_one_without_names_gets_the_columns_in_the_order_of_the_fit():
    X, y = table()
    oracle = LogisticRegression().fit(X.to_numpy(), y)
    fitted = classifier(external=oracle, costs=COSTS).fit(X, y)
    expected = oracle.predict(X.to_numpy()).tolist()

    def answers(frame):
        return [fitted.classes_[k] for k in fitted.model_.problem(frame).external]

    assert answers(X) == expected
    assert answers(X[["c", "b", "a"]]) == expected, "another order of columns must not change what it says"
    assert answers(X.assign(more=1.0)) == expected


def test_it_works_with_columns_that_are_numbered():
    X, y = numbers()
    frame = pd.DataFrame(X)
    oracle = LogisticRegression().fit(frame, y)  # knows no names then
    fitted = classifier(external=oracle).fit(frame, y)
    assert fitted.model_.problem(frame).external.tolist() == oracle.predict(frame).tolist()


class Says:
    """Always the same."""

    def __init__(self, word):
        self.word = word

    def predict(self, X):
        return np.array([self.word] * len(X))


@pytest.mark.parametrize(
    ("names", "word"), [(["ill", "well"], "illness"), ([0, 1], 1.7), ([False, True], 7), (["a", "b"], "abc"), ([0, 1], 2)]
)
def test_an_answer_that_is_no_class_is_refused(names, word):
    """Also where it would become one by cutting or rounding."""
    X, codes = numbers()
    with pytest.raises(InputError, match="which is not a class") as caught:
        classifier(external=Says(word)).fit(X, np.array(names)[codes])
    assert repr(word) in str(caught.value)


def test_belief_in_cases_that_did_not_ask_is_the_networks(asked):
    """That a decision is not the likeliest class does not show who was asked: with unequal losses it need not be."""
    fitted, _ = asked
    X, _ = table(20, seed=5)
    problem = fitted.model_.problem(X)

    class BuysAll(Policy):
        """And then says the class with the given number."""

        def __init__(self, says):
            self.says = says

        def act(self, state):
            tests = state.legal[:, 3:]
            action = np.where(tests.any(1), 3 + tests.argmax(1), self.says)
            return Choice(action, np.ones(len(action), np.float32))

    beliefs = [fitted.model_.belief(problem, rollout(problem, BuysAll(k), None)) for k in (0, 1)]
    assert beliefs[0] == pytest.approx(beliefs[1]), "what is believed of a case does not depend on what is said of it"


def test_a_frozen_one_survives_cloning():
    """Cross-validation clones what it is given, and a clone of a fitted classifier is not fitted."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import cross_val_score

    X, y = table()
    oracle = FrozenEstimator(LogisticRegression().fit(X[["a"]], y))
    assert cross_val_score(classifier(external=oracle, costs=COSTS), X, y, cv=2).mean() > 0.6


def test_it_must_be_handed_over_again_with_a_file(tmp_path):
    X, y = numbers()
    oracle = LogisticRegression().fit(X, y)
    fitted = classifier(external=oracle, budget=Tradeoff(0)).fit(X, y)
    fitted.save(tmp_path / "m")
    with pytest.raises(StateError, match="pass it as external="):
        askwise.load(tmp_path / "m")
    assert askwise.load(tmp_path / "m", external=oracle).acquire(X).tests == fitted.acquire(X).tests
    classifier(time_limit=0).fit(X, y).save(tmp_path / "without")
    with pytest.raises(StateError, match="leave external= out"):
        askwise.load(tmp_path / "without", external=oracle)


def test_what_cases_know_counts_wherever_they_are_decided():
    X, y = table()
    mask = np.zeros((len(X), 3), bool)
    mask[:, 0] = True
    fitted = classifier(costs=COSTS, known=mask, budget=HardBudget(0)).fit(X, y)  # knowing is all there is
    for model in (fitted, fitted.model_):
        report = model.acquire(X, known=mask)
        assert model.predict(X, known=mask).tolist() == report.prediction.tolist()
        assert model.predict(X, known=mask).tolist() != model.predict(X).tolist()
        proba = model.predict_proba(X, known=mask)
        assert proba.max(1) == pytest.approx(report.probability)
        assert proba.tolist() != model.predict_proba(X).tolist()
    assert fitted.score(X, y, known=mask) == (report.prediction == y).mean() > fitted.score(X, y)
