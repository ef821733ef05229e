"""What must hold for a model that was read from a file. Files come from anywhere, so nothing in one is believed."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from askwise.core.arrays import Arrays, Doubles
from askwise.core.cases import Cases
from askwise.core.costs import COUNTED, _circle
from askwise.core.labels import LONGEST_LABEL
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.core.scoring import RULES
from askwise.errors import Doubt, StateError, must
from askwise.frontier.point import Point
from askwise.model import alternatives, fit_rows, purchases, targeting
from askwise.model.model import LearnedModel
from askwise.stack.checks import check_numbers
from askwise.stack.inference import Stack

MATRICES = {f"family/{name}" for name in ("calibration", "linear.main", "linear.by_set", "stages.sets")}
MATRICES |= {"loss", "costs/member", "costs/sources"}
CONVOLUTION = re.compile(r"(family/classifier|family/selector\.encoder|point/\d+/encoder)\.body\.\d+\.weight")


def are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values)


def fraction(text: Any) -> Fraction:
    """An amount of money."""
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,40}(/\d{1,40})?", text):
        raise StateError(f"{text!r:.40} is not an amount of money")
    return Fraction(text)


def scoring_rule(word: Any) -> str | None:
    """The rule by which beliefs were judged, if they were."""
    must(word is None or (isinstance(word, str) and word in RULES), "the scoring rule is known")
    return None if word is None else str(word)


def class_names(names: Any, sort: Any) -> tuple[Any, ...]:
    """The classes, each of the type that it had. How long their texts are is not believed, but counted."""
    kinds: dict[str, Any] = {"U": str, "b": bool, "i": int, "u": int, "f": float}
    kind = kinds.get(sort.lstrip("<>|=")[:1]) if isinstance(sort, str) else None
    must(kind is not None and isinstance(names, list), "classes have a type")
    must(all(type(c) is kind for c in names), "all classes are of one type")
    if kind is str:
        must(all(len(c) <= LONGEST_LABEL for c in names) and np.asarray(names).dtype.str == sort, "class names are short enough")
    else:
        must(are_numbers(map(float, names)), "classes are finite")
    return tuple(names)


def check_arrays(arrays: Arrays, schema: Schema, own_encoder: bool) -> None:
    """Shapes and types of all arrays but the weights, and how many dimensions these have: with more of them they would grow when
    they are added, or fit only so many cases."""
    F, K, D, C, S = schema.n_tests, schema.n_classes, schema.n_decisions, len(schema.columns), len(schema.costs.setup)
    expected = {
        "costs/own": ((F,), "i"),
        "costs/setup": ((schema.costs.member.shape[1],), "i"),
        "costs/member": ((F, S), "b"),
        "costs/sources": ((F, F), "b"),
        "costs/decisions": ((D - K,), "i"),
        "owner": ((C,), "i"),
        "loss": ((K, D), "f"),
        **({} if schema.external_needs is None else {"external_needs": ((F,), "b")}),
    }
    if "targeted/counts" in arrays:
        n = len(arrays["targeted/counts"])
        expected |= {f"targeted/{name}": ((n, K, D), "f") for name in ("counts", "believed")}
        expected["targeted/class_weights"] = ((n, K), "f")
        expected |= {"targeted/cases": ((K,), "f")} if "targeted/cases" in arrays else {}
    for name, (shape, kind) in expected.items():
        array = arrays[name]
        if array.shape != shape or array.dtype.kind != kind:
            raise StateError(f"{name!r} is {array.dtype} of shape {array.shape}, and should have shape {shape}")
    if not own_encoder:
        dimensions = {name: 2 if name.endswith(".weight") or name in MATRICES else 1 for name in arrays}
        side_by_side = re.compile(r"family/(heads|networks)\.\d+\.")
        dimensions |= {name: 3 for name in arrays if side_by_side.match(name)}
        dimensions |= {name: 4 for name in arrays if CONVOLUTION.fullmatch(name) and arrays[name].ndim == 4}
        dimensions |= {name: arrays[name].ndim for name in expected}
        must(all(arrays[name].ndim == n for name, n in dimensions.items()), "arrays have the right dimensions")


def check_network(weights: Arrays, schema: Schema, i: int) -> None:
    """The network of one point of the paper's algorithm."""
    inputs, outputs = weights["encoder.0.weight"].shape[1], weights["head.weight"].shape[0]
    if (inputs, outputs) != (len(schema.columns) + schema.n_tests, 1 + schema.n_actions):
        raise StateError(f"the network of point {i} does not fit its {schema.n_tests} tests and {schema.n_classes} classes")


