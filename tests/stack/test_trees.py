"""Trees as arrays say what LightGBM says."""

import lightgbm
import numpy as np
import pytest

from askwise.model.export import onnx_model
from askwise.model.onnx_graph import Graph
from askwise.stack.trees import TreeArrays, from_lightgbm, joined


def trained(classes: int, seed: int = 0, gaps: bool = True, **settings):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    X[:, 3] = rng.integers(0, 3, 600)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 3], np.linspace(-1, 1, classes + 1)[1:-1])
    if gaps:  # the last column is always there, so that its nodes know nothing of missing values
        X[:, :3][rng.random((600, 3)) < 0.4] = np.nan
    kind = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
    model = lightgbm.train({**kind, "verbose": -1, "num_leaves": 15, **settings}, lightgbm.Dataset(X, y), 12)
    return model, X


def scores(model, X, classes):
    raw = model.predict(X, raw_score=True)
    return np.stack([np.zeros(len(raw)), raw], 1) if classes == 2 else raw


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("gaps", [True, False])
def test_scores_are_those_of_lightgbm_with_any_values_missing(classes, gaps):
    model, _ = trained(classes, gaps=gaps)
    trees = from_lightgbm(model, 4, classes)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4)).astype(np.float32) * 2
    X[rng.random(X.shape) < 0.5] = np.nan
    mine = trees.scores(np.nan_to_num(X), ~np.isnan(X), classes)
    np.testing.assert_allclose(mine, scores(model, X, classes), atol=1e-5)


def test_values_at_a_threshold_go_left():
    model, _ = trained(2)
    trees = from_lightgbm(model, 4, 2)
    inner = np.flatnonzero(np.isfinite(trees.threshold) & (np.abs(trees.threshold) < 1e30))
    inner = inner[np.abs(trees.threshold[inner]) > 1e-30]  # what is so small is 0 for LightGBM
    for node in inner[:40]:
        X = np.zeros((3, 4), np.float32)
        low = trees.threshold[node]
        X[:, trees.column[node] % 4] = low, np.nextafter(low, np.float32(np.inf)), np.nextafter(low, np.float32(-np.inf))
        np.testing.assert_allclose(trees.scores(X, np.ones_like(X, bool), 2), scores(model, X, 2), atol=1e-5)


def walked(trees: TreeArrays, x: np.ndarray, known: np.ndarray, classes: int) -> np.ndarray:
    """One case, one tree, one node after the other."""
    both = [*np.where(known, x, -np.inf), *np.where(known, x, np.inf)]
    total = np.zeros(classes)
    for root, output in zip(trees.root, trees.output, strict=True):
        node = root
        while trees.child[node] != node:
            node = trees.child[node] + (both[trees.column[node]] > trees.threshold[node])
        total[output] += trees.value[node]
    return total


def test_all_cases_and_trees_at_once_are_as_one_after_the_other():
    model, X = trained(3, num_leaves=31)
    trees, known = from_lightgbm(model, 4, 3), ~np.isnan(X[:50])
    expected = [walked(trees, np.nan_to_num(x), k, 3) for x, k in zip(X[:50], known, strict=True)]
    np.testing.assert_allclose(trees.scores(np.nan_to_num(X[:50]), known, 3), expected, atol=1e-5)


def test_many_cases_are_followed_in_parts(monkeypatch):
    model, X = trained(3)
    trees, known = from_lightgbm(model, 4, 3), ~np.isnan(X)
    whole = trees.scores(np.nan_to_num(X), known, 3)
    monkeypatch.setattr("askwise.stack.trees.PLACES", 700)
    np.testing.assert_allclose(trees.scores(np.nan_to_num(X), known, 3), whole, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_an_onnx_graph_reaches_the_same_leaves(classes):
    onnxruntime = pytest.importorskip("onnxruntime")
    stump = TreeArrays(*(np.zeros(1, t) for t in (int, np.float32, int, np.float32, int, int)), depth=0)
    stump = stump._replace(threshold=np.full(1, np.inf, np.float32), value=np.full(1, 0.7, np.float32))
    trees = joined([from_lightgbm(trained(classes)[0], 4, classes), stump])  # also one that is a leaf
    rng = np.random.default_rng(1)
    X = rng.choice([*trees.threshold[np.isfinite(trees.threshold)], 0.3, -5], (500, 4)).astype(np.float32)
    known = rng.random(X.shape) < 0.6
    graph = Graph()
    inputs = {"values": graph.input("values", np.float32, 4), "known": graph.input("known", bool, 4)}
    whole = onnx_model(graph, inputs, {"scores": trees.scores(*inputs.values(), classes)})
    session = onnxruntime.InferenceSession(whole.SerializeToString(), providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {"values": X, "known": known})
    np.testing.assert_allclose(theirs, trees.scores(X, known, classes), atol=1e-5)


def test_joined_trees_are_the_mean_of_their_members_and_can_be_stored():
    members = [from_lightgbm(trained(3, seed, max_depth=3 + seed)[0], 4, 3) for seed in range(3)]
    X = np.random.default_rng(5).normal(size=(40, 4)).astype(np.float32)
    known = np.random.default_rng(6).random(X.shape) < 0.6
    both = TreeArrays.of(joined(members).arrays())
    expected = np.mean([m.scores(X, known, 3) for m in members], 0)
    np.testing.assert_allclose(both.scores(X, known, 3), expected, atol=1e-5)


def test_a_model_that_learned_nothing_is_one_leaf():
    X, y = np.zeros((50, 2), np.float32), np.arange(50) % 2
    model = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(X, y), 3)
    trees = from_lightgbm(model, 2, 2)
    np.testing.assert_allclose(trees.scores(X[:3], X[:3] == 0, 2), scores(model, X[:3], 2), atol=1e-6)
