"""The MDP: by hand, against a naive twin, and rebuilt from stored decisions."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.support.naive import NaiveCase, World, check_rules, random_world
from tests.support.policies import ValuesOf

from askwise.core.budget import HardBudget
from askwise.core.cases import Cases, State
from askwise.core.episode import Episodes, replay, rollout
from askwise.core.policy import Always, Choice, Greedy, Policy, random_policy


@dataclass
class Recording(Policy):
    """Acts like another policy and remembers what it saw."""

    policy: object
    seen: list[State] = field(default_factory=list)

    def act(self, state: State) -> Choice:
        self.seen.append(state)
        return self.policy.act(state)


@dataclass
class Script(Policy):
    """Takes prescribed actions, the same for every case."""

    actions: list[int]

    def act(self, state: State) -> Choice:
        B = len(state.mask)
        return Choice(np.full(B, self.actions.pop(0)), np.ones(B, np.float32))


def some_q(problem, seed=0):
    """Values that depend on all a policy can see, one case at a time."""
    W = np.random.default_rng(seed).normal(size=(len(problem.schema.columns) + problem.schema.n_tests, problem.schema.n_actions))

    def q(state: State):
        seen = np.concatenate([state.values, state.mask], 1)
        return np.array([[(row * w).sum() for w in W.T] for row in seen], np.float32)

    return q


def padded(done: Episodes):
    """E, L actions, as a memory stores them."""
    action = np.zeros((len(done.row), done.length.max()), np.int16)
    action[np.arange(done.length.max()) < done.length[:, None]] = done.action
    return action


def blood(hard=None, **more) -> World:
    """A history item, two blood tests that share a draw, and a panel derived from both. Actions: no, yes, age, t3, t4, panel."""
    return World(
        reveals={"age": ["age"], "t3": ["t3"], "t4": ["t4.a", "t4.b"], "panel": ["panel"]},
        costs={"age": 1, "t3": 0.2, "t4": 0.7},
        setup={"draw": (0.1, ["t3", "t4"])},
        derived={"panel": ["t3", "t4"]},
        X=np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], float),
        y=["no", "yes"],
        classes=["no", "yes"],
        hard=hard,
        **more,
    )


def legal_tests(world: World, held: list[str], row=0):
    """Names of the tests that may be bought."""
    p = world.problem()
    cases = Cases.start(p, np.array([row]), world.cap(p))
    for name in held:
        cases.step(np.array([p.schema.first_test + p.schema.tests.index(name)]))
    legal = cases.legal()[0]
    assert legal[: p.schema.n_classes].all()  # deciding is always possible
    return [name for name, may in zip(p.schema.tests, legal[p.schema.first_test :], strict=True) if may]


# ------------------------------------------------------------------ legal, by hand


@pytest.mark.parametrize(
    ("hard", "held", "expected"),
    [
        (None, [], ["age", "t3", "t4", "panel"]),
        (None, ["age", "t4"], ["t3", "panel"]),
        (0, [], []),
        (0.29, [], []),
        (0.3, [], ["t3"]),  # 0.2 and the draw
        (0.99, [], ["t3", "t4"]),
        (1.0, [], ["age", "t3", "t4", "panel"]),  # the panel is 0.1 + 0.2 + 0.7
        (1.0, ["t3"], ["t4", "panel"]),  # 0.7 left: exactly t4, and exactly what the panel still needs
        (1.0, ["panel"], ["t3", "t4"]),  # carried out already, so free
        (1.0, ["age"], []),
        (2.0, ["age", "t4"], ["t3", "panel"]),
        (1.9, ["age", "t4"], []),  # 1.8 spent, t3 is 0.2 more
    ],
)
def test_legal_tests_by_hand(hard, held, expected):
    assert legal_tests(blood(hard), held) == expected


def test_a_missing_value_is_not_for_sale():
    world = blood()
    world.X[0, 2] = np.nan  # one of the two columns of t4
    assert legal_tests(world, []) == ["age", "t3"]  # nor is the panel, which is computed from it
    assert legal_tests(world, [], row=1) == ["age", "t3", "t4", "panel"]


def test_what_is_computed_from_a_missing_value_is_not_for_sale_unless_it_is_known():
    world = blood()
    world.reveals["ratio"], world.costs["ratio"], world.derived["ratio"] = ["ratio"], 0, ["panel", "age"]
    world.X = np.c_[world.X, [1.0, 2.0]]
    world.X[0, 1] = np.nan  # t3, so no panel, and so no ratio
    assert legal_tests(world, []) == ["age", "t4"]
    world.known = ["panel"]
    assert legal_tests(world, []) == ["age", "t4", "ratio"]
    world.known = ["ratio"]
    assert legal_tests(world, []) == ["age", "t4"]


def test_estimating_missing_values_ignores_holes_but_not_the_budget():
    world = blood(hard=0.9)
    world.X[0, 2] = np.nan
    p = world.problem()
    legal = Cases.start(p, np.array([0]), world.cap(p)).legal(any_available=True)
    assert legal[0].tolist() == [True, True, False, True, True, False]


def test_what_is_known_is_not_for_sale_and_not_charged():
    world = blood(hard=0.3, known=["t3"])
    assert legal_tests(world, []) == []  # t4 with a draw of its own is 0.8
    world.hard = 0.8
    assert legal_tests(world, []) == ["t4", "panel"]


@pytest.mark.parametrize(
    ("hard", "held", "missing", "may_ask"),
    [
        (None, [], False, True),
        (1.0, [], False, True),  # it needs t3 and t4 with a draw
        (0.9, [], False, False),
        (1.9, ["age"], False, False),
        (2.0, ["age"], False, True),
        (1.0, ["t3"], False, True),  # only what is missing is paid
        (None, [], True, False),
    ],
)
def test_the_existing_classifier_by_hand(hard, held, missing, may_ask):
    world = blood(hard, needs=["t3", "t4"], external=["yes", "no"])
    if missing:
        world.X[0, 3] = np.nan
    p = world.problem()
    cases = Cases.start(p, np.array([0]), world.cap(p))
    for name in held:
        cases.step(np.array([p.schema.first_test + p.schema.tests.index(name)]))
    assert cases.legal()[0, p.schema.n_classes] == may_ask
    ask = np.array([p.schema.n_classes])
    assert cases.decision_of(ask).tolist() == [1]
    assert cases.loss_of(ask).tolist() == [1]  # it says yes, the truth is no
    cost = p.schema.costs.money(cases.cost_of(ask))
    assert cost == pytest.approx({(): 1.0, ("age",): 1.0, ("t3",): 0.7}[tuple(held)])
    cases.step(ask)
    assert cases.mask[0, [1, 2]].all()


def test_the_existing_classifier_does_not_pay_for_what_led_to_a_known_result():
    # it needs the panel, which is known; t3 and t4, from which a panel is computed, are of no use to it
    world = blood(hard=0, known=["panel"], needs=["panel"], external=["yes", "no"])
    p = world.problem()
    cases, ask = Cases.start(p, np.array([0]), world.cap(p)), np.array([p.schema.n_classes])
    assert cases.cost_of(ask).tolist() == [0]
    assert cases.legal()[0, p.schema.n_classes]


def test_a_budget_larger_than_all_prices_is_no_budget():
    p = blood().problem()
    cap = HardBudget(10**15).cap(p.schema.costs)
    assert Cases.start(p, np.array([0]), cap).legal().all()


# ------------------------------------------------------------------ what is seen


def test_only_what_is_held_is_seen():
    p = blood().problem()
    cases = Cases.start(p, np.array([1, 0]), None)
    cases.step(np.array([4, 2]))  # t4 of row 1, age of row 0
    state = cases.observe()
    assert state.values.tolist() == [[0, 0, 8, 9, 0], [1, 0, 0, 0, 0]]
    assert state.mask.tolist() == [[False, False, True, False], [True, False, False, False]]


def test_what_is_not_held_leaves_no_trace_not_even_a_sign():
    world = blood()
    one = Cases.start(world.problem(), np.array([0]), None).observe()
    world.X = -world.X
    other = Cases.start(world.problem(), np.array([0]), None).observe()
    assert one.values.tobytes() == other.values.tobytes()  # -0.0 would tell that the value is negative


def test_a_missing_value_looks_like_one_that_was_not_bought():
    world = blood()
    complete = Cases.start(world.problem(), np.array([0]), None).observe()
    world.X[0, 0] = np.nan
    holed = Cases.start(world.problem(), np.array([0]), None).observe()
    assert (complete.values == holed.values).all()
    assert (complete.mask == holed.mask).all()


def test_acting_leaves_the_data_alone():
    world = blood(known=["t3"])
    p = world.problem()
    X, known = p.X.copy(), p.known.copy()
    rollout(p, random_policy(np.random.default_rng(0)), None)
    assert (p.X == X).all()
    assert (p.known == known).all()


def test_without_labels_there_is_no_loss_but_a_decision():
    world = blood()
    world.y = None
    done = rollout(world.problem(), Always(1), None)
    assert done.decision.tolist() == [1, 1]
    assert done.loss.tolist() == [0, 0]


# ------------------------------------------------------------------ illegal actions


@pytest.mark.parametrize(
    ("actions", "hard"),
    [
        pytest.param([2], 0.9, id="too dear"),
        pytest.param([3, 3], None, id="bought twice"),
        pytest.param([4], None, id="missing"),
        pytest.param([2], None, id="known"),
        pytest.param([6], None, id="no such test"),
        pytest.param([-1], None, id="negative"),  # counted from the end it would be the panel, which is legal
    ],
)
def test_an_illegal_action_stops_the_program(actions, hard):
    world = blood(hard, known=["age"] if hard is None else None)
    world.X[0, 2] = np.nan
    p = world.problem()
    with pytest.raises((AssertionError, IndexError)):
        rollout(p, Script(actions), world.cap(p), rows=np.array([0]))


# ------------------------------------------------------------------ random worlds against the twin

WORLDS = range(200)


@pytest.mark.parametrize("seeds", [range(i, i + 20) for i in WORLDS[::20]], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_every_step_agrees_with_the_naive_twin(seeds):
    for s in seeds:
        world = random_world(s)
        p = world.problem()
        done = rollout(p, random_policy(np.random.default_rng(s)), world.cap(p))
        check_rules(world, p, done)
        steps = replay(p, done.row, padded(done), done.length, world.cap(p))
        state, cost, loss = steps.cases.observe(), steps.cases.cost_of(steps.action), steps.cases.loss_of(steps.action)
        assert (state.legal == steps.cases.legal()).all()
        at = 0
        for row, length in zip(done.row, done.length, strict=True):
            case = NaiveCase(world, int(row))
            for t in range(length):
                action = int(done.action[at])
                assert (steps.cases.row[at], steps.t[at], steps.action[at]) == (row, t, action)
                assert state.legal[at].tolist() == [case.legal(a) for a in range(len(case.actions()))], (s, at)
                assert state.values[at].tolist() == case.observation()
                assert int(cost[at]) * p.schema.costs.smallest_unit == case.cost_of(action), (s, at)
                assert loss[at] == case.loss_of(action)
                case.step(action)
                at += 1


@dataclass
class InTurn(Policy):
    """Buys tests in a fixed order, as far as they can be had, and says the first class."""

    tests: np.ndarray
    first_test: int

    def act(self, state: State) -> Choice:
        wanted = state.legal[:, self.first_test + self.tests]
        action = np.where(wanted.any(1), self.first_test + self.tests[wanted.argmax(1)], 0)
        return Choice(action, np.ones(len(action), np.float32))


class Ahead(InTurn):
    @property
    def fixed_order(self):
        return self.tests


def test_what_is_bought_ahead_is_what_would_be_bought_step_by_step():
    for s in WORLDS:
        world = random_world(s)
        p, rng = world.problem(), np.random.default_rng(s)
        tests = rng.permutation(p.schema.n_tests)[: rng.integers(1, p.schema.n_tests + 1)]
        slow, fast = (rollout(p, kind(tests, p.schema.first_test), world.cap(p)) for kind in (InTurn, Ahead))
        check_rules(world, p, fast)
        for name in Episodes.__dataclass_fields__:
            assert np.array_equal(getattr(slow, name), getattr(fast, name)), (s, name)


def test_replay_gives_the_very_states_that_were_visited():
    for s in WORLDS[:60]:
        world = random_world(s)
        p, policy = world.problem(), Recording(random_policy(np.random.default_rng(s)))
        cap = world.cap(p)
        episodes = [rollout(p, policy, cap, rows=np.array([row])) for row in (3, 0, 3, 1, 4)]  # any order, also twice
        length = np.array([e.length[0] for e in episodes])
        action = np.zeros((5, length.max()), np.int16)
        for e, episode in enumerate(episodes):
            action[e, : length[e]] = episode.action
        rebuilt = replay(p, np.array([3, 0, 3, 1, 4]), action, length, cap).cases.observe()
        assert rebuilt.place is None  # it is of no rollout
        for name in set(State._fields) - {"place"}:
            if name == "left" and cap is None:
                assert rebuilt.left is None
                continue
            visited = np.concatenate([getattr(state, name) for state in policy.seen])
            assert np.array_equal(getattr(rebuilt, name), visited), (s, name)


def test_replay_does_not_read_beyond_the_end_of_an_episode():
    world = blood()
    p = world.problem()
    # the memory reuses its places: after the end of an episode there are actions of an older one
    steps = replay(p, np.array([0, 1]), np.array([[2, 0, 3], [5, 2, 1]], np.int16), np.array([2, 3]), None)
    assert steps.episode.tolist() == [0, 0, 1, 1, 1]
    assert steps.t.tolist() == [0, 1, 0, 1, 2]
    assert steps.action.tolist() == [2, 0, 5, 2, 1]
    bought = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 1]], bool)
    assert (steps.cases.mask == bought).all()


def test_the_cost_reported_is_the_sum_of_what_each_step_cost():
    for s in WORLDS[:60]:
        world = random_world(s)
        p = world.problem()
        done = rollout(p, random_policy(np.random.default_rng(s)), world.cap(p))
        steps = replay(p, done.row, padded(done), done.length, world.cap(p))
        paid = np.zeros(len(done.row), np.int64)
        np.add.at(paid, steps.episode, steps.cases.cost_of(steps.action))
        assert paid.tolist() == done.cost.tolist(), s


def test_a_batch_of_one_equals_a_batch_of_many_whatever_the_chunk():
    for s in WORLDS[:60]:
        world = random_world(s)
        p = world.problem()
        policy, cap = Greedy(ValuesOf(some_q(p, s))), world.cap(p)
        together = rollout(p, policy, cap)
        alone = [rollout(p.take(np.array([row])), policy, cap) for row in range(len(p))]
        chunks = [rollout(p, policy, cap, chunk=chunk) for chunk in (1, 2, 3)]
        for name in Episodes.__dataclass_fields__:
            expected = getattr(together, name)
            if expected is None:  # beliefs, which were not asked for
                continue
            for done in chunks:
                assert np.array_equal(getattr(done, name), expected), (s, name)
            if name != "row":  # a problem of one row numbers it 0
                assert np.array_equal(np.concatenate([getattr(one, name) for one in alone]), expected), (s, name)


def test_episodes_lie_one_after_the_other():
    p = blood().problem()
    done = rollout(p, random_policy(np.random.default_rng(2)), None, rows=np.array([1, 0, 1, 1, 0]))
    assert done.row.tolist() == [1, 0, 1, 1, 0]
    assert done.length.sum() == len(done.action) == len(done.probability)
    assert done.first.tolist() == [0, *np.cumsum(done.length)[:-1]]
    ends = done.first + done.length - 1
    assert (done.action[ends] == done.decision).all()
    assert (np.delete(done.action, ends) >= p.schema.first_test).all()
