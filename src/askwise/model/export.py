"""A model for other runtimes: `.npz` for NumPy alone, `.onnx` for onnxruntime.

The ONNX graph is one step of the policy at the model's budget, for any number of cases. What it is given is raw: it scales the
columns itself, so that nothing of askwise is needed beside it. `docs/export.md` says what its inputs and outputs mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from askwise.components.pictures import Convolutions
from askwise.core.cases import State
from askwise.core.policy import free_first, greedy
from askwise.errors import InputError
from askwise.files import write_whole
from askwise.model.model import LearnedModel
from askwise.model.onnx_graph import KINDS, OF_TREES, Graph, GraphArray

OPSETS, IR = {"": 17, OF_TREES: 3}, 8  # old enough for every onnxruntime of the last years


def export(model: LearnedModel, path: str | Path) -> None:
    """Writes a model for another runtime, which the ending of the path names."""
    path = Path(path)
    if path.suffix not in (".npz", ".onnx"):
        raise InputError(f"cannot export to {path.name!r}; its name must end in .npz, for NumPy, or .onnx, for onnxruntime")
    if model.external is not None:
        raise InputError("a model with an existing classifier cannot be exported: that classifier would have to go with it")
    if model.encoder is not None:
        what = "convolutions" if isinstance(model.encoder, Convolutions) else "an encoder of your own"
        raise InputError(f"a model with {what} cannot be exported: only torch computes that")
    if path.suffix == ".npz":
        from askwise.model.file import save_npz

        save_npz(model, path)
    else:
        write_whole(path, onnx_bytes(model))


def onnx_bytes(model: LearnedModel) -> bytes:
    """The policy as an ONNX file."""
    try:
        from onnx import helper
    except ImportError:
        raise InputError("an export to ONNX needs the package onnx; install 'askwise[export]'") from None
    graph, C, F = Graph(), len(model.schema.columns), model.schema.n_tests
    sorts: dict[str, Any] = {"values": (float, C), "mask": (bool, F), "legal": (bool, F), "test_cost": (float, F)}
    sorts |= {"left": (float,), "draw": (float,)} if model.blend.drawn else {"left": (float,)}
    inputs = {name: graph.input(name, *sort) for name, sort in sorts.items()}
    whole = onnx_model(graph, inputs, step(model, **inputs))
    helper.set_model_props(whole, {name: json.dumps(value) for name, value in onnx_card(model).items()})
    return bytes(whole.SerializeToString())


def step(model: LearnedModel, values: Any, mask: Any, legal: Any, test_cost: Any, left: Any, draw: Any = None) -> dict[str, Any]:
    """One step of the model's policy for B cases: what to do, how good each action is, and the class probabilities.

    values: B, C, not scaled; mask, legal, test_cost: B, F, of the tests; left: B, infinity for no budget; draw: B, of a mixture.
    Arrays, or those of a `Graph`.
    """
    schema = model.schema
    mean, deviation = (np.concatenate([getattr(p, name) for p in model.encoding.parts]) for name in ("mean", "deviation"))
    scaled = ((values - mean) / deviation).astype(np.float32)
    decides = [np.full_like(mask[:, :1], True)] * schema.n_classes
    half = float(schema.costs.smallest_unit) / 2  # amounts are whole units, however they are rounded
    decides += [(left[:, None] > fee - half) for fee in schema.costs.money(schema.costs.decisions.astype(float)).tolist()]
    state = free_first(
        State(
            np.where(schema.by_column(mask), scaled, np.float32(0)),  # whatever stands where nothing is known
            mask,
            np.concatenate([*decides, schema.costs.obtainable(legal & ~mask, mask)], 1),
            np.zeros_like(left),  # nothing is drawn from a key here
            left,
            test_cost,
        )
    )
    first, second = model.followed
    q = model.arm(first).values(state)
    if model.blend.drawn:
        q = np.where((draw < model.blend.drawn)[:, None], model.arm(second).values(state), q)
    belief = model.believed(q) if model.family is None else model.family.values(0.0).believe(state.values, mask)
    return {"action": greedy(q, state.legal), "q": q, "probabilities": belief.astype(np.float32)}


def onnx_model(graph: Graph, inputs: dict[str, GraphArray], outputs: dict[str, GraphArray]) -> Any:
    """All that the outputs need, checked."""
    from onnx import checker, helper, numpy_helper

    def described(arrays: dict[str, GraphArray]) -> list[Any]:
        return [helper.make_tensor_value_info(name, KINDS[x.dtype], ["cases", *x.shape[1:]]) for name, x in arrays.items()]

    nodes, constants = graph.needed([x.name for x in outputs.values()])
    sets = sorted({"", *(node.attributes.get("domain", "") for node in nodes)})
    whole = helper.make_model(
        helper.make_graph(
            [
                *(helper.make_node(operation, names, results, **attributes) for operation, names, results, attributes in nodes),
                *(helper.make_node("Identity", [x.name], [name]) for name, x in outputs.items()),
            ],
            "askwise",
            described(inputs),
            described(outputs),
            [numpy_helper.from_array(value, name) for name, value in constants.items()],
        ),
        opset_imports=[helper.make_opsetid(name, OPSETS[name]) for name in sets],
        ir_version=IR,
        producer_name="askwise",
    )
    checker.check_model(whole)
    return whole


def onnx_card(model: LearnedModel) -> dict[str, Any]:
    """What an ONNX file says of itself."""
    schema, costs = model.schema, model.schema.costs
    limits = [None if (cap := model.limit(p)) is None else float(costs.money(cap)) for p in model.followed]
    return {
        "format": "askwise-onnx-2",
        "columns": list(schema.columns),
        "tests": list(schema.tests),
        "classes": list(schema.classes),
        "other_decisions": list(schema.other_decisions),
        "decision_costs": np.asarray(costs.money(costs.decisions), float).tolist(),
        "owner": schema.owner.tolist(),
        "costs": np.asarray(costs.money(costs.own), float).tolist(),
        "setup": np.asarray(costs.money(costs.setup), float).tolist(),
        "member": costs.member.astype(int).tolist(),
        "sources": costs.sources.astype(int).tolist(),
        "known": [*model.known, *schema.tests[len(schema.offered) :]],
        "missing": {part.name: names for part, names in zip(model.encoding.gaps, model.form.gap_tests, strict=True)},
        "cap": limits[0],
        "cap_second": limits[1],
        "share": model.blend.drawn,
        "seed": model.seed,
        "unit": model.unit,
        "fingerprint": model.fingerprint,
    }
