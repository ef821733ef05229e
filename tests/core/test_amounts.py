"""Amounts of money: what is accepted can be counted, stored and read again; everything else is refused at once, in a sentence."""

import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.models import family, made, paper, wide

import askwise
from askwise import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.bench import plan
from askwise.bench.task import BUDGETS
from askwise.core.cost_spec import CostSpec
from askwise.core.costs import LEAST, MOST, CostFunction
from askwise.errors import AskwiseError, InputError
from askwise.session.session import Session

pytest.importorskip("pandas", reason="pandas is not installed")

KINDS = {"lam": Tradeoff, "average": AverageBudget, "hard": HardBudget}
HOSTILE = [
    "1e999999999", "1E+999999999", "1e-999999999", "0.1e9999999999999999999", "9" * 5000, "9" * 100_000 + "e5", "1/" + "9" * 5000,
    "1e1_000_000", "1e٩٩٩٩٩٩٩٩٩", 10**5000, -(10**5000), Fraction(1, 10**5000), Fraction(10**5000, 3), Decimal("1e999999"),
    Decimal("1e-999999"), "1e20", 1e300, 1e19, "1e400", 1e-300, "1e-20", 1e-20, "0." + "3" * 70, 10**16, "1e-13",
    np.float32(1e30),
]  # fmt: skip


def refused(call, *given) -> str:
    """The sentence with which something is refused, and that within a moment."""
    began = time.process_time()
    with pytest.raises(AskwiseError) as caught:
        call(*given)
    assert time.process_time() - began < 0.2
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 250
    return message


@pytest.mark.parametrize("amount", HOSTILE, ids=lambda amount: f"{type(amount).__name__} {str(amount)[:20]}" if isinstance(
    amount, (str, float)) else type(amount).__name__)  # fmt: skip
def test_amounts_that_nobody_means_are_refused_at_once(amount):
    for kind in KINDS.values():
        assert "1e-12 to 1e15" in refused(kind, amount) or str(amount).startswith("-")
    assert "the cost of test 'a'" in refused(lambda: CostFunction.build(["a"], {"a": amount}))
    assert "the cost of set-up 'draw'" in refused(
        lambda: CostFunction.build(["a"], CostSpec({"a": 1}, setup={"draw": (amount, ["a"])}))
    )
    assert "the budget of the session" in refused(lambda: Session(made("family"), budget=amount))
    for name in KINDS:
        refused(Budget.from_dict, {"lam": None, "average": None, "hard": None, name: amount})
    trace = {**Session(made("family"), case_id="a").trace(), "budget": amount}
    refused(Session.replay, made("family"), trace)


@pytest.mark.parametrize("amount", [1e300, 10**400, 10**20, 1e-20])
@pytest.mark.parametrize("kind", BUDGETS)
def test_plans_are_refused_for_such_amounts_too(kind, amount):
    given = {"data": ["thyroid"], "methods": ["random"], "budgets": [{kind: amount}]}
    assert f"`{kind}` of a budget" in refused(plan.from_dict, given, None)


AMOUNTS = st.one_of(
    st.text(max_size=12), st.floats(), st.integers(), st.decimals(), st.fractions(),
    st.from_regex(r"[+-]?[0-9]{0,30}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,12})?", fullmatch=True),
    st.fractions(0, 10**15), st.floats(1e-12, 1e15), st.floats(0, 2**60, width=32).map(np.float32), st.none(), st.booleans(),
)  # fmt: skip


@settings(max_examples=500)
@given(AMOUNTS, st.sampled_from(sorted(KINDS)))
@example("1e-12", "lam")
@example(Fraction(10**15), "hard")
@example("123456789012345.012345678901234567890123456789", "average")
def test_an_amount_is_refused_or_survives_being_told(amount, name):
    began = time.process_time()
    try:
        budget = KINDS[name](amount)
    except InputError as error:
        assert "it must be a finite number, 0 or more" in str(error)  # noqa: PT017
    else:
        value = getattr(budget, name)
        assert value == 0 or LEAST <= Fraction(value) <= MOST or name == "lam"
        assert Budget.from_dict(budget.to_dict()) == budget
    assert time.process_time() - began < 0.2


MEANT = st.one_of(
    st.just(0), st.sampled_from(["1e-12", "1e15", "1/3"]), st.floats(1e-12, 1e15),
    st.tuples(st.integers(1, 9999), st.integers(-15, 11)).map(lambda pair: f"{pair[0]}e{pair[1]}").filter(
        lambda text: LEAST <= Fraction(text) <= MOST),
)  # fmt: skip
BUDGETS = st.one_of(
    st.just(Budget()), MEANT.map(Tradeoff), MEANT.map(AverageBudget), MEANT.map(HardBudget),
    st.builds(lambda a, b: AverageBudget(a) & HardBudget(b), MEANT, MEANT),
)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(MEANT, min_size=3, max_size=3), BUDGETS, BUDGETS, st.sampled_from([family, paper]))
@example(["1e-12", "1e-12", "1e-12"], Tradeoff("1e15"), HardBudget("1e-12"), family)
@example(["1e15", "1e15", 0], Tradeoff("1e-12"), HardBudget("1e15"), family)
@example([0, 0, 0], AverageBudget(0), HardBudget(0), paper)
def test_what_is_accepted_before_training_can_be_loaded_after_it(tmp_path_factory, costs, trained_for, budget, maker):
    X, y = wide(20, columns=3)
    try:
        model = maker(X, y, costs=dict(zip(X, costs, strict=True)))
    except InputError as error:
        assert "round them" in str(error)  # noqa: PT017
        return
    model = replace(model, trained_for=trained_for, budget=budget)
    path = tmp_path_factory.getbasetemp() / "m.askwise"
    model.save(path)
    back = askwise.load(path)
    assert (back.budget, back.trained_for) == (budget, trained_for)
    mine, theirs = model.acquire(X), back.acquire(X)
    assert np.isfinite(mine.cost).all()
    assert mine.cost.tobytes() == theirs.cost.tobytes()
    assert mine.tests == theirs.tests
    if budget.hard is not None:
        assert all(Fraction(cost) <= budget.hard or cost <= float(budget.hard) for cost in theirs.cost.tolist())
    first = back.session(case_id="a")
    assert Session.replay(back, first.trace()).next() == first.next()