def checked(model: LearnedModel) -> LearnedModel:
    """Everything that a model says of itself is checked; then each of its parts is used once. What comes back asks for no target
    that it does not reach."""
    _check_names(model)
    _check_gaps(model)
    _check_costs(model)
    _check_facts(model.facts)
    must(purchases.fits(model), "the shares of bought tests are valid")
    must(alternatives.fits(model), "the figures of other policies are valid")
    must(fit_rows.fits(model.facts), "the numbers of the rows of the fit are valid")
    _check_points(model)
    _check_targeted(model)
    model, unreached = targeting.nearest(model)
    for sentence in unreached:
        warnings.warn(sentence, Doubt, stacklevel=4)
    _rehearse(model)
    return model


def _check_names(model: LearnedModel) -> None:
    schema = model.schema
    texts = (*schema.columns, *schema.tests, *schema.other_decisions, *model.known, model.unit)
    must(all(isinstance(name, str) for name in texts), "names are text")
    must(len(set(schema.decisions)) == schema.n_decisions, "decisions are different")
    must(len(set(schema.tests)) == schema.n_tests and len(set(schema.classes)) == schema.n_classes > 1, "names are unique")
    must(model.encoding.engine_columns == list(schema.columns), "the encoding has the columns of the network")
    must(set(model.known) <= set(schema.tests), "what is known is a test")
    must(set(schema.owner.tolist()) == set(range(schema.n_tests)), "each test reveals a column")


def _check_gaps(model: LearnedModel) -> None:
    """The test that tells what is missing, if there is one, is the last; it is free, and has nothing to do with others."""
    schema, costs, last, n = model.schema, model.schema.costs, model.schema.n_tests - 1, len(model.encoding.gaps)
    if not n:
        return
    alone = not costs.own[last] and not any(m.any() for m in (costs.member[last], costs.sources[last], costs.sources[:, last]))
    must(alone and (schema.external_needs is None or not schema.external_needs[last]), "what tells what is missing is free")
    must((schema.owner[-n:] == last).all() and not (schema.owner[:-n] == last).any(), "what is missing is told by the last test")
    must(schema.tests[last] not in model.known, "what is missing is told to everyone")


def _check_costs(model: LearnedModel) -> None:
    costs, loss = model.schema.costs, model.loss
    unit = costs.smallest_unit
    must(unit > 0 and unit.denominator < COUNTED and unit.numerator == 1, "money is counted in units")
    whole = [
        *costs.own.tolist(),
        *costs.setup.tolist(),
        *costs.decisions.tolist(),
    ]  # Python's own numbers, which do not wrap around
    must(min(whole) >= 0 and sum(whole) < COUNTED, "costs are 0 or more, and can be counted")
    must(_circle(costs.sources) is None, "no test is computed from itself")
    must(bool(np.isfinite(loss).all() and (loss >= 0).all() and loss.any()), "losses are 0 or more")
    wrong = loss.max(1, keepdims=True) * (1 - np.eye(*loss.shape))
    must(model.rule is None or (model.family is not None and np.array_equal(loss, wrong)), "the losses fit the scoring rule")
    must(type(model.seed) is int and 0 <= model.seed < 2**63, "the seed is a whole number of 64 bits")
    must(len(model.at_once) == model.schema.n_decisions and are_numbers(model.at_once), "the values of decisions are numbers")


def _check_facts(facts: Mapping[str, Any]) -> None:
    must(isinstance(facts, dict) and {"seconds", "stopped", "config"} <= set(facts), "the facts are complete")
    seconds, loss_scale = facts["seconds"], facts["loss_scale"]
    fine = are_numbers([seconds, loss_scale]) and 0 <= seconds < 1e12 and loss_scale > 0
    must(fine, "time and the scale of the losses are numbers")
    counts = [*facts["rows"], facts["drawn"]] if "drawn" in facts else [1, 0, 0]
    fine = len(counts) == 3 and all(type(n) is int and 0 <= n < 2**53 for n in counts) and counts[0] > 0
    must(fine, "the rows that were used are counted")
    must(all(_are_rows(facts.get(name, []), n) for name, n in (("records", 5), ("areas", 2))), "the training record is complete")


