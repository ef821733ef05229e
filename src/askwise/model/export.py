"""A model for other runtimes: `.npz` for NumPy alone, `.onnx` for onnxruntime.

The ONNX graph is one step of the policy at the model's budget, for any number of cases. What it is given is raw: it scales the
columns itself, so that nothing of askwise is needed beside it. `docs/export.md` says what its inputs and outputs mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Array
from askwise.core.policy import NEVER, Constant, Mixture
from askwise.errors import InputError
from askwise.family.config import DESIGN
from askwise.family.inference import FamilyValues, InOrder, own_share
from askwise.files import write_whole
from askwise.model.model import LearnedModel
from askwise.paper.numpy_network import DenseValues

OPSET, IR = 17, 8  # old enough for every onnxruntime of the last years
FLOAT, DOUBLE, INT64, BOOL = 1, 11, 7, 9  # ONNX's numbers for them


def export(model: LearnedModel, path: str | Path) -> None:
    """Writes a model for another runtime, which the ending of the path names."""
    path = Path(path)
    if path.suffix not in (".npz", ".onnx"):
        raise InputError(f"cannot export to {path.name!r}; its name must end in .npz, for NumPy, or .onnx, for onnxruntime")
    if model.external is not None:
        raise InputError("a model with an existing classifier cannot be exported: that classifier would have to go with it")
    if model.encoder is not None:
        raise InputError("a model with an encoder of your own cannot be exported: only torch knows what it computes")
    if path.suffix == ".npz":
        from askwise.model.file import save_npz

        save_npz(model, path)
    else:
        write_whole(path, onnx_bytes(model))


def onnx_bytes(model: LearnedModel) -> bytes:
    """The policy as an ONNX file."""
    try:
        import onnx
        from onnx import helper
    except ImportError:
        raise InputError("an export to ONNX needs the package onnx; install 'askwise[export]'") from None
    graph = _Graph()
    outputs = _policy(graph, model)
    schema, costs = model.schema, model.schema.costs
    F, C = schema.n_tests, len(schema.columns)
    inputs = [
        helper.make_tensor_value_info("values", DOUBLE, ["cases", C]),
        helper.make_tensor_value_info("mask", BOOL, ["cases", F]),
        helper.make_tensor_value_info("legal", BOOL, ["cases", F]),
        helper.make_tensor_value_info("price", DOUBLE, ["cases", F]),
        helper.make_tensor_value_info("left", DOUBLE, ["cases"]),
    ]
    if model.blend.share:
        inputs.append(helper.make_tensor_value_info("draw", DOUBLE, ["cases"]))
    made = helper.make_graph(
        [helper.make_node(op, ins, outs, **more) for op, ins, outs, more in graph.nodes],
        "askwise",
        inputs,
        [helper.make_tensor_value_info(name, kind, ["cases", *size]) for name, kind, size in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="askwise")
    limits = [None if (cap := model.limit(p)) is None else float(costs.money(cap)) for p in model.followed]
    card = {
        "format": "askwise-onnx-1",
        "columns": list(schema.columns),
        "tests": list(schema.tests),
        "classes": list(schema.classes),
        "owner": schema.owner.tolist(),
        "prices": np.asarray(costs.money(costs.own), float).tolist(),
        "setup": np.asarray(costs.money(costs.setup), float).tolist(),
        "member": costs.member.astype(int).tolist(),
        "sources": costs.sources.astype(int).tolist(),
        "known": list(model.known),
        "cap": limits[0],
        "cap_second": limits[1],
        "share": model.blend.share,
        "seed": model.seed,
        "unit": model.unit,
        "fingerprint": model.fingerprint,
    }
    helper.set_model_props(whole, {name: json.dumps(value) for name, value in card.items()})
    onnx.checker.check_model(whole)
    data: bytes = whole.SerializeToString()
    return data


class _Graph:
    """Nodes and constants; each node has one output, whose name is handed on."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self.constants: dict[str, Array] = {}

    def __call__(self, op: str, *inputs: Any, name: str | None = None, **more: Any) -> str:
        """Adds a node. Arrays and numbers among its inputs become constants."""
        out = name or f"n{len(self.nodes)}"
        self.nodes.append((op, [x if isinstance(x, str) else self.constant(x) for x in inputs], [out], more))
        return out

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        for name, there in self.constants.items():  # both arms of a mixture have the same weights
            if there.dtype == array.dtype and there.shape == array.shape and np.array_equal(there, array):
                return name
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def layers(self, x: str, layers: list[tuple[Any, Any]], last: bool = True, act: str = "Relu") -> str:
        """Fully connected, with an activation; `last`: also after the last of them."""
        for i, (matrix, bias) in enumerate(layers):
            x = self("Add", self("MatMul", x, matrix), bias)
            x = self(act, x) if last or i < len(layers) - 1 else x
        return x

    def cast(self, x: str, kind: int) -> str:
        return self("Cast", x, to=kind)

    def sum(self, x: str, keep: bool = True) -> str:
        return self("ReduceSum", x, np.array([-1]), keepdims=int(keep))

    def largest(self, x: str, n: int) -> str:
        """The n largest of each row, in falling order."""
        self.nodes.append(("TopK", [x, self.constant(np.array([n]))], [f"{x}.top{n}", f"{x}.at{n}"], {"axis": 1}))
        return f"{x}.top{n}"

    def softmax(self, x: str) -> str:
        return self("Softmax", x, axis=1)

    def columns(self, x: str, first: int, end: int) -> str:
        return self("Slice", x, np.array([first]), np.array([end]), np.array([1]))


