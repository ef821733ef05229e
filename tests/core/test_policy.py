"""Policies: ties, probabilities, and draws that belong to the case."""

import numpy as np
import pytest
from tests.support.policies import ValuesOf

from askwise.core.cases import Cases, State
from askwise.core.episode import rollout
from askwise.core.policy import Always, Choice, Constant, Exploring, Greedy, Mixture, Policy, greedy, random_policy
from askwise.core.problem import Problem
from askwise.core.sampling import uniform
from askwise.core.schema import Schema
from askwise.errors import InputError


def state(legal, key=None) -> State:
    legal = np.asarray(legal, bool)
    B = len(legal)
    return State(
        np.zeros((B, 1), np.float32), np.zeros((B, 1), bool), legal, np.arange(B, dtype=np.uint64) if key is None else key
    )


def problem(rows: int, ids=True) -> Problem:
    schema = Schema.build(["a", "b", "c"], [0, 1])
    X = np.random.default_rng(0).normal(size=(rows, 3))
    return Problem.build(schema, X, np.arange(rows) % 2, ids=[f"case {i}" for i in range(rows)] if ids else None)


class BuyAllThenSay(Policy):
    """Buys while it can, then says a class."""

    def __init__(self, decision: int) -> None:
        self.decision = decision

    def act(self, state: State) -> Choice:
        tests = state.legal[:, 2:]
        action = np.where(tests.any(1), 2 + tests.argmax(1), self.decision)
        return Choice(action, np.ones(len(action), np.float32))


# ------------------------------------------------------------------ greedy


def test_a_tie_goes_to_stopping():
    q = np.array([[0, 0, 0, 0], [-1, 0, 0, 0], [-1, -1, 0, 0], [-1, -1, -1, 0]], np.float32)
    assert greedy(q, np.ones_like(q, bool)).tolist() == [0, 1, 2, 3]


def test_only_legal_actions_count():
    q = np.array([[-5, -4, 9, 8]], np.float32)
    assert greedy(q, np.array([[1, 1, 0, 1]], bool)).tolist() == [3]
    assert greedy(q, np.array([[1, 1, 0, 0]], bool)).tolist() == [1]


def test_greedy_is_certain():
    choice = Greedy(ValuesOf(lambda s: np.array([[0, 1], [1, 0]], np.float32))).act(state([[1, 1], [1, 1]]))
    assert choice.action.tolist() == [1, 0]
    assert choice.probability.tolist() == [1, 1]


def test_always_says_the_same():
    choice = Always(1).act(state([[1, 1, 1]] * 3))
    assert choice.action.tolist() == [1, 1, 1]
    assert choice.probability.tolist() == [1, 1, 1]


# ------------------------------------------------------------------ exploring


def frequencies(policy, legal, draws=40_000):
    """How often each action is taken, and the probability it was said to have."""
    choice = policy.act(state([legal] * draws))
    A = len(legal)
    counts = np.bincount(choice.action, minlength=A) / draws
    said = [sorted(set(choice.probability[choice.action == a].tolist())) for a in range(A)]
    return counts, said


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
def test_exploring_does_what_it_says_it_does(epsilon):
    legal = [1, 1, 0, 1, 1]
    policy = Exploring(lambda s: np.tile(np.float32([0, 1, 9, 3, 2]), (len(s.mask), 1)), epsilon, np.random.default_rng(1))
    counts, said = frequencies(policy, legal)
    expected = np.array([epsilon / 4, epsilon / 4, 0, 1 - epsilon + epsilon / 4, epsilon / 4])
    assert counts == pytest.approx(expected, abs=0.01)
    assert counts[expected == 0].sum() == 0
    for action in np.flatnonzero(expected):
        assert said[action] == pytest.approx([expected[action]])  # one probability, and the right one


def test_the_random_policy_takes_every_legal_action_equally_often():
    counts, said = frequencies(random_policy(np.random.default_rng(1)), [1, 1, 0, 1, 0])
    assert counts == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0], abs=0.01)
    assert said[0] == said[1] == said[3] == pytest.approx([1 / 3])


def test_each_case_explores_among_its_own_legal_actions():
    legal = np.tile(np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], bool), (500, 1))
    choice = random_policy(np.random.default_rng(1)).act(state(legal))
    assert legal[np.arange(1500), choice.action].all()
    assert choice.probability.tolist() == pytest.approx([1, 1 / 2, 1 / 3] * 500)


def test_probabilities_are_ready_for_the_memory():
    values = ValuesOf(lambda s: np.zeros((len(s.mask), 2), np.float32))
    for policy in (random_policy(np.random.default_rng(0)), Always(0), Greedy(values)):
        assert policy.act(state([[1, 1]])).probability.dtype == np.float32


# ------------------------------------------------------------------ mixtures


def share_of_second(rows=4_000, share=0.3, seed=0, ids=True):
    done = rollout(problem(rows, ids), Mixture(Always(0), Always(1), share, seed), None)
    return done.decision


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("ids", [True, False])
def test_the_second_policy_gets_its_share_of_the_cases(share, ids):
    decision = share_of_second(share=share, ids=ids)
    assert decision.mean() == pytest.approx(share, abs=0.03)
    if share in (0, 1):
        assert (decision == share).all()


