"""A belief that goes on from what it has computed is the belief that is computed anew."""

import lightgbm
import numpy as np
import pytest

from askwise.core.cases import Cases
from askwise.core.episode import rollout
from askwise.core.policy import Greedy, Mixture, ValueFunction
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.stack.belief import StackedBelief, TreeScores
from askwise.stack.growing import GrowingBelief
from askwise.stack.trees import TreeArrays, from_lightgbm

OWNER = np.array([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8])  # tests of one and of two columns, and more than one byte of tests
TESTS, COLUMNS, CLASSES = 9, 11, 3


def weights(rich: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, COLUMNS)).astype(np.float32)
    X[rng.random(X.shape) < 0.4] = np.nan
    y = np.digitize(np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 3] + X[:, 10]), [-0.5, 0.5])
    settings = {"objective": "multiclass", "num_class": CLASSES, "verbose": -1, "num_leaves": 12, "min_data_in_leaf": 5}
    trees = from_lightgbm(lightgbm.train(settings, lightgbm.Dataset(X, y), 8), COLUMNS, CLASSES)
    parts = {f"trees.{name}": value for name, value in trees.arrays().items()}
    source = rng.integers(COLUMNS, size=14)  # in no order
    features = {}
    if rich:
        features = {"bins.source": source, "bins.low": rng.normal(size=14), "bins.slope": rng.normal(size=14)}
        features |= {"sines.source": source[::-1], "sines.rate": rng.normal(size=14), "sines.phase": rng.normal(size=14)}
    sizes, M = [COLUMNS + (28 if rich else 0) + TESTS, 6, 6, CLASSES], 2
    for i in range(3):
        features[f"{i}.weight"] = rng.normal(size=(M, *sizes[i : i + 2]))
        features[f"{i}.bias"] = rng.normal(size=(M, 1, sizes[i + 1]))
    parts |= {f"networks.{name}": value for name, value in features.items()}
    parts |= {"linear.main": rng.normal(size=(COLUMNS + TESTS, CLASSES)), "linear.bias": rng.normal(size=CLASSES)}
    parts |= {f"weight.{name}": np.array([-1.0, 0.3, 0.2]) for name in ("trees", "linear", "networks")}
    return parts | {"prior": np.log([0.2, 0.5, 0.3]), "shift": np.log([0.9, 1.1, 1.0])}


def shown(X: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.where(mask[:, OWNER], X, 0).astype(np.float32)


@pytest.mark.parametrize("rich", [False, True])
@pytest.mark.parametrize("most", [1, 3])  # new tests of a case at a time
def test_beliefs_of_cases_that_grow_and_drop_out_are_those_computed_anew(rich, most):
    rng, n = np.random.default_rng(1), 40
    belief = StackedBelief(weights(rich), OWNER, np.float64)
    growing = GrowingBelief(belief, n)
    X, mask = rng.normal(size=(n, COLUMNS)) * 2, rng.random((n, TESTS)) < 0.2
    for _ in range(12):
        place = np.flatnonzero(rng.random(n) < 0.7)  # some are not asked for, or not yet
        told = growing(shown(X[place], mask[place]), mask[place], place)
        np.testing.assert_allclose(told, belief(shown(X[place], mask[place]), mask[place]), atol=1e-9)
        for case in np.flatnonzero(rng.random(n) < 0.8):
            mask[case, rng.integers(TESTS, size=rng.integers(1, most + 1))] = True


def test_a_leaf_is_looked_for_again_only_if_its_path_passes_the_test():
    # x0 <= 0 leads to the leaf 1, otherwise x1 <= 0 leads to the leaf 3 and the others to the leaf 4
    arrays = [0, 0, 1, 0, 0], [0, np.inf, 0, np.inf, np.inf], [1, 1, 3, 3, 4], [0, 1, 0, 3, 4], [0], [0]
    kinds = np.int64, np.float32, np.int64, np.float32, np.int64, np.int64
    trees = TreeArrays(*(np.array(x, t) for x, t in zip(arrays, kinds, strict=True)), depth=2)
    scores = TreeScores(trees, np.arange(2), 1)
    assert scores.passed.tolist() == [[0, 1, 1, 3, 3]]
    values, none = np.array([[-1, 5], [2, 5]], np.float32), np.zeros((2, 2), bool)
    leaf = scores.begin(values, none, none)
    assert leaf.tolist() == [[1], [1]]  # who lacks x0 goes left
    first = none | np.array([True, False])
    leaf = scores.grown(leaf, [(0, slice(0, 2))], values, first)
    assert leaf.tolist() == [[1], [3]]  # who lacks x1 goes left
    leaf = scores.grown(leaf, [(1, slice(0, 2))], values, ~none)
    assert leaf.tolist() == [[1], [4]]
    assert scores.read(leaf).tolist() == [[1], [4]]


class Followed(ValueFunction):
    """Buys in the order of what is seen, and remembers by place what it has seen."""

    def __init__(self, seen: dict[int, int] | None = None) -> None:
        self.seen = seen

    def following(self, n: int) -> "Followed":
        return Followed({})

    def __call__(self, state):
        assert self.seen is not None
        for place, held in zip(state.place.tolist(), state.mask.sum(1).tolist(), strict=True):
            assert held == self.seen.get(place, -1) + 1  # each case has one test more than when it was last seen
            self.seen[place] = held
        q = np.where(np.arange(state.legal.shape[1]) < 2, 0.0, 1.0) * np.ones((len(state.mask), 1))
        q[:, 2:] = np.where(state.values[:, :1] > 0, -1.0, 1.0)  # who has seen a positive first column stops
        return q.astype(np.float32)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_rollout_names_each_case_by_its_place_and_its_memory_is_its_own(mixed):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[10:20] = X[:10]  # the same values, and so the same key
    problem = Problem.build(Schema.build(["a", "b", "c"], [0, 1]), X, np.zeros(50, int))
    policy = Mixture(Greedy(Followed()), Greedy(Followed()), 0.4) if mixed else Greedy(Followed())
    for _ in range(2):
        done = rollout(problem, policy, None, chunk=30)
        assert done.length.tolist() == np.where(X[:, 0] > 0, 2, 4).tolist()
    assert Cases.start(problem, np.arange(3), None).observe().place is None  # elsewhere there is none
