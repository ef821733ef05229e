"""The methods with a fixed order: static_gbm, cascade, baseline."""

from functools import cache

import numpy as np
import pytest

from askwise.core.budget import AverageBudget, HardBudget
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import measure, rollout
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods import baseline, cascade, static_gbm
from askwise.methods.cascade import Cascade

METHODS = {"static_gbm": static_gbm, "cascade": cascade, "baseline": baseline}
PRICES = dict(zip("abcd", (1, 2, 2, 1), strict=True))


@cache
def easy() -> list[Problem]:
    """Half of the cases are told by a alone; the others need b, and a says which they are. d is noise."""
    parts = []
    for seed, n in ((0, 1000), (1, 600), (2, 1000)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4))
        y = np.where(np.abs(X[:, 0]) > 0.67, X[:, 0] > 0, X[:, 1] > 0).astype(int)
        parts.append(Problem.build(Schema.build(list("abcd"), [0, 1], PRICES), X, y))
    return parts


@cache
def hard() -> list[Problem]:
    """Holes, known values, a set-up, a derived test, three classes and a loss matrix."""
    schema = Schema.build(
        list("abcde"),
        list("xyz"),
        CostSpec({"a": 1, "b": 2, "c": 1, "d": 3, "e": 0}, setup={"draw": (2, ["a", "b"])}, derived={"e": ["c", "d"]}),
    )
    parts = []
    for seed in (0, 1, 2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 5))
        X[:, 4] = X[:, 2] + X[:, 3]
        y = np.digitize(X[:, 0] + X[:, 4], [-1, 1])
        X[rng.random(X.shape) < 0.15] = np.nan
        known = (rng.random(X.shape) < 0.1) & ~np.isnan(X)
        loss = [[0, 1, 2], [1, 0, 1], [20, 10, 0]]
        parts.append(Problem.build(schema, X, np.array(list("xyz"))[y], known=known, loss=loss))
    return parts


@cache
def points(name: str, which: str = "easy") -> list[Policy]:
    train, validation, _ = {"easy": easy, "hard": hard}[which]()
    return METHODS[name].points(train, validation, seconds=1)


def frontier(name: str) -> list[tuple[float, float]]:
    found = [measure(easy()[2], policy, None) for policy in points(name)]
    return [(m.cost, m.accuracy) for m in found]


@pytest.mark.parametrize("name", ["static_gbm", "baseline"])
def test_points_go_from_deciding_at_once_to_buying_everything(name: str) -> None:
    cost, accuracy = zip(*frontier(name), strict=True)
    assert cost[0] == 0
    assert cost[-1] == 6
    assert (np.diff(cost) > 0).all()
    assert max(accuracy) > 0.9
    assert accuracy[0] == pytest.approx(0.5, abs=0.1)


def test_static_gbm_buys_what_tells_first() -> None:
    assert points("static_gbm")[2].tests.tolist() == [0, 1]


def test_a_cascade_stops_earlier_at_higher_prices() -> None:
    train, _, test = easy()
    order, prefixes = np.array([0, 1, 2, 3]), [p for p in points("cascade") if not isinstance(p, Cascade)]
    stages = next(p for p in points("cascade") if isinstance(p, Cascade)).stages
    assert len(prefixes) == len(stages) == 5
    walk = cascade._Walk.along(train, order, stages, [s.outside for s in stages])
    cost = []
    for price in (1e-4, 0.05, 0.12, 0.4, 2):
        policy = Cascade(order, train.schema.first_test, stages, walk.stopping(price, 0, 1), train.loss)
        cost.append(measure(test, policy, None).cost)
    assert (np.diff(cost) <= 0.02).all()
    assert cost[-1] == 0
    assert cost[0] > 1.9


def test_a_cascade_is_no_worse_than_the_same_cost_for_everybody_and_better_where_it_can_be() -> None:
    static = sorted(frontier("static_gbm"))
    x, y = zip(*static, strict=True)
    gain = [accuracy - np.interp(cost, x, np.maximum.accumulate(y)) for cost, accuracy in frontier("cascade")]
    assert min(gain) > -0.03
    assert max(gain) > 0.08  # half of the cases do not need b: 1 + 2 / 2 buys what static buys for 3


@pytest.mark.parametrize("name", METHODS)
def test_no_policy_pays_too_much_or_buys_what_is_not_there(name: str) -> None:
    train, _, test = hard()
    assert test.available is not None
    assert test.known is not None
    for policy in points(name, "hard"):
        for cap in (None, 4, 0):
            done = rollout(test, policy, cap)
            assert not (done.mask & ~test.known & ~test.available).any()
            assert cap is None or (done.cost <= cap).all()
            assert (done.cost == train.schema.costs.cost(done.mask, test.known)).all()
        alone = rollout(test, policy, None, np.array([7]))  # a batch of one is as a batch of all
        assert alone.cost[0] == rollout(test, policy, None).cost[7]


@pytest.mark.parametrize("name", METHODS)
def test_a_loss_matrix_is_heard(name: str) -> None:
    train, _, test = hard()
    best = min(measure(test, policy, None).loss for policy in points(name, "hard"))
    at_once = train.loss[test.y].mean(0).min()
    assert best < 0.8 * at_once
    nothing = rollout(test, points(name, "hard")[0], 0)  # deciding with the little that is known
    assert nothing.loss.mean() < train.loss[test.y].mean(0).max() / 2


def test_fit_keeps_to_its_budget() -> None:
    train, validation, test = easy()
    average = static_gbm.fit(train, validation, AverageBudget("1.5"), seconds=1)
    assert measure(validation, average, None).cost == pytest.approx(1.5, abs=0.1)
    hard_one = cascade.fit(train, validation, HardBudget(3), seconds=1)
    done = rollout(test, hard_one, 3)
    assert (done.cost <= 3).all()
    assert 1 - done.loss.mean() > 0.85
