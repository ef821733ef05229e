"""Losses of beliefs: by hand, against a naive twin, and as a property of all beliefs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from tests.support import naive

from askwise.core.budget import Tradeoff
from askwise.core.cases import State
from askwise.core.episode import measure, rollout
from askwise.core.measures import Mean
from askwise.core.policy import Always, Choice, Mixture, Policy, decide_at_once, decision_values
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.core.scoring import RULES, belief_loss, case_losses, expected_losses, largest
from askwise.errors import InputError
from askwise.evaluation import evaluate


class BuysAndBelieves(Policy):
    """Buys the first test, then believes in class 1 as much as its value says."""

    def act(self, state: State) -> Choice:
        held = state.mask[:, 0]
        return Choice(np.where(held, (self.belief(state)[:, 1] > 0.5).astype(int), 2), np.ones(len(held), np.float32))

    def belief(self, state: State) -> np.ndarray:
        p = state.values[:, 0].astype(float)
        return np.stack([1 - p, p], 1)


def problem_of(loss: str | None = "log", **more) -> Problem:
    return Problem.build(Schema.build(["a"], ["no", "yes"], [2]), [[0.9], [0.2], [0.5], [1.0]], ["yes", "no", "no", "yes"],
                         loss=loss, **more)  # fmt: skip


def test_what_a_case_loses_by_hand() -> None:
    belief, labels = np.array([[0.1, 0.9], [0.8, 0.2], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]), np.array([1, 0, 0, 1, 1])
    nats = [-math.log(0.9), -math.log(0.8), math.log(2), 0, 6 * math.log(10)]  # no probability counts as less than 1e-6
    assert case_losses(belief, labels, "log").tolist() == pytest.approx(nats)
    assert case_losses(belief, labels, "brier").tolist() == pytest.approx([0.02, 0.08, 0.5, 0, 2])


def test_what_a_belief_is_expected_to_lose_by_hand() -> None:
    even = np.array([[0.5, 0.5]])
    assert belief_loss(even, np.ones(2), "log").item() == pytest.approx(math.log(2))
    assert belief_loss(even, np.ones(2), "brier").item() == 0.5  # 1 - Σ p²
    assert belief_loss(np.array([[0.2, 0.8]]), np.ones(2), "brier").item() == pytest.approx(1 - 0.04 - 0.64)
    weighted = belief_loss(np.array([[0.2, 0.8]]), np.array([3.0, 1.0]), "log").item()
    assert weighted == pytest.approx(-(3 * 0.2 * math.log(0.2) + 0.8 * math.log(0.8)))
    sure = np.array([[1.0, 0.0]])
    assert belief_loss(sure, np.ones(2), "log").item() == belief_loss(sure, np.ones(2), "brier").item() == 0


def test_of_the_classes_the_one_is_named_that_errors_with_these_weights_would_name() -> None:
    loss = np.array([[0, 3.0], [1.0, 0]])  # class 0 weighs three times as much
    losses = expected_losses(np.array([[0.4, 0.6], [0.1, 0.9]]), loss, "log")
    assert losses.argmin(1).tolist() == [0, 1]
    assert losses.min(1).tolist() == pytest.approx(belief_loss(np.array([[0.4, 0.6], [0.1, 0.9]]), loss.max(1), "log")[:, 0])
    assert expected_losses(np.array([[0.4, 0.6]]), loss, None).tolist() == [[pytest.approx(0.6), pytest.approx(1.2)]]


beliefs = st.lists(st.lists(st.floats(0.001, 1), min_size=3, max_size=3), min_size=1, max_size=5).map(
    lambda rows: np.array(rows) / np.sum(rows, 1, keepdims=True)
)


@given(beliefs, st.sampled_from([None, *RULES]), st.lists(st.floats(0.1, 5), min_size=3, max_size=3))
def test_expected_losses_equal_those_of_a_loop(p: np.ndarray, rule: str | None, weights: list[float]) -> None:
    loss = np.array(weights)[:, None] * (1 - np.eye(3))
    assert expected_losses(p, loss, rule) == pytest.approx(naive.expected_losses(p, loss, rule))
    assert expected_losses(p, loss, rule).max() <= 2 * largest(loss, rule)


@given(beliefs, beliefs, st.sampled_from(list(RULES)))
def test_no_other_answer_is_expected_to_lose_less_than_the_belief(p: np.ndarray, other: np.ndarray, rule: str) -> None:
    """Both rules are proper."""
    p, other = p[:1], other[:1]
    lies = sum(p[0, y] * case_losses(other, np.array([y]), rule).item() for y in range(3))
    assert belief_loss(p, np.ones(3), rule).item() <= lies + 1e-9


@given(beliefs, st.sampled_from(list(RULES)))
def test_what_is_expected_is_the_mean_of_what_happens(p: np.ndarray, rule: str) -> None:
    each = np.stack([case_losses(p, np.full(len(p), y), rule) for y in range(3)], 1)
    assert belief_loss(p, np.ones(3), rule)[:, 0] == pytest.approx((p * each).sum(1))


# ------------------------------------------------------------------ problems, episodes, reports


@pytest.mark.parametrize(("rule", "scale"), [("log", math.log(2)), ("brier", 0.5)])
def test_the_loss_scale_is_what_the_class_shares_lose(rule: str, scale: float) -> None:
    problem = problem_of(rule)
    assert problem.prior_loss == problem.loss_scale == pytest.approx(scale)
    assert decision_values(problem) == (pytest.approx(-1), pytest.approx(-1))
    assert measure(problem, decide_at_once(problem), None).loss == pytest.approx(scale)
    assert problem_of(None).loss_scale == 1


def test_class_weights_multiply_and_the_scale_follows() -> None:
    problem = problem_of("log", class_weight={"yes": 3})
    assert problem.loss_scale == pytest.approx(2 * math.log(2))
    done = rollout(problem, BuysAndBelieves(), None)
    assert done.loss.tolist() == pytest.approx([-3 * math.log(0.9), -math.log(0.8), math.log(2), 0], abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_a_tally_equals_that_of_a_loop(rule: str) -> None:
    problem = problem_of(rule, weight=[1, 2, 0.5, 1])
    found, case = measure(problem, BuysAndBelieves(), None), naive.NaiveCase.__new__(naive.NaiveCase)
    lost = []
    for p, truth in zip([0.9, 0.2, 0.5, 1.0], ["yes", "no", "no", "yes"], strict=True):
        case.truth, case.world = truth, naive.World({}, {}, np.zeros((1, 1)), [], ["no", "yes"], loss=rule)
        lost.append(case.score_of([1 - p, p]))
    mean = Mean.of(np.array(lost), np.array([1, 2, 0.5, 1]))
    assert (found.loss, found.loss_error) == (pytest.approx(mean.value, rel=1e-6), pytest.approx(mean.error, rel=1e-6))
    assert found.cost == 2


def test_reports_tell_how_good_probabilities_are_whatever_was_learned() -> None:
    problem = problem_of(None)
    report = evaluate(BuysAndBelieves(), problem, Tradeoff(0))
    p = [0.9, 0.2, 0.5, 1.0]
    assert report.log_loss.value == pytest.approx(log_loss([1, 0, 0, 1], p), rel=1e-6)
    assert report.brier_score.value == pytest.approx(np.mean([0.02, 0.08, 0.5, 0]), rel=1e-6)
    assert report.auroc == (1, 0)
    assert report.loss == 0  # who is even is said to be of the first class
    assert evaluate(Always(0), problem, Tradeoff(0)).log_loss is None
    mixed = Mixture(BuysAndBelieves(), decide_at_once(problem), 0.5)
    told = evaluate(mixed, problem, Tradeoff(0))
    assert set(np.round(told.belief[:, 1], 6)) <= {0.9, 0.2, 0.5, 1.0}


def test_who_has_no_probabilities_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="Always has no class probabilities, which are what the loss 'log' judges; use a loss"):
        measure(problem_of(), Always(0), None)
    assert rollout(replace(problem_of(), y=None), Always(0), None).decision.tolist() == [0] * 4  # nothing is judged


def test_a_word_that_is_no_rule_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"loss is 'lgo'; it must be 'log', 'brier' or a loss matrix, loss\[truth, decision\]"):
        problem_of("lgo")


def test_rules_and_probabilities_of_an_existing_classifier_make_another_fingerprint() -> None:
    assert len({problem_of(rule).fingerprint for rule in (None, *RULES)}) == 3


# ------------------------------------------------------------------ an existing classifier


def asked(belief: object) -> Problem:
    schema = Schema.build(["a"], ["no", "yes"], [2], external_needs=["a"])
    return Problem.build(schema, [[0.9], [0.2]], ["yes", "no"], loss="log", external=belief)


class Asks(BuysAndBelieves):
    def act(self, state: State) -> Choice:
        return Choice(np.full(len(state.mask), 2), np.ones(len(state.mask), np.float32))


def test_what_an_existing_classifier_believes_is_what_is_judged() -> None:
    problem = asked([[0.3, 0.7], [0.4, 0.6]])
    done = rollout(problem, Asks(), None)
    assert done.decision.tolist() == [1, 1]
    assert done.belief.tolist() == [[0.3, 0.7], [0.4, 0.6]]
    assert done.loss.tolist() == pytest.approx([-math.log(0.7), -math.log(0.4)])
    assert problem.external_losses.tolist() == pytest.approx(done.loss.tolist())
    assert problem.take(np.array([1])).external_belief.tolist() == [[0.4, 0.6]]


@pytest.mark.parametrize(("belief", "why"), [
    (["yes", "no"], "says classes, not how probable they are; for the loss 'log' it must give 2 rows of 2 class probabilities"),
    ([0.3, 0.7], r"have shape \(2,\); for the loss 'log' it must give 2 rows of 2 class probabilities"),
    ([[0.3, 0.3], [0.5, 0.5]], "are not 0 or more with a sum of 1 in each row"),
])  # fmt: skip
def test_answers_that_are_no_probabilities_are_refused(belief: object, why: str) -> None:
    with pytest.raises(InputError, match=why):
        asked(belief)
