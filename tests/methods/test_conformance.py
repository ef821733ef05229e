"""What every method must do, whatever it learns. Methods are found by themselves: all that `askwise.methods.names()` knows, also
those of other packages.

The worlds are those of tests/support/worlds.py with their values made discrete, so that the exact optimum can take part.
That models survive saving and loading is tested for what the product saves: tests/test_model_file.py and test_family_model.py.
"""

import inspect
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from tests.support.naive import World, check_rules
from tests.support.worlds import JUDGED, VARIANTS

from askwise import methods
from askwise.components import subset_classifier
from askwise.components.prefixes import decide
from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.cases import Cases, State
from askwise.core.episode import Episodes, measure, rollout
from askwise.core.policy import Always, Choice, Mixture, Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.evaluation import evaluate
from askwise.methods import adapt_gbrt, baseline, static_gbm
from askwise.methods.exact import Exact

# What a method cannot do, and says so. Everything else must work.
REFUSES = {
    "exact": {"missing", "known by mask", "existing classifier, missing", "Brier score, missing"},
    "paper": set(JUDGED),  # it learns no probabilities
    "opportunistic": set(JUDGED),
}


def of_the_page() -> ModuleType:
    """The method that docs/adding_a_method.md shows."""
    page = (Path(__file__).parents[2] / "docs" / "adding_a_method.md").read_text()
    module, code = ModuleType("sure_enough"), re.search(r"^```python\n(.*?)^```", page, re.M | re.S)[1]
    exec(compile(code, "sure_enough", "exec"), module.__dict__)
    assert len(code.splitlines()) <= 60
    return module


METHODS: dict[str, Any] = {name: methods.get(name) for name in methods.names()} | {"sure-enough": of_the_page()}
WITH_POINTS = [name for name, method in METHODS.items() if hasattr(method, "points")]
OURS = {name for name, method in METHODS.items() if getattr(method, "__name__", "").startswith("askwise.methods.")}


@pytest.fixture(autouse=True, scope="module")
def _little_work():
    """However short the time, some methods do a number of things; here a few are enough."""
    with pytest.MonkeyPatch.context() as patch:
        for module, less in (
            (subset_classifier, {"fewest_steps": 10}),
            (baseline, {"fewest_steps": 10}),
            (adapt_gbrt, {"trees": 8}),
        ):
            patch.setattr(module, "SETTINGS", replace(module.SETTINGS, **less))
        yield


def limits(function: Any, steps: int = 12) -> dict[str, Any]:
    """A little that does not depend on the clock: some steps, or where these cannot be counted no time, so that a method does the
    least it can."""
    return {"seconds": 60, "steps": steps} if "steps" in inspect.signature(function).parameters else {"seconds": 0}


def discrete(world: World, name: str) -> World:
    return replace(world, X=np.sign(world.X), name=name)


# those that differ in the problem, not only in the settings of one algorithm
WORLDS = {
    name: (discrete(world, name), more) for name, (world, more, settings) in VARIANTS.items() if not settings
    or name == "existing classifier, missing"
} | {name: (discrete(world, name), more) for name, (world, more) in JUDGED.items()}  # fmt: skip


@cache
def problem_of(variant: str) -> Problem:
    world, more = WORLDS[variant]
    return world.problem(ids=np.arange(len(world.X)), **more)


def fitted(name: str, problem: Problem, budget: Budget, **more) -> Policy:
    fit = METHODS[name].fit
    return fit(problem, problem, budget, **(limits(fit) | more))


@cache
def learned(name: str, variant: str) -> list[Policy] | InputError:
    """All points, or what two budgets give, or the refusal."""
    problem = problem_of(variant)
    try:
        if name in WITH_POINTS:
            points = METHODS[name].points
            return points(problem, problem, **limits(points))
        total = problem.schema.costs.money(problem.schema.costs.total)
        return [fitted(name, problem, budget) for budget in (Tradeoff(0.05), AverageBudget(total / 3))]
    except InputError as refusal:
        return refusal