def _policy(g: _Graph, model: LearnedModel) -> list[tuple[str, int, list[Any]]]:
    """The whole step; its outputs with their kinds and sizes."""
    schema = model.schema
    K, F = schema.n_classes, schema.n_tests
    mean, deviation = (np.concatenate([getattr(p, name) for p in model.encoding.parts]) for name in ("mean", "deviation"))
    scaled = g.cast(g("Div", g("Sub", "values", mean), deviation), FLOAT)
    held = g("Gather", "mask", schema.owner, axis=1)
    state = {
        "values": g("Where", held, scaled, np.float32(0)),  # whatever stands where nothing is known
        "mask": g.cast("mask", FLOAT),
        "held": g.cast(held, FLOAT),
        "legal": _legal(g, model),
    }
    policy = model.policy
    arms: list[Any] = [policy.first, policy.second] if isinstance(policy, Mixture) else [policy]
    seen = [_arm(g, model, arm.q, state) for arm in arms]
    if len(arms) == 1:
        q, belief = seen[0]
    else:
        second = g("Unsqueeze", g("Less", "draw", np.float64(model.blend.share)), np.array([1]))
        q, belief = (g("Where", second, b, a) for a, b in zip(*seen, strict=True))
    g("Identity", q, name="q")
    g("Identity", belief, name="probabilities")
    decides = g("Expand", g("Not", _any(g, _free(g, state["legal"]))), _size(g, K))
    legal = g("Concat", decides, state["legal"], axis=1)
    g("ArgMax", g("Where", legal, q, np.float32(-np.inf)), axis=1, keepdims=0, name="action")
    return [("action", INT64, []), ("q", FLOAT, [K + F]), ("probabilities", FLOAT, [K])]


def _legal(g: _Graph, model: LearnedModel) -> str:
    """The tests that may be asked for now: `Prices.obtainable` and `only_free` as a graph."""
    costs = model.schema.costs
    can = g("And", "legal", g("Not", "mask"))
    for d in reversed(costs.derived):
        sources = g("Gather", g("Or", can, "mask"), np.flatnonzero(costs.sources[d]), axis=1)
        computed = g("Not", _any(g, g("Not", sources)))
        can = g("And", can, g("Or", computed, (np.arange(model.schema.n_tests) != d)[None]))
    free = _free(g, can)
    return g("And", can, g("Or", free, g("Not", _any(g, free))))


def _free(g: _Graph, tests: str) -> str:
    """Those of the tests that cost nothing now."""
    return g("And", tests, g("Equal", "price", np.float64(0)))


def _any(g: _Graph, tests: str) -> str:
    """Whether a case has any of them."""
    return g("Greater", g.sum(g.cast(tests, FLOAT)), np.float32(0))


def _size(g: _Graph, columns: int) -> str:
    """The shape (cases, columns)."""
    return g("Concat", g("Gather", g("Shape", "mask"), np.array([0])), np.array([columns]), axis=0)


def _arm(g: _Graph, model: LearnedModel, q: Any, state: Mapping[str, str]) -> tuple[str, str]:
    """Values of the actions and class probabilities of one point of the frontier."""
    makers: dict[type, Callable[..., tuple[str, str]]] = {
        FamilyValues: _family,
        InOrder: _in_order,
        DenseValues: _dense,
        Constant: _constant,
    }
    return makers[type(q)](g, model, q, state)


