"""The metric on curves worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askwise.core.budget import AverageBudget, Budget, HardBudget
from askwise.core.measures import Measure
from askwise.errors import InputError
from askwise.frontier.choice import best_tradeoff, choose, next_lam, within_average
from askwise.frontier.confidence import upper_bound
from askwise.frontier.hull import hull, staircase
from askwise.frontier.metric import area_over_seeds, curve, step_area
from askwise.frontier.point import Point, neighbours, told_apart


def test_a_single_point_meets_an_average_budget_and_uses_it() -> None:
    cost, score, error = [0, 4, 9.6, 9.9, 12], [0.5, 0.8, 0.88, 0.79, 0.9], [0.01] * 5

    def chosen(b: float, mixture: str = "never", scores: list[float] = score) -> tuple[int, int]:
        blend = choose(cost, scores, error, AverageBudget(b), mixture)
        return blend.first, blend.second

    assert [chosen(b)[0] for b in (1, 4, 9.7, 10, 12, 50)] == [0, 1, 2, 2, 4, 4]
    # 4 seems best below 10, but 9.6 uses the budget and is no worse by more than a standard error
    assert chosen(10, scores=[0.5, 0.885, 0.88, 0.79, 0.9]) == (2, 2)
    assert chosen(10, scores=[0.5, 0.895, 0.88, 0.79, 0.9]) == (1, 1)
    # at 9.7 the blend with 12 is better by a hair, at 8 it is by most of the step from 4
    assert chosen(9.7, "if better") == (2, 2)
    assert chosen(8, "if better") == (1, 2)
    assert chosen(9.7, "always") == (2, 4)


def test_a_point_that_uses_the_budget_and_is_worth_little_does_not_keep_two_from_being_mixed() -> None:
    """Two tests that tell something only together: one of them seems better than nothing, by luck."""
    cost, score, error = [0, 1, 2], [0.5, 0.52, 1.0], [0.025, 0.025, 0]
    for b in (0.5, 1, 1.02):
        assert choose(cost, score, error, AverageBudget(b), "if better") == within_average(cost, score, b)
        assert choose([0, 2], [0.5, 1.0], [0.025, 0], AverageBudget(b), "if better").mean([0.5, 1.0]) == pytest.approx(
            0.5 + b / 4
        )
    assert choose(cost, score, error, AverageBudget(1, mixing=False), "if better").first == 1


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12),
    st.lists(st.integers(0, 200).map(lambda n: n / 8), min_size=2, max_size=2),
    st.integers(0, 3),
    st.booleans(),
)
def test_more_money_promises_no_less_whether_two_are_mixed_or_not(them, budgets, noise, all_joined) -> None:
    every = sorted({(0, 0), *them})
    on = staircase([c for c, _ in every], [s for _, s in every])
    cost, score = np.array(every, float)[on].T
    joined = [(i, i + 1) for i in range(len(on) - 1)] if all_joined else []
    (less, more), error = sorted(budgets), np.full(len(on), noise)
    before, now = (choose(cost, score, error, AverageBudget(b), "if better", joined).mean(score) for b in (less, more))
    assert before <= now + noise + 1e-9  # a point that uses the budget may be worse by a standard error
    assert now >= within_average(cost, score, more).mean(score) - 2 * noise - 1e-9


def test_one_policy_between_two_points_meets_a_budget_between_them() -> None:
    cost, score, error = [0, 4, 5, 10, 12], [0.5, 0.8, 0.82, 0.9, 0.91], [0.01] * 5
    joined = [(1, 2), (3, 4)]

    def chosen(b: float, mixing: bool | None = None) -> tuple[int, int, float, bool]:
        blend = choose(cost, score, error, AverageBudget(b, mixing=mixing), "if better", joined)
        return blend.first, blend.second, round(blend.share, 6), blend.single

    assert chosen(4.5) == (1, 2, 0.5, True)
    assert chosen(4.5, mixing=False) == (1, 2, 0.5, True)
    assert chosen(11.5) == (3, 4, 0.75, True)
    # nothing is joined from 5 to 10: the mixture is better by 0.04, and only near 5 and 10 there is a single one
    assert chosen(7.5) == (2, 3, 0.5, False)
    assert chosen(5.2) == (2, 2, 0, False)
    assert chosen(7.5, mixing=False) == (2, 2, 0, False)
    assert chosen(5.2, mixing=True)[3] is False
    assert chosen(5.2, mixing=True)[2] > 0
    single, mixed = (choose(cost, score, error, AverageBudget(b), "if better", joined) for b in (4.5, 7.5))
    assert (single.drawn, mixed.drawn) == (0, mixed.share)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12), st.integers(0, 25), st.booleans())
def test_single_policies_keep_to_the_budget_and_more_money_promises_no_less(them, b, all_joined) -> None:
    every = sorted({(0, 0), *them})
    on = staircase([c for c, _ in every], [s for _, s in every])
    cost, score = np.array(every, float)[on].T
    joined = [(i, i + 1) for i in range(len(on) - 1)] if all_joined else []
    error = np.zeros(len(on))
    now, more = (choose(cost, score, error, AverageBudget(x, mixing=False), "if better", joined) for x in (b, b + 1))
    assert not now.drawn
    assert now.mean(cost) <= b + 1e-9
    assert now.mean(score) <= more.mean(score) + 1e-9
    if all_joined:
        assert now.mean(cost) == pytest.approx(min(b, cost[-1]))


def test_points_are_neighbours_if_only_the_tradeoff_differs_and_costs_are_close() -> None:
    def point(cost: float, lam: float = 0.1, **more: int) -> Point:
        return Point(lam, Measure(cost, 1 / (1 + cost), 0.5, 10), **more)

    them = [point(0, prefix=0), point(4, 0.4), point(4.2, prefix=2), point(4.4, 0.1), point(4.6, cap=9), point(9, 0.01)]
    assert neighbours(them) == [(1, 3)]
    halfway = them[1].between(them[3], 0.5, 0.0)
    assert (halfway.lam, halfway.cost) == (pytest.approx(0.2), pytest.approx(4.2))
    assert (halfway.prefix, halfway.cap, halfway.breadth) == (None, None, None)


def test_with_a_confidence_the_mean_cost_is_rarely_above_the_budget() -> None:
    """Costs are skewed, as where few cases need a dear test; the dearest policy within the budget is chosen 2,000 times."""
    rng, b, n = np.random.default_rng(0), 5.0, 300
    shares = np.linspace(0, 0.2, 41)  # of cases that buy a test for 40; on average b is met with 0.125
    above = []
    for confidence in (None, 0.95):
        times = 0
        for _ in range(2_000):
            buys = rng.random((n, 1)) < shares  # the same cases by all policies
            cost = 40.0 * buys
            mean, error = cost.mean(0), cost.std(0) / n**0.5
            bound = np.maximum.accumulate([upper_bound(m, e, confidence) for m, e in zip(mean, error, strict=True)])
            chosen = choose(bound, shares, np.zeros(len(shares)), AverageBudget(b), "never").first
            times += 40 * shares[chosen] > b
        above.append(times / 2_000)
    assert above[0] > 0.3  # without a confidence it is above nearly as often as below
    assert above[1] <= 0.07


@pytest.mark.parametrize(("own", "most"), [(0.0, 0.06), (0.5, 0.1), (1.0, 0.12)])
def test_by_how_much_an_order_by_measured_costs_breaks_a_confidence_of_0_95(own: float, most: float) -> None:
    """The documentation tells these figures. own: the share of cases that each policy treats independently of the others; the
    order is by costs of the same rows, and changes with them unless all policies buy for the same cases."""
    rng, b, n, times = np.random.default_rng(0), 5.0, 300, 0
    shares = np.linspace(0, 0.2, 41)
    for _ in range(2_000):
        alone = rng.random((n, 1)) < own
        cost = 40.0 * (np.where(alone, rng.random((n, len(shares))), rng.random((n, 1))) < shares)
        mean, error = cost.mean(0), cost.std(0) / n**0.5
        order = np.argsort(mean, kind="stable")
        bound = np.maximum.accumulate([upper_bound(mean[i], error[i], 0.95) for i in order])
        chosen = choose(bound, shares[order], np.zeros(len(shares)), AverageBudget(b), "never").first
        times += 40 * shares[order[chosen]] > b
    assert times / 2_000 <= most
    assert (times / 2_000 > 0.07) == (own > 0)  # what the proof would promise is 0.05


def test_the_staircase_holds_what_is_better_than_all_that_is_cheaper() -> None:
    assert staircase([3, 1, 2, 1, 5], [0.7, 0.5, 0.4, 0.6, 0.7]).tolist() == [3, 0]


def test_the_hull_leaves_out_what_is_dominated_or_below_a_line() -> None:
    #        0      1      2: below the line 1-3   3      4: dearer, no better   5: dominated
    cost = [0.0, 1.0, 2.0, 3.0, 4.0, 1.5]
    score = [0.5, 0.7, 0.75, 0.9, 0.9, 0.6]
    # 0-1 has slope 0.2, 1-3 has slope 0.1: point 1 is on the hull
    assert hull(cost, score).tolist() == [0, 1, 3]


def test_of_points_at_one_cost_the_best_is_kept() -> None:
    assert hull([0, 1, 1], [0.5, 0.6, 0.8]).tolist() == [0, 2]


points = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=15)


@given(points)
def test_no_point_lies_above_the_hull(them: list[tuple[int, int]]) -> None:
    cost, score = np.array(them, float).T
    on = hull(cost, score)
    assert (np.diff(cost[on]) > 0).all()
    assert (np.diff(score[on]) > 0).all()
    slopes = np.diff(score[on]) / np.diff(cost[on])
    assert (np.diff(slopes) < 0).all()
    inside = cost >= cost[on[0]]
    assert (score[inside] <= np.interp(cost[inside], cost[on], score[on]) + 1e-9).all()


@given(points, st.integers(0, 25))
def test_an_average_budget_is_met_exactly_or_not_needed(them: list[tuple[int, int]], b: int) -> None:
    cost, score = np.array([(0, 0), *them], float).T
    blend = within_average(cost, score, b)
    spent, got = blend.mean(cost), blend.mean(score)
    assert spent <= b + 1e-9
    if spent < b - 1e-9:  # more money does not help
        assert got == score.max()
    # twin: the best of all pairs
    best = max(
        (1 - w) * score[i] + w * score[j]
        for i in range(len(cost))
        for j in range(len(cost))
        if cost[i] <= b
        for w in [1.0 if cost[j] <= b else (b - cost[i]) / (cost[j] - cost[i])]
    )
    assert got == pytest.approx(best)


def test_a_budget_below_the_cheapest_point_is_refused() -> None:
    with pytest.raises(InputError, match="no policy is as cheap as 1; the cheapest costs 2"):
        within_average([2, 3], [0.5, 0.6], 1)


def test_without_a_budget_it_is_the_cheapest_within_one_standard_error() -> None:
    cost, score = [0, 1, 2, 4], [0.5, 0.8, 0.88, 0.9]
    assert choose(cost, score, [0.0, 0.05, 0.03, 0.01], Budget()).first == 3
    assert choose(cost, score, [0.0, 0.05, 0.03, 0.025], Budget()).first == 2
    assert choose(cost, score, [0.0, 0.05, 0.03, 0.2], Budget()).first == 1
    assert choose(cost, score, [0.0] * 4, HardBudget(1)).first == 3  # all of them keep to it


def test_a_tradeoff_takes_the_cheapest_of_equals() -> None:
    assert best_tradeoff([0, 2, 1], [0.5, 0.9, 0.7], 0.2).first == 0
    assert best_tradeoff([0, 2, 1], [0.5, 0.9, 0.7], 0.1).first == 1


def test_the_area_equals_the_one_worked_by_hand() -> None:
    # validation: 0 on the hull, 1 below the line from 0 to 2, 2 the best; total cost 10, prior 0.5
    validation = ([2.0, 3.0, 4.0], [0.8, 0.82, 0.9])
    test = ([2.0, 3.5, 5.0], [0.7, 0.99, 0.8])
    c = curve(validation, test, prior=(0.5, 0.4), total=10)
    assert c.chosen.tolist() == [0, 2]  # the good test score of 1 was not known
    assert c.cost.tolist() == [0, 2, 5, 10]
    assert c.score.tolist() == [0.4, 0.7, 0.8, 0.8]
    # trapezoids: 2 * 0.55 + 3 * 0.75 + 5 * 0.8 = 1.1 + 2.25 + 4.0
    assert c.area == pytest.approx(7.35 / 10)


def test_points_worse_than_deciding_at_once_are_not_chosen() -> None:
    c = curve(([1.0], [0.4]), ([1.0], [0.45]), prior=(0.5, 0.5), total=4)
    assert c.chosen.tolist() == []
    assert c.area == pytest.approx((0.5 + 0.45) / 2)  # a line from the prior to the best point with all features


def test_without_points_the_curve_is_the_prior() -> None:
    assert curve(([], []), ([], []), prior=(0.5, 0.6), total=4).area == pytest.approx(0.6)


def test_expected_loss_is_the_same_with_the_sign_turned() -> None:
    loss = curve(([1.0], [-0.1]), ([1.0], [-0.2]), prior=(-0.5, -0.5), total=2)
    assert -loss.area == pytest.approx((0.35 + 0.2) / 2)


def test_free_tests_and_unequal_points_are_refused() -> None:
    with pytest.raises(InputError, match="everything is free"):
        curve(([1.0], [0.4]), ([1.0], [0.45]), (0.5, 0.5), 0)
    with pytest.raises(InputError, match="1 points on validation and 2 on test"):
        curve(([1.0], [0.4]), ([1.0, 2.0], [0.45, 0.4]), (0.5, 0.5), 3)


def test_a_step_curve_holds_each_score_to_the_next_budget() -> None:
    # prior 0.5 up to 1, 0.8 up to 3, then 0.7 is worse than what the smaller budget had: 0.8 up to 4
    prior = (0.4, 0.5)
    assert step_area([3, 1], [0.7, 0.8], [0.9, 0.6], prior, total=4) == pytest.approx((0.5 + 2 * 0.6 + 0.6) / 4)
    assert step_area([3, 1], [0.8, 0.7], [0.5, 0.6], prior, total=4) == pytest.approx((0.5 + 2 * 0.6 + 0.5) / 4)
    assert step_area([4, 9], [0.9, 1.0], [0.9, 1.0], prior, total=4) == pytest.approx(0.5)  # from the end on there is no width


def test_areas_are_pooled_or_per_seed() -> None:
    seed = [0, 1, 0]
    validation, test = ([1.0, 1.0, 2.0], [0.8, 0.7, 0.9]), ([1.0, 1.0, 2.0], [0.8, 0.6, 0.9])
    spread = area_over_seeds(seed, validation, test, (0.5, 0.5), 4)
    zero = ((0.5 + 0.8) / 2 + (0.8 + 0.9) / 2 + 2 * 0.9) / 4
    one = ((0.5 + 0.6) / 2 + 3 * 0.6) / 4
    assert spread.per_seed == pytest.approx((zero, one))
    assert spread.pooled == pytest.approx(zero)  # seed 1 adds nothing to the hull
    assert spread.mean == pytest.approx((zero + one) / 2)
    assert spread.deviation == pytest.approx(abs(zero - one) / 2**0.5)


def test_the_next_lambda_is_where_costs_differ_most():
    assert next_lam({1.0: 5.0, 4.0: 4.0, 16.0: 0.0}) == pytest.approx(8)
    assert next_lam({1.0: 5.0, 4.0: 5.0}) is None
    assert next_lam({1.0: 5.0, 1.01: 0.0, 4.0: 0.0}) is None  # as good as the same
    assert next_lam({1.0: 5.0}) is None


def test_points_that_nobody_can_tell_apart_are_listed_once():
    def at(cost, loss):
        return Point(0.1, Measure(cost, loss, 1 - loss, 100, 0.01, 0.02, 0.02))

    cheap = [at(i / 1000, 0.5 - i / 1000) for i in range(10)]  # cost almost nothing, and do the same
    better, dearer, dearest = at(0.0101, 0.4), at(0.5, 0.399), at(1, 0.398)
    points = [*cheap, better, dearer, dearest]
    assert told_apart(points, []) == [0, 10, 11, 12]
    assert told_apart(points, [points[4]]) == [0, 4, 10, 11, 12]
    slowly = [at(i / 10_000, 0.5 - 0.006 * i) for i in range(11)]
    assert told_apart([*slowly, dearest], [])[:3] == [0, 4, 8]  # small differences add up