def test_a_larger_share_keeps_the_cases_of_a_smaller_one():
    assert (share_of_second(share=0.3) <= share_of_second(share=0.6)).all()


def test_two_seeds_draw_independently():
    one, other = share_of_second(share=0.5, seed=0), share_of_second(share=0.5, seed=1)
    assert (one == other).mean() == pytest.approx(0.5, abs=0.04)
    assert (one == share_of_second(share=0.5, seed=0)).all()


def test_the_draw_stays_the_same_along_the_episode():
    p = problem(200)
    done = rollout(p, Mixture(BuyAllThenSay(0), Always(1), 0.4), None)
    # whoever follows the first policy follows it to the end: three tests, then class 0
    for length, decision in zip(done.length, done.decision, strict=True):
        assert (length, decision) in {(4, 0), (1, 1)}
    assert {0, 1} == set(done.decision.tolist())


def test_two_buyers_do_not_swap_cases_midway():
    done = rollout(problem(200), Mixture(BuyAllThenSay(0), BuyAllThenSay(1), 0.5), None)
    expected = rollout(problem(200), Mixture(Always(0), Always(1), 0.5), None)  # the same draws, at once
    assert (done.decision == expected.decision).all()


@pytest.mark.parametrize("ids", [True, False])
def test_the_draw_does_not_depend_on_the_batch(ids):
    p, mixture = problem(60, ids), Mixture(BuyAllThenSay(0), Always(1), 0.5)
    together = rollout(p, mixture, None).decision
    alone = [rollout(p.take(np.array([i])), mixture, None).decision[0] for i in range(60)]
    backwards = rollout(p, mixture, None, rows=np.arange(60)[::-1]).decision[::-1]
    assert together.tolist() == alone == backwards.tolist()


def test_probabilities_of_a_mixture_are_those_of_the_policy_that_acts():
    coin = random_policy(np.random.default_rng(0))
    choice = Mixture(coin, Always(1), 0.5).act(state([[1, 1]] * 100))
    assert set(choice.probability.tolist()) == {0.5, 1.0}


def test_uniform_numbers_are_uniform():
    u = uniform(np.arange(20_000, dtype=np.uint64), seed=3)
    assert u.min() >= 0
    assert u.max() < 1
    assert np.histogram(u, 10, (0, 1))[0] == pytest.approx(2_000, abs=200)


@pytest.mark.parametrize("seed", [-1, 0, 2**40, 2**64])
def test_any_whole_number_is_a_seed(seed):
    assert 0 <= uniform(np.array([5], np.uint64), seed)[0] < 1


# ------------------------------------------------------------------ what policies offer


def test_act_alone_is_enough():
    policy, now = BuyAllThenSay(1), state([[1, 1, 1, 0]])
    assert policy.fixed_order is None
    assert not policy.takes_free_first
    assert policy.belief(now) is policy.values(now) is policy.explain(now) is None
    assert rollout(problem(3), policy, None).decision.tolist() == [1, 1, 1]


def test_what_is_no_policy_is_refused_in_a_sentence():
    class NoPolicy:
        def act(self, state: State) -> Choice:
            return Choice(np.zeros(len(state.mask), np.int64), np.ones(len(state.mask), np.float32))

    with pytest.raises(
        InputError, match=r"NoPolicy is used as a policy, but is none; make it a subclass of askwise\.core\.policy"
    ):
        rollout(problem(3), NoPolicy(), None)


def test_values_explain_themselves():
    """By hand: two classes and two tests, of which the second is not legal."""
    now = State(np.zeros((1, 2), np.float32), np.zeros((1, 2), bool), np.array([[1, 1, 1, 0]], bool), np.zeros(1, np.uint64))
    values = ValuesOf(lambda s: np.array([[-0.5, -0.3, -0.1, 0.4]], np.float32))
    view = values.view(now)
    assert view.gain[0, 0] == pytest.approx(0.2)  # -0.1 - -0.3
    assert np.isnan(view.gain[0, 1])
    assert view.belief is view.coming is values.fixed_order is None
    explained = Greedy(values).explain(now)
    assert explained.choice.action.tolist() == Greedy(values).act(now).action.tolist() == [2]
    assert explained.view.q.tolist() == view.q.tolist()
    assert explained.state.legal.tolist() == [[True, True, True, False]]


def test_a_mixture_tells_what_the_arm_of_each_case_tells():
    first, second = (Greedy(Constant(classes)) for classes in ((0.0, -1.0), (-2.0, 0.0)))
    now = Cases.start(problem(50), np.arange(50), None).observe()
    mixture = Mixture(first, second, 0.5, seed=1)
    takes = mixture.takes_second(now.key)
    assert 0 < takes.sum() < 50
    values = mixture.values(now)
    assert (values[takes, :2] == [-2, 0]).all()
    assert (values[~takes, :2] == [0, -1]).all()
    assert mixture.belief(now) is None
    assert Mixture(first, Always(0), 0.5, seed=1).values(now) is None  # one of them has no values