def _constant(g: _Graph, model: LearnedModel, q: Constant, state: Mapping[str, str]) -> tuple[str, str]:
    F = model.schema.n_tests
    row = np.array([[*q.classes, *[NEVER] * F]], np.float32)
    belief = model.believed(row).astype(np.float32)
    return g("Expand", row, _size(g, row.shape[1])), g("Expand", belief, _size(g, belief.shape[1]))


def _dense(g: _Graph, model: LearnedModel, q: DenseValues, state: Mapping[str, str]) -> tuple[str, str]:
    x = g.layers(g("Concat", state["values"], state["mask"], axis=1), q.layers)
    values = g("Add", g("MatMul", x, q.head[0]), q.head[1])
    return values, _believed(g, model, values)


def _believed(g: _Graph, model: LearnedModel, q: str) -> str:
    """`model.probabilities` as a graph: expected losses, and the projection on the simplex."""
    K, loss = model.schema.n_classes, model.loss
    stakes = loss.max(1, keepdims=True)
    scaled = loss / np.where(stakes > 0, stakes, 1)
    expected = g("Neg", g.cast(g.columns(q, 0, K), DOUBLE))
    usual = np.allclose(scaled, 1 - np.eye(K))
    p = g("Sub", np.float64(1), expected) if usual else g("MatMul", expected, np.linalg.pinv(scaled))
    ordered = g.largest(p, K)
    above = g("Div", g("Sub", g("CumSum", ordered, np.array(1)), np.float64(1)), np.arange(1, K + 1, dtype=np.float64))
    how_many = g("ReduceSum", g.cast(g("Greater", ordered, above), INT64), np.array([1]), keepdims=1)
    t = g("GatherElements", above, g("Sub", how_many, np.int64(1)), axis=1)
    kept = g("Max", g("Sub", p, t), np.float64(1e-6))
    return g.cast(g("Div", kept, g.sum(kept)), FLOAT)


def _in_order(g: _Graph, model: LearnedModel, q: InOrder, state: Mapping[str, str]) -> tuple[str, str]:
    F, K = len(q.bonus), model.schema.n_classes
    as_family, belief = _family(g, model, q.values, state)
    inside = (q.bonus > 0)[None]
    waits = _any(g, g("And", state["legal"], inside))  # as long as something is to come, no decision
    saved = _any(g, g("And", g("And", g("Not", "mask"), inside), g("Greater", "price", np.float64(0))))
    lacks = g("And", g("And", g("Not", waits), saved), _any(g, state["legal"]))
    decide = g("Neg", g("MatMul", belief, q.values.loss))
    classes = g("Where", waits, np.full((1, K), NEVER, np.float32), decide)
    tests = g("Expand", q.bonus.astype(np.float32)[None], _size(g, F))
    return g("Where", lacks, as_family, g("Concat", classes, tests, axis=1)), belief


def _encoded(g: _Graph, encode: Any, state: Mapping[str, str]) -> str:
    x = state["values"]
    if encode.source is None:
        return g("Concat", x, state["mask"], axis=1)
    made, parts = g("Gather", x, encode.source, axis=1), encode.parts
    waves = "rate" in parts
    if waves:
        made = g("Sin", g("Add", g("Mul", made, parts["rate"]), parts["phase"]))
    else:
        made = g("Clip", g("Mul", g("Sub", made, parts["low"]), parts["slope"]), np.float32(0), np.float32(1))
    made = g("Mul", made, g("Gather", state["mask"], encode.owner, axis=1))
    return g("Concat", *([x] if waves else []), made, state["mask"], axis=1)


def _believe(g: _Graph, q: FamilyValues, seen: str, state: Mapping[str, str]) -> tuple[str, str]:
    hidden = g.layers(seen, q.trunks[0].layers)  # type: ignore[attr-defined]
    logits = g.layers(hidden, [q.class_logits], last=False)
    plain = g.softmax(logits)
    share = g("ReduceMean", state["mask"], axes=[1], keepdims=1)
    sure = g("Concat", share, g("Sqrt", share), g("ReduceMax", plain, axes=[1], keepdims=1), _entropy(g, plain), axis=1)
    cooled = g.layers(sure, q.temperature, last=False, act="Tanh")
    return hidden, g.softmax(g("Add", q.prior, g("Div", g("Sub", logits, q.prior), g("Exp", cooled))))


def _entropy(g: _Graph, belief: str) -> str:
    return g("Neg", g.sum(g("Mul", belief, g("Log", g("Max", belief, np.float32(1e-12))))))


