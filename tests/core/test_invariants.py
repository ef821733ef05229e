"""What no policy can do, whatever it wants: 1,000 small worlds, each decided by every kind of policy."""

import numpy as np
import pytest
from tests.support.naive import NaiveCase, check_rules, random_world
from tests.support.policies import ValuesOf

from askwise.core.cases import State
from askwise.core.episode import rollout
from askwise.core.policy import Always, Exploring, Greedy, Mixture, random_policy

CHUNK = 50


def policies(problem, seed):
    schema, rng = problem.schema, np.random.default_rng(seed)

    def q(state: State):  # values that favour buying, so that budgets bind
        values = rng.normal(size=state.legal.shape).astype(np.float32)
        values[:, schema.n_classes :] += 1
        return values

    best = Greedy(ValuesOf(q))
    return [random_policy(rng), best, Exploring(q, 0.3, rng), Mixture(best, Always(1), 0.5, seed), Always(0)]


@pytest.mark.parametrize("start", range(0, 1000, CHUNK))
def test_no_policy_breaks_the_rules(start):
    for seed in range(start, start + CHUNK):
        world = random_world(seed, rows=4)
        problem = world.problem()
        for policy in policies(problem, seed):
            done = rollout(problem, policy, world.cap(problem))
            assert len(done.row) == 4
            check_rules(world, problem, done)


def test_with_nothing_to_spend_and_nothing_free_the_decision_comes_at_once():
    decided = 0
    for seed in range(1000):
        world = random_world(seed, rows=4)
        world.hard = 0
        problem = world.problem()
        first = [NaiveCase(world, row) for row in range(4)]
        # where nothing at all is free, not even through what is known
        if any(case.cost_of(a) == 0 for case in first for a in range(len(world.classes), len(case.actions()))):
            continue
        decided += 1
        for policy in policies(problem, seed):
            assert rollout(problem, policy, world.cap(problem)).length.tolist() == [1] * 4, seed
    assert decided > 100


def test_the_worlds_hold_every_complication():
    # guards the generator: a rule is only tested where it matters
    worlds = [random_world(seed, rows=4) for seed in range(1000)]
    common = {
        "set-ups": sum(bool(w.setup) for w in worlds),
        "derived": sum(bool(w.derived) for w in worlds),
        "derived of derived": sum(any(s in w.derived for ss in w.derived.values() for s in ss) for w in worlds),
        "missing": sum(bool(np.isnan(w.X).any()) for w in worlds),
        "known": sum(w.known is not None for w in worlds),
        "existing classifier": sum(w.needs is not None for w in worlds),
        "several columns": sum(any(len(c) > 1 for c in w.reveals.values()) for w in worlds),
        "no budget": sum(w.hard is None for w in worlds),
        "budget 0": sum(w.hard == 0 for w in worlds),
        "budget below the cheapest": sum(w.hard == 0.05 for w in worlds),
    }
    assert {what: n for what, n in common.items() if n < 50} == {}
