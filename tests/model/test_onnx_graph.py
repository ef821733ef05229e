"""A graph computes what NumPy computes: both come from the same functions."""

import numpy as np
import onnxruntime
import pytest
from tests.model.test_export import OnnxPolicy, alike, some_states
from tests.support.models import family, paper, table, wide

from askwise import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.information import entropy
from askwise.family.forward import softmax, softplus
from askwise.model.export import onnx_model, step
from askwise.model.model import probabilities
from askwise.model.onnx_graph import Graph

MATRIX = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
SORTED = np.array([-1.0, 0.0, 0.0, 0.5, 2.0])


def assigned(x):
    """Every way to write into an array."""
    y = x.copy()
    y[:, 1:3] = x[:, :1]
    y[:, 4] = x[:, 5]
    rare = x[:, 0] > 0.5
    if rare.any():
        y[rare] = -x[rare]
        y[rare, :2] = 7.0
    rows = np.arange(x.shape[0], like=x)
    y[rows, x.argmax(1)] = x[rows, x.argmin(1)]
    y += 1.0
    np.maximum(y, 0, out=y)
    return y


def flags(x):
    """Truth values, which onnxruntime cannot choose between."""
    low = x < 0
    low[:, 2] &= (x > -1).all(1)
    low[x[:, 0] >= 0, 3:] = True
    return np.where(low.any(1)[:, None], low | (x == 0), ~low)


FUNCTIONS = {
    "arithmetic": lambda x: np.abs(1 - x * 2.0) / (3 + np.sin(x)) - np.minimum(x, np.tanh(x)),
    "types": lambda x: (x > 0) * np.float64(3) + (x.astype(np.float64) / 3),
    "counts": lambda x: (x > 0).sum(1) / 4,
    "dense": lambda x: np.maximum(x @ MATRIX, 0),
    "softmax": softmax,
    "entropy": lambda x: entropy(softmax(x)),
    "softplus": softplus,
    "reductions": lambda x: np.concatenate([x.sum(1, keepdims=True), x.min(1, keepdims=True), x.max(1, keepdims=True)], 1),
    "order": lambda x: np.concatenate([np.sort(x, 1)[:, :-4:-1], x[:, [4, 4, 0]], np.cumsum(x, 1)], 1),
    "partition": lambda x: np.partition(x, -3, 1)[:, -3:][:, :1],
    "searchsorted": lambda x: np.searchsorted(SORTED, x, "right"),
    "clip": lambda x: np.clip(x, -0.5, 1) + x.clip(0, 1),
    "like": lambda x: np.full_like(x[:, :2], 3) + np.zeros_like(x[:, :2]),
    "simplex": lambda x: probabilities(x[:, :3].astype(float), np.array([[0, 1, 5], [2, 0, 1], [9, 3, 0.0]])),
    "assigned": assigned,
    "flags": flags,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_operation_gives_what_numpy_gives(name):
    function, graph = FUNCTIONS[name], Graph()
    x = graph.input("x", np.float32, 6)
    model = onnx_model(graph, {"x": x}, {"y": function(x)})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for cases in (1, 2, 50):
        values = np.random.default_rng(cases).normal(size=(cases, 6)).astype(np.float32)
        (computed,), expected = session.run(None, {"x": values}), function(values.copy())
        assert computed.dtype == expected.dtype
        assert computed.shape == expected.shape
        assert np.allclose(computed, expected, rtol=1e-5, atol=1e-6)


def test_what_is_computed_twice_is_in_the_graph_once_and_what_nobody_needs_not_at_all():
    graph = Graph()
    x = graph.input("x", np.float32, 6)
    np.exp(x)
    y = softmax(x @ MATRIX) + softmax(x @ MATRIX.copy())
    operations = [node.operation for node in graph.needed([y.name])[0]]
    assert operations == ["MatMul", "ReduceMax", "Sub", "Exp", "ReduceSum", "Div", "Add"]


def test_an_operation_without_a_counterpart_is_an_error():
    x = Graph().input("x", np.float32, 6)
    for unknown in (np.cos, np.ravel, np.asarray, float, len, bool, list):
        with pytest.raises(TypeError):
            unknown(x)


def raw(model, state):
    """What the step of an export takes, from a state."""
    mean, deviation = (np.concatenate([getattr(p, n) for p in model.encoding.parts]) for n in ("mean", "deviation"))
    left = np.full(len(state.mask), np.inf) if state.left is None else state.left
    return state.values * deviation + mean, state.mask, state.legal[:, -state.mask.shape[1] :], np.array(state.test_cost), left


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [family, paper])
def test_random_policies_at_any_budget_say_the_same_as_a_graph_and_as_arrays(make, seed, tmp_path):
    """The function that becomes the graph is the one that decides: with arrays it gives what the model's policy gives."""
    rng = np.random.default_rng(seed)
    X, y = (table, wide)[seed % 2](150, seed)
    model = make(X, y, seed=seed, spread=rng.uniform(0.1, 0.5))
    budgets = [Budget(), Tradeoff(10 ** rng.uniform(-3, 0)), AverageBudget(rng.uniform(0.3, 2))]
    if make is family:
        budgets += [HardBudget(round(rng.uniform(1, 3), 1)), AverageBudget(1) & HardBudget(2)]
    for budget in budgets:
        chosen = model.at(budget)
        state = some_states(chosen, X, chosen.cap, seed)
        chosen.export(tmp_path / "m.onnx")
        graph = OnnxPolicy(chosen, tmp_path / "m.onnx")
        inputs = dict(zip(("values", "mask", "legal", "test_cost", "left"), raw(chosen, state), strict=True))
        if chosen.blend.share:
            inputs["draw"] = graph.draws(state)
        arrays, in_graph = step(chosen, **inputs), graph.outputs(state)
        assert np.array_equal(arrays["action"], chosen.policy.act(state).action)
        assert alike(arrays["q"], chosen.policy.values(state), state)
        assert alike(arrays["q"], in_graph["q"], state)
        assert np.allclose(arrays["probabilities"], in_graph["probabilities"], atol=1e-5)