def _family(g: _Graph, model: LearnedModel, q: FamilyValues, state: Mapping[str, str]) -> tuple[str, str]:
    F, K, scale = model.schema.n_tests, model.schema.n_classes, q.scale
    seen = _encoded(g, q.encoding, state)
    hidden, belief = _believe(g, q, seen, state)
    decide = g("MatMul", belief, q.loss)
    stop = g("ReduceMin", decide, axes=[1], keepdims=1)
    left = g("Unsqueeze", "left", np.array([1]))
    conditions = _conditions(g, q, left)
    guide = g.layers(g("Concat", seen, conditions, axis=1), q.trunks[1].layers)  # type: ignore[attr-defined]
    scores = g.layers(guide, [q.test_logits], last=False)
    parts = [*_summary(g, belief, stop, K), hidden, guide, state["mask"], conditions]
    if DESIGN.few_tests >= F:  # the share of tests that could be paid with what is left once a test is bought
        rest = g("Add", g("Sub", left, "price"), np.float64(1e-9 * q.alone[-1]))
        paid = g("GreaterOrEqual", g("Unsqueeze", rest, np.array([2])), q.alone[None, None])
        parts.append(g.cast(g("Div", g.sum(g.cast(paid, DOUBLE), keep=False), np.float64(F)), FLOAT))
    out = g.layers(g("Concat", *parts, axis=1), q.value_head, last=False)
    legal = state["legal"]
    price = g.cast(g("Mul", "price", np.float64(q.lam / scale.loss_scale)), FLOAT)
    lowest = g("Where", legal, scores, np.float32(-np.inf))
    top = g("ReduceMax", lowest, axes=[1], keepdims=1)
    some = g("Where", g("IsInf", top), np.float32(0), top)
    behind = g("Clip", g("Sub", some, scores), np.float32(0), np.float32(DESIGN.gap_limit))
    lean = g("Softplus", g("Sub", g.columns(out, F + 3, F + 4), np.float32(DESIGN.gap_offset)))
    judged = g("Add", stop, g("Mul", np.float32(own_share(F)), g.columns(out, 0, F)))
    worth = g("Add", g("Add", judged, g("Mul", lean, behind)), price)
    offers = legal
    if DESIGN.candidates < F:
        best = g.largest(lowest, DESIGN.candidates)
        offers = g("And", legal, g("GreaterOrEqual", scores, g.columns(best, DESIGN.candidates - 1, DESIGN.candidates)))
    pick = g("ArgMin", g("Where", offers, worth, np.float32(np.inf)), axis=1, keepdims=1)
    on = g("Add", g("GatherElements", worth, pick, axis=1), g.columns(out, F, F + 1))
    others = g("Sub", g("Neg", g("Max", worth, on)), np.float32(1e3))
    is_pick = g("Equal", np.arange(F)[None], pick)
    tests = g("Where", is_pick, g("Neg", g("Add", on, np.float32(DESIGN.tie_margin))), others)
    return g("Concat", g("Neg", decide), tests, axis=1), belief


def _summary(g: _Graph, belief: str, stop: str, K: int) -> list[str]:
    top = g.largest(belief, min(3, K))
    none = [g("Expand", np.zeros((1, 3 - K), np.float32), _size(g, 3 - K))] if K < 3 else []
    return [belief, top, *none, _entropy(g, belief), stop]


def _conditions(g: _Graph, q: FamilyValues, left: str) -> str:
    """`Scale.conditions`: the price is fixed, the budget left is an input; infinity is no budget."""
    scale = q.scale
    price = scale.conditions(np.full(1, q.lam), None)[:, : DESIGN.knots]
    low, high = scale.cheapest / 2, scale.total
    span = max(float(np.log(high / low)), 1e-9)
    at = g("Log", g("Div", g("Clip", left, np.float64(low), np.float64(high)), np.float64(low)))
    at = g("Mul", g("Div", at, np.float64(span)), np.float64(DESIGN.knots - 1))
    hats = g(
        "Max", np.float64(0), g("Sub", np.float64(1), g("Abs", g("Sub", at, np.arange(DESIGN.knots, dtype=np.float64)[None])))
    )
    free = g("GreaterOrEqual", left, np.float64(scale.total))
    hats = g("Where", free, np.float64(0), hats)
    return g("Concat", g("Expand", price, _size(g, DESIGN.knots)), g.cast(hats, FLOAT), g.cast(free, FLOAT), axis=1)
