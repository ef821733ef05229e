"""A checkpoint whose parts do not fit is refused in one sentence, whatever its checksum says."""

import copy

import pytest
from tests.support.patients import numbers

from askwise import AverageBudget, Budget, FamilyConfig, TrainConfig
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import AskwiseError
from askwise.family import run as family
from askwise.paper import run as paper

QUICK = FamilyConfig(max_steps=30, width=8, prefix_batch=16, parallel_cases=8, interim_measurements=2)
SMALL = TrainConfig(
    epoch=2, window_epochs=1, max_epochs=2, parallel_cases=4, batch_steps=16, memory_episodes=20, pretrain_steps=4, width=8
)
X, Y = numbers(60)
ROWS = Problem.build(Schema.build(["a", "b", "c"], [0, 1]), X, Y)
RUNS = {
    "family": lambda **more: family.run(ROWS, ROWS, Budget(), QUICK, **more),
    "paper": lambda **more: paper.run(ROWS, ROWS, AverageBudget(1), SMALL, save_every=0, **more),
}


class Enough(Exception):
    pass


@pytest.fixture(scope="module", params=RUNS)
def run(request):
    """A way to go on, and a state from the middle."""
    states = []

    def save(state):
        states.append(copy.deepcopy(state))
        if len(states) > 1:
            raise Enough

    with pytest.raises(Enough):
        RUNS[request.param](save=save)

    def go_on(state):
        """Until the next state would be saved."""

        def stop(_):
            raise Enough

        RUNS[request.param](resume=copy.deepcopy(state), save=stop)

    with pytest.raises(Enough):
        go_on(states[0])
    return go_on, states[0]


def refused(go_on, state) -> None:
    with pytest.raises(AskwiseError) as caught:
        go_on(state)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


WRONG = [None, "x", [], {}, -1, 10**400, float("nan")]


def test_facts_that_cannot_be(run):
    go_on, (arrays, facts) = run
    for name in facts:
        rest = {k: v for k, v in facts.items() if k != name}
        refused(go_on, (arrays, rest)) if name != "seconds" else None
        refused(go_on, (arrays, {**rest, name: object()}))
    for name in ("records", "rng", "run"):
        for value in ("x", 5, None, [5], [{}]):
            refused(go_on, (arrays, {**facts, name: value}))
    for name in {"step", "done", "seconds", "pretrained", "prefix_share", "phase"} & set(facts):
        for value in WRONG:
            refused(go_on, (arrays, {**facts, name: value}))


def test_records_that_cannot_be(run):
    go_on, (arrays, facts) = run
    assert facts["records"]
    for i, record in enumerate(facts["records"]):
        measured = {name: value for name, value in record.items() if isinstance(value, dict)}
        wrong = [{**record, name: value} for name in set(record) - set(measured) for value in (None, "x", {}, 10**400)]
        wrong += [
            {**record, part: {**figures, name: value}}
            for part, figures in measured.items()
            for name in ("cost", "loss", "n")
            for value in (None, "x", [[1]], 10**400)
        ]
        for each in wrong:
            records = [each if j == i else other for j, other in enumerate(facts["records"])]
            refused(go_on, (arrays, {**facts, "records": records}))


def test_arrays_that_cannot_be(run):
    go_on, (arrays, facts) = run
    for name, value in arrays.items():
        if name.split("/")[0] in ("memory", "least", "optimiser") and not name.endswith("row"):
            continue  # as large as the run was long
        refused(go_on, ({k: v for k, v in arrays.items() if k != name}, facts))
        refused(go_on, ({**arrays, name: value[..., None]}, facts))
        refused(go_on, ({**arrays, name: value.astype("<U5")}, facts))
        if name.endswith("row"):
            refused(go_on, ({**arrays, name: value + 10**6}, facts))
            refused(go_on, ({**arrays, name: -1 - value}, facts))