def policies(name: str, variant: str) -> list[Policy]:
    done = learned(name, variant)
    if isinstance(done, InputError):
        pytest.skip(f"refused: {done}")
    return done


def some(of: list[Policy]) -> list[Policy]:
    """Four of them, from the first to the last."""
    return [of[i] for i in sorted({0, len(of) // 3, 2 * len(of) // 3, len(of) - 1})]


def same(one: Episodes, other: Episodes) -> bool:
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in Episodes.__dataclass_fields__)


def test_all_methods_are_found():
    assert {
        "aaco", "adapt-gbrt", "baseline", "budget-prune", "cascade", "cegb", "dime", "exact", "family", "gdfs", "opportunistic",
        "paper", "random", "stack", "static-gbm", "static-linear",
    } <= OURS  # fmt: skip
    assert set(WITH_POINTS) >= OURS
    assert len(WORLDS) == 17


@pytest.mark.parametrize("name", METHODS)
def test_all_are_called_alike(name):
    """The first words of `fit` and `points` are the same for all; further ones have defaults."""
    method = METHODS[name]
    shapes = {"fit": ["problem", "validation", "budget", "seconds", "seed"]}
    if name in WITH_POINTS:
        shapes["points"] = ["problem", "validation", "seconds", "seed", "threads"]
    for call, words in shapes.items():
        found = inspect.signature(getattr(method, call)).parameters
        assert list(found)[: len(words)] == words
        assert all(found[word].kind == inspect.Parameter.KEYWORD_ONLY for word in list(found)[words.index("seconds") :]
                   if found[word].kind != inspect.Parameter.VAR_KEYWORD)  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_what_cannot_be_done_is_refused_in_a_sentence(name):
    refusals = {variant: done for variant in WORLDS if isinstance(done := learned(name, variant), InputError)}
    if name in OURS:
        assert set(refusals) == REFUSES.get(name, set()), "what a method refuses is listed in REFUSES"
    for refusal in refusals.values():
        said = str(refusal)
        assert "\n" not in said
        assert ";" in said or " use " in said, f"{said!r} does not say what would be right"


@pytest.mark.parametrize("name", METHODS)
def test_what_is_learned_are_policies(name):
    for policy in policies(name, "plain"):
        kind = f"{type(policy).__module__}.{type(policy).__qualname__}"
        assert isinstance(policy, Policy), f"{name} returns {kind}; make it a subclass of askwise.core.policy.Policy"


@pytest.mark.parametrize("variant", WORLDS)
@pytest.mark.parametrize("name", METHODS)
def test_the_rules_are_obeyed(name, variant):
    """Legal at every step, one class at the end, and the bill right to the digit: without a budget, with little, with nothing."""
    problem, (world, _) = problem_of(variant), WORLDS[variant]
    costs = problem.schema.costs
    if world.loss is None and not np.array_equal(problem.loss, 1 - np.eye(len(problem.loss))):
        world = replace(world, loss=problem.loss.tolist())  # class weights
    for policy in some(policies(name, variant)):
        for cap in (None, costs.total // 3, 0):
            under = replace(world, hard=None if cap is None else cap * costs.smallest_unit)
            check_rules(under, problem, rollout(problem, policy, cap))


@pytest.mark.parametrize("variant", WORLDS)
@pytest.mark.parametrize("name", WITH_POINTS)
def test_one_point_costs_nothing(name, variant):
    problem = problem_of(variant)
    assert any(measure(problem, policy, None).cost == 0 for policy in policies(name, variant))


@pytest.mark.parametrize("variant", WORLDS)
@pytest.mark.parametrize("name", METHODS)
def test_a_case_alone_is_as_in_a_batch(name, variant):
    problem, rows = problem_of(variant), np.arange(0, 24, 3)
    for policy in some(policies(name, variant))[::2]:
        together, alone = rollout(problem, policy, None), rollout(problem, policy, None, rows, chunk=1)
        assert (together.mask[rows] == alone.mask).all()
        assert (together.decision[rows] == alone.decision).all()


@cache
def optimum(variant: str) -> tuple[list[float], list[float]]:
    """Costs and losses along the exact frontier."""
    corners = Exact(problem_of(variant)).corners()
    return [float(corner.cost) for corner in corners], [float(corner.loss) for corner in corners]


# with class weights other probabilities than the true ones would lose less, but true ones are what is wanted
BOUNDED = [variant for variant in WORLDS if variant not in {*REFUSES["exact"], "log loss, class weights"}]


@pytest.mark.parametrize("variant", BOUNDED)
@pytest.mark.parametrize("name", WITH_POINTS)
def test_nothing_is_better_than_the_exact_optimum(name, variant):
    """On the rows that both have learned from. What beliefs lose is rounded there."""
    problem = problem_of(variant)
    for policy in some(policies(name, variant)):
        found = measure(problem, policy, None)
        assert found.loss >= np.interp(found.cost, *optimum(variant)) - (1e-9 if problem.rule is None else 1e-5)


def arms(policy: Policy) -> list[tuple[float, Policy]]:
    """Policies without a draw, and the probability with which each is followed."""
    if not isinstance(policy, Mixture):
        return [(1.0, policy)]
    both = (1 - policy.share, policy.first), (policy.share, policy.second)
    return [(share * p, arm) for share, mixed in both for p, arm in arms(mixed)]


BUDGETS = [
    ("plain", AverageBudget("1.7")),
    ("plain", HardBudget(3)),
    ("plain", AverageBudget("1.2") & HardBudget(3)),
    ("set-ups and derived tests", AverageBudget("0.35") & HardBudget("0.3")),
    ("class weights", Tradeoff("0.2")),
]


@pytest.mark.parametrize(("variant", "budget"), BUDGETS, ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_budgets_are_kept(name, variant, budget):
    """A hard one by every case; an average one, on the rows it was chosen on, exactly in expectation and else within the luck of
    the draw. What is reported is what was paid."""
    problem = problem_of(variant)
    policy, costs, n = fitted(name, problem, budget), problem.schema.costs, len(problem)
    report = evaluate(policy, problem, budget)
    paid = [cost * costs.smallest_unit for cost in costs.cost(report.episodes.mask, problem.known).tolist()]
    assert report.cost_per_case.tolist() == pytest.approx([float(p) for p in paid])
    if budget.hard is not None:
        assert max(paid) <= budget.hard
    if budget.average is not None:
        cap = budget.cap(costs)
        each = [(share, costs.money(rollout(problem, arm, cap).cost)) for share, arm in arms(policy)]
        expected = sum(share * cost for share, cost in each)  # N
        luck = sum(share * (cost - expected) ** 2 for share, cost in each).sum() ** 0.5 / n
        assert expected.mean() <= float(budget.average) + 1e-9
        assert abs(float(sum(paid, Fraction(0))) / n - expected.mean()) <= 4 * luck + 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_result(name):
    """Where training is limited by steps, or does the least it can; seconds are never the same twice."""
    problem, budget = problem_of("plain"), AverageBudget("1.7")
    first, second = (rollout(problem, fitted(name, problem, budget, seed=5), None) for _ in range(2))
    assert same(first, second)


@pytest.mark.parametrize("variant", ["plain", "missing"])
@pytest.mark.parametrize("name", METHODS)
def test_labels_are_not_looked_at(name, variant):
    """Cases without a label, or with another one, are treated alike."""
    problem = problem_of(variant)
    for policy in some(policies(name, variant)):
        done, K = rollout(problem, policy, None), problem.schema.n_classes
        for y in (None, (np.asarray(problem.y) + 1) % K):
            again = rollout(replace(problem, y=y), policy, None)
            assert (done.action == again.action).all()


@pytest.mark.parametrize("variant", ["plain", "class weights"])
@pytest.mark.parametrize("name", METHODS)
def test_what_is_said_is_the_best_of_what_is_believed(name, variant):
    """Where a policy tells its class probabilities, from which AUROC is computed."""
    problem = problem_of(variant)
    for policy in some(policies(name, variant)):
        done = rollout(problem, policy, None)
        state = Cases(problem, done.row, done.mask, None).observe()
        p = policy.belief(state)
        if p is None:
            assert name == "exact" or policy.values(state) is not None
            continue
        assert p.sum(1) == pytest.approx(np.ones(len(problem)))
        assert (decide(p, problem.loss) == done.decision).all()


@pytest.mark.parametrize("name", METHODS)
def test_the_programs_random_numbers_and_threads_are_left_alone(name):
    threads, numbers = torch.get_num_threads(), (torch.get_rng_state(), str(np.random.get_state()))  # noqa: NPY002
    fitted(name, problem_of("plain"), HardBudget(3))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), numbers[0])
    assert str(np.random.get_state()) == numbers[1]  # noqa: NPY002


# ------------------------------------------------------------------ missing values


def looks_at_gaps(policy: Policy, problem: Problem) -> bool:
    """Each case again, with other values in all that it did not hold, and with all of that unavailable: does anything change?
    What a test that it holds was computed from stays available, whatever its value."""
    done = rollout(problem, policy, None)
    needed = done.mask.copy()
    for test in problem.schema.costs.derived:
        needed |= needed[:, [test]] & problem.schema.costs.sources[test]
    held = problem.schema.by_column(done.mask)
    other = np.random.default_rng(0).permuted(problem.X, axis=0)
    others = replace(problem, X=np.where(held, problem.X, other))
    nothing = replace(problem, X=np.where(held, problem.X, 0).astype(np.float32), available=needed)
    return not all(same(done, rollout(changed, policy, None)) for changed in (others, nothing))


@pytest.mark.parametrize("variant", ["plain", "missing", "known by mask", "existing classifier, missing"])
@pytest.mark.parametrize("name", METHODS)
def test_what_is_not_bought_may_be_anything_or_nothing(name, variant):
    assert not any(looks_at_gaps(policy, problem_of(variant)) for policy in some(policies(name, variant)))


def test_a_policy_that_looks_at_gaps_is_seen():
    class Peeping(Policy):
        def act(self, state: State) -> Choice:
            """Says yes to whoever could buy more than two tests."""
            return Choice((state.legal[:, 2:].sum(1) > 2).astype(np.int64), np.ones(len(state.mask), np.float32))

    assert looks_at_gaps(Peeping(), problem_of("missing"))
    assert not looks_at_gaps(Always(1), problem_of("missing"))


def noise(rows: int, seed: int) -> Problem:
    """The tests say nothing. One in three is ill, and nine in ten of these have a test where of the others one in ten has it."""
    rng = np.random.default_rng(seed)
    y = (np.arange(rows) % 3 == 0).astype(int)
    X = rng.choice([-1.0, 1.0], size=(rows, 3))  # few values, so that there is nothing to learn by heart
    X[rng.random(X.shape) > np.where(y == 1, 0.9, 0.1)[:, None]] = np.nan
    return Problem.build(Schema.build(list("abc"), [0, 1]), X, y)


def best_on_noise(name: str) -> float:
    """The best accuracy of some points on other rows of noise. To say 0 is right for two of three, to notice gaps for nine of
    ten."""
    points = METHODS[name].points
    time = {"steps": 200, "seconds": 60} if "steps" in inspect.signature(points).parameters else {"seconds": 0.5}
    found = points(noise(1_200, 0), noise(300, 1), **time)
    return max(measure(noise(600, 2), policy, None).accuracy for policy in some(found))


@pytest.mark.parametrize("name", [name for name in WITH_POINTS if name not in REFUSES])
def test_having_a_test_tells_nothing_about_the_class(name):
    assert best_on_noise(name) < 0.74


def test_a_method_that_can_see_missingness_would_be_caught(monkeypatch):
    monkeypatch.setattr(static_gbm, "filled", lambda problem, seed: problem)
    assert best_on_noise("static-gbm") > 0.85