def _are_rows(rows: Any, n: int) -> bool:
    """Rows of n numbers each."""
    return isinstance(rows, list) and all(isinstance(row, list) and len(row) == n and are_numbers(row) for row in rows)


def _check_points(model: LearnedModel) -> None:
    points, first = (*model.points, *model.targeted), model.points[0]
    optional = [x for p in points for x in (p.prefix, p.cap, p.breadth) if x is not None]
    must(are_numbers([*optional, *(x for p in points for x in p.shown.values())]), "points are numbers")
    counts = [
        (x, most)
        for p in points
        for x, most in ((p.measure.n, 2**62), (p.cap, 2**62), (p.prefix, model.schema.n_tests), (p.breadth, 2**31))
    ]
    must(all(x is None or (type(x) is int and 0 <= x <= most) for x, most in counts), "points are counted in whole numbers")
    for p in points:
        named = [] if p.tests is None else [t for t in p.tests if type(t) is int and 0 <= t < model.schema.n_tests]
        fine = p.tests is None or (len(set(named)) == len(p.tests) == p.prefix and p.cap is not None)
        must(fine, "a set of tests has each of them once")
    rising = [p.cost for p in model.points]
    must(first.weights is None and first.cost == 0 and rising == sorted(rising), "the points rise from deciding at once")


def _check_targeted(model: LearnedModel) -> None:
    """Points that were measured class by class, and a budget that asks for no more than they know."""
    points = model.targeted
    targeting.check(model.budget, model.schema.classes, bool(points), str(model.facts.get("algorithm")))
    if not points:
        return
    must(isinstance(model.family, Stack) and model.family.weighs and model.rule is None, "only a stack has weighed classes")
    for p in points:
        tables = [np.asarray(t, float) for t in (p.counts, p.believed)]
        fine = all(bool(np.isfinite(t).all() and (t >= 0).all() and t.sum() > 0) for t in tables)
        must(fine, "what became of each class is counted")
        must(p.cases is None or _are_worth(p.cases, tables[0].sum(1)), "the cases of each class are worth some")
        weights = np.array(p.class_weights or [1.0])
        must(bool((weights > 1e-6).all() and (weights < 1e6).all()), "the weights of classes are positive")
    must(points[0].prefix == 0 and points[0].cost == 0 and points[0].class_weights is None, "the first decides at once")


def _are_worth(cases: Doubles, counted: Doubles) -> bool:
    return bool(np.isfinite(cases).all() and (cases >= 0).all() and (cases[counted > 0] > 0).all())


def _rehearse(model: LearnedModel) -> None:
    """Uses every part of a model once, on a case that knows nothing and on one that knows everything."""
    schema = model.schema
    known = np.stack([np.zeros(schema.n_tests, bool), np.ones(schema.n_tests, bool)])
    values = np.zeros((2, len(schema.columns)), np.float32)
    external = None if schema.external_needs is None else np.zeros(2, np.int64)
    external_belief = None if external is None or model.rule is None else np.full((2, schema.n_classes), 1 / schema.n_classes)
    problem = Problem(schema, values, None, None, known, model.loss, None, external, None, model.rule, external_belief)
    state = Cases.start(problem, np.arange(2), model.cap).observe()
    shared = None if model.family is None else model.family.weights
    # points of a family that differ only in their limits are the same network
    different = model.points[1:] if shared is None else _different(model)
    check_numbers(shared or {})
    for point in different:
        check_numbers({} if shared else point.weights or {})
        q = model.arm(point).values(state)
        must(q.shape == state.legal.shape and bool(np.isfinite(q).all()), "the networks fit the tests and classes")
    model.belief(problem, model.rollout(problem))


def _different(model: LearnedModel) -> Iterable[Point]:
    """Points of a family that are not computed alike; at each class weight one that depends on it."""
    weighed = {p.class_weights: p for p in model.targeted if p.prefix is None}
    return [*{(p.lam, p.prefix, p.breadth, p.tests): p for p in model.points}.values(), *weighed.values()]
