"""Whichever way a case comes in, the same is bought, in the same order, for the same money, and the same is decided: `predict`,
`acquire`, a session, functions that fetch, `askwise ask --simulate`, the HTTP API, an .npz file and an ONNX graph.

Problems have chains of derived tests, set-ups, free tests, tests that everyone or some know, and gaps, also of a derived test's
sources only; policies are adaptive, along an order, mixtures and under hard budgets; models may be told what is missing.
"""

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.models import answer, family, lacking, paper
from tests.support.naive import NaiveCosts, random_prices

import askwise
from askwise import AverageBudget, HardBudget
from askwise.cli.ask import simulated
from askwise.core.sampling import hash_cases, uniform

N = 6
KINDS = {
    "adaptive": (family, None),
    "an order": (family, AverageBudget(1.5)),
    "a mixture": (family, AverageBudget(1.1)),
    "a hard budget": (family, HardBudget(2)),
    "an order within a hard budget": (family, AverageBudget(1.5) & HardBudget(2)),
    "log loss": (partial(family, loss="log"), None),
    "Brier score, a mixture": (partial(family, loss="brier"), AverageBudget(1.1)),
    "paper": (paper, None),
    "paper, a mixture": (paper, AverageBudget(0.7)),
    "what is missing, adaptive": (partial(family, missing="informative"), None),
    "what is missing, a mixture": (partial(family, missing="informative"), AverageBudget(1.1)),
    "what is missing, paper": (partial(paper, missing="informative"), None),
}


def problem_of(seed: int, make, budget):
    """A model with random weights, its prices read aloud, and rows to decide, each with what it knows."""
    rng = np.random.default_rng(seed)
    tests = [f"t{i}" for i in range(rng.integers(3, 7))]
    costs, setup, derived = random_prices(rng, tests)
    costs = {test: costs.get(test, "0") for test in tests}
    X = pd.DataFrame(rng.integers(-40, 40, (60, len(tests))) / 16, columns=tests)
    everyone = [str(t) for t in rng.choice(tests, rng.integers(0, 2), replace=False)]
    past = X.mask(np.random.default_rng(seed).random(X.shape) < 0.3) if "missing" in getattr(make, "keywords", {}) else X
    model = make(past, rng.choice(["ill", "well"], 60), seed=seed, known=everyone, costs=costs, setup=setup, derived=derived)
    if model.family is not None:  # whoever cannot follow the order spends its money otherwise
        model = replace(model, points=tuple(replace(p, lam=0.0) if p.prefix else p for p in model.points))
    rows = X[:N].mask(rng.random((N, len(tests))) < 0.25)
    knows = (rng.random(rows.shape) < 0.15) & rows.notna().to_numpy()
    knows |= np.isin(tests, everyone) & rows.notna().to_numpy()
    return model.at(budget), NaiveCosts(costs, setup, derived), rows, knows


class Graph:
    """A case decided by an ONNX graph, whose caller knows prices, and which cells of a row are empty."""

    def __init__(self, path, prices):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.run = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        said = self.run.get_modelmeta().custom_metadata_map
        self.said, self.costs = {name: json.loads(text) for name, text in said.items()}, prices

    def decide(self, row, knows, case_id):
        tests, classes = self.said["tests"], self.said["classes"]
        draw = uniform(hash_cases(np.array([case_id])), self.said["seed"])
        cap = self.said["cap_second" if draw[0] < self.said["share"] else "cap"]
        gone = [t for t in row.index if np.isnan(row[t])]
        row = pd.concat([row, pd.Series({c: float(not set(of).isdisjoint(gone)) for c, of in self.said["missing"].items()})])
        told = tests[len(knows) :]  # the test that tells what is missing, if there is one
        there = np.array([t not in (*gone, *told, *self.said["known"]) for t in tests])
        known = {t for t, has in zip(tests, knows, strict=False) if has}
        bought: list[str] = []
        while True:
            held = {*known, *bought}
            price = [0.0 if t in told else float(self.costs.price(t, held, known)) for t in tests]
            left = np.inf if cap is None else float(Fraction(str(cap)) - self.costs.cost(held, known))
            legal = there & (np.array(price) <= left)
            given = {
                "values": row[self.said["columns"]].fillna(7).to_numpy(float)[None], "mask": np.isin(tests, [*held, *told])[None],
                "legal": legal[None], "test_cost": np.array([price]), "left": np.array([left]),
            }  # fmt: skip
            if self.said["share"]:
                given["draw"] = draw
            action = int(self.run.run(["action"], given)[0][0])
            if action < len(classes):
                return tuple(bought), classes[action], self.costs.cost(set(bought) | known, known)
            bought.append(tests[action - len(classes)])


def by_session(session, row):
    while (step := session.next()).decision is None:
        session.tell(step.test, answer(session.model, row, step.test), outside=True)
    return tuple(session.answers), step.decision, session.cost


def by_http(client, cases, model, rows):
    """One batch after the other, with all that was answered so far."""
    done: dict[int, tuple] = {}
    while len(done) < len(cases):
        for i, step in enumerate(client.post("/api/models/m/batch", json={"cases": cases}).json()["steps"]):
            assert "error" not in step, step
            if step["decision"] is not None:
                done[i] = tuple(cases[i]["answers"]), step["decision"], step["cost"]
            else:
                cases[i]["answers"][step["test"]] = answer(model, rows.iloc[i], step["test"])
    return [done[i] for i in range(len(cases))]


def same(found, report):
    for i, (tests, decision, cost) in enumerate(found):
        assert (tests, decision) == (report.tests[i], report.prediction[i]), i
        assert float(cost) == pytest.approx(report.cost[i])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_every_way_in_agrees(kind, seed, make_client, tmp_path_factory):
    model, prices, rows, knows = problem_of(seed, *KINDS[kind])
    tests, ids = model.schema.offered, [f"case {i}" for i in range(N)]
    report = model.acquire(rows, known=knows, ids=ids)
    assert model.predict(rows, known=knows, ids=ids).tolist() == report.prediction.tolist()
    each = [row for _, row in rows.iterrows()]
    known = [{t: row[t] for t, has in zip(tests, some, strict=True) if has} for row, some in zip(each, knows, strict=True)]
    gone = [lacking(model, row) for row in each]

    sessions = [model.session(k, refused=r, case_id=i, outside=True) for k, r, i in zip(known, gone, ids, strict=True)]
    same([by_session(session, row) for session, row in zip(sessions, each, strict=True)], report)

    providers = {test: lambda row, test=test: answer(model, row, test) for test in tests}
    done = model.decide_many(each, providers, known=known, refused=gone, case_ids=ids)
    same([(d.tests, d.decision, d.cost) for d in done], report)

    cases = [{"known": k, "answers": {}, "refused": r, "case_id": i, "outside": True}
             for k, r, i in zip(known, gone, ids, strict=True)]  # fmt: skip
    same(by_http(make_client(of={"m": model}), cases, model, rows), report)

    here = tmp_path_factory.mktemp("exported")
    model.export(here / "m.npz")
    other = askwise.load(here / "m.npz").at(model.budget).acquire(rows, known=knows, ids=ids)
    same(zip(other.tests, other.prediction, other.cost, strict=True), report)

    model.export(here / "m.onnx")
    graph = Graph(here / "m.onnx", prices)
    same([graph.decide(row, some, i) for row, some, i in zip(each, knows, ids, strict=True)], report)

    plain = model.acquire(rows)  # as the command does: what everyone knows, and draws by the values of a row
    done = simulated(model, rows, ids)
    same([(d.tests, d.decision, d.cost) for d in done], plain)
