"""One case, question by question."""

import json
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.models import FORM, MODELS, alike, answer, family, lacking, made, table, wide
from tests.support.naive import NaiveCosts
from tests.support.patients import NAIVE, PRICES, QUICK

import askwise
from askwise import CostlyClassifier, HardBudget, Recorded, Session, Tradeoff
from askwise.errors import InputError, StateError
from askwise.session.next_steps import next_steps

FULL = {"age": 50, "smoker": False, "pressure": 0.25, "colour": "red", "town": "Rom", "index": 2.5}
ROWS, _ = table(24, seed=9)
any_model = pytest.mark.parametrize("name", MODELS)


def through(session: Session, row: pd.Series) -> list:
    """Answers what is asked until it is decided; the steps."""
    steps = [session.next()]
    while steps[-1].decision is None:
        session.tell(steps[-1].test, answer(session.model, row, steps[-1].test), outside=True)
        steps.append(session.next())
    return steps


def begun(model, row, **more) -> Session:
    """A session that knows what everyone does, and what the row cannot say."""
    gone = lacking(model, row)
    known = {test: answer(model, row, test) for test in model.known if test not in gone}
    return model.session(known, refused=gone, outside=True, **more)


# ------------------------------------------------------------------ the same as everywhere else


@any_model
def test_answers_in_the_order_asked_lead_where_predict_leads(name):
    model = made(name)
    ids = [f"case {i}" for i in range(len(ROWS))]
    report = model.acquire(ROWS, ids=ids)
    asked = 0
    for i, case in enumerate(ids):
        session = begun(model, ROWS.iloc[i], case_id=case)
        *questions, end = through(session, ROWS.iloc[i])
        assert end.decision == report.prediction[i]
        assert i > 3 or end.decision == model.predict(ROWS.iloc[[i]], ids=[case])[0]
        assert tuple(step.test for step in questions) == tuple(session.answers) == report.tests[i]
        assert end.cost == session.cost == pytest.approx(report.cost[i])
        assert end.probability == pytest.approx(report.probability[i], abs=1e-4)
        asked += len(questions)
    assert asked > 10


@any_model
def test_many_sessions_together_are_as_each_alone(name):
    model = made(name)
    one, together = ([begun(model, row, case_id=i, budget=3 if i % 2 else None) for i, row in ROWS.iterrows()] for _ in range(2))
    for alone, step in zip(one, next_steps([*together, together[0]]), strict=False):
        mine = alone.next()
        assert (mine.test, mine.decision) == (step.test, step.decision)
        assert list(mine.probabilities.values()) == pytest.approx(list(step.probabilities.values()), abs=1e-5)
        assert mine.expected.total == pytest.approx(step.expected.total, abs=1e-3)


moves = st.lists(
    st.tuples(st.sampled_from(["follow", "refuse asked", "tell", "free", "refuse", "undo", "stop"]), st.integers(0, 99)),
    max_size=14,
)


@any_model
@settings(max_examples=12)
@given(data=st.data())
def test_whatever_is_told_refused_and_undone_it_ends_with_a_decision(name, data):
    model = made(name)
    row = ROWS.iloc[data.draw(st.integers(0, 23))]
    tests = model.schema.tests
    have = [test for test in tests if test not in lacking(model, row)]
    known = {test: answer(model, row, test) for test in data.draw(st.lists(st.sampled_from(have), unique=True, max_size=3))}
    budget = data.draw(st.sampled_from([None, None, 0, "0.7", 2, HardBudget(2) if model.family else None]))
    session = model.session(known, case_id=data.draw(st.integers(0, 9)), budget=budget, outside=True)
    ends = False
    for move, number in data.draw(moves):
        step = check(session)
        test = step.test if move in ("follow", "refuse asked") else tests[number % len(tests)]
        before = (session.answers, session.known, session.refused, session.cost, session.stopped)
        try:
            if move == "undo":
                session.undo()
            elif move == "stop":
                assert session.stop().decision is not None
                ends = True
            elif test is not None and (move.startswith("refuse") or test not in have):
                session.refuse(test)
                assert test in session.refused
            elif test is not None:
                session.tell(test, answer(model, row, test), paid=move != "free", outside=True)
                assert test in {**session.answers, **session.known}
        except InputError:
            assert before == (session.answers, session.known, session.refused, session.cost, session.stopped)
    for _ in range(len(tests) + 1):
        step = check(session)
        if step.decision is not None:
            break
        if step.test in have:
            session.tell(step.test, answer(model, row, step.test), outside=True)
        else:
            session.refuse(step.test)
    assert step.decision in model.schema.classes
    trace = json.loads(json.dumps(session.trace()))
    again = Session.replay(model, trace)
    assert alike(json.loads(json.dumps(again.trace())), trace)
    assert (again.next().decision, again.cost) == (step.decision, session.cost)
    assert ends or trace["events"][-1]["do"] == "decide"


def check(session: Session):
    """The next step, and all that must hold for it."""
    step, model = session.next(), session.model
    assert session.next() is step
    assert (step.test is None) != (step.decision is None)
    assert sum(step.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert step.cost == session.cost == pytest.approx(bill(session))
    e = step.expected
    assert 0 <= e.accuracy <= 1
    assert e.loss >= 0
    assert e.total == pytest.approx(step.cost + e.cost)
    held = {**session.answers, **session.known}
    if session.budget is not None:
        assert step.cost <= session.budget + 1e-9
    if step.test is not None:
        assert not session.stopped
        assert step.test not in held
        assert step.test not in session.refused
        assert not gone(model, step.test, session.refused, held)
        assert step.why[0].test == step.test
        assert step.why[0].cost == step.test_cost
        assert 0 <= step.shared <= step.test_cost <= e.cost + 1e-9
        assert step.left is None or step.test_cost <= step.left + 1e-9
        assert bill(session, step.test) == pytest.approx(step.cost + step.test_cost)
    else:
        assert step.probability == step.probabilities[step.decision] == e.accuracy
        assert e.cost == 0
    assert len({option.test for option in step.why}) == len(step.why) <= 4
    assert not {option.test for option in step.why} & set(held)
    assert json.loads(json.dumps(step.to_dict()))["decision"] == step.decision
    return step


def gone(model, test, refused, held) -> bool:
    """Whether a test is computed from one that is refused."""
    sources = [model.schema.tests[i] for i in np.flatnonzero(model.schema.costs.sources[model.form.tests[test]])]
    return any(s not in held and (s in refused or gone(model, s, refused, held)) for s in sources)


def bill(session, more=None) -> float:
    """What has been told costs, read aloud."""
    several = "form" in session.model.schema.tests
    prices = NaiveCosts(FORM["costs"], FORM["setup"], FORM["derived"]) if several else NAIVE
    free = set(session.known)
    return float(prices.cost({*session.answers, *free, *([more] if more else [])}, free))


# ------------------------------------------------------------------ what is said


def test_why_a_test_is_asked_and_what_is_expected():
    step = made("family").session(case_id=1).next()
    first, *others = step.why
    assert first.test == step.test
    assert len(others) == 3
    assert all(first.gain >= other.gain for other in others)
    assert step.reason.startswith(f"{step.test} is expected to save")
    assert others[0].test in step.reason
    end = made("family").session(case_id=1).stop()
    assert end.reason == "stopping was requested"
    assert made("family").session(budget=0).next().reason == "there is nothing more that could be asked within the budget"


@pytest.mark.parametrize("name", ["family", "a mixture", "losses", "paper"])
def test_what_is_expected_of_a_case_that_holds_nothing_is_what_was_measured(name):
    """Every case begins alike, so that a forecast could only be wrong about all of them."""
    model = made(name)
    session = model.session(case_id=1)
    step, point = session.next(), session.model.followed[session.second]
    assert step.test is not None
    assert (step.expected.cost, step.expected.accuracy) == pytest.approx((point.cost, point.measure.accuracy))
    assert step.expected.loss <= point.loss + 1e-9


def test_who_lacks_what_others_have_is_forecast():
    session = made("family").session(case_id=1)
    measured = session.next().expected
    session.refuse(session.next().test)
    assert session.next().expected != measured


@pytest.mark.parametrize("name", ["family", "paper"])
@pytest.mark.parametrize("case_id", range(4))
def test_no_test_is_said_to_save_more_than_can_be_lost(name, case_id):
    model = made(name)
    session = model.session(case_id=case_id)
    lam = model.followed[0].lam
    while (step := session.next()).decision is None:
        lost_now = max(min(step.losses.values()), 0)
        for option in step.why:
            assert option.gain is None or option.gain <= max(lost_now - lam * option.cost, 0) + 1e-9
        gains = [option.gain for option in step.why if option.gain is not None]
        assert gains == sorted(gains, reverse=True)  # what is asked still comes first
        assert "to save -" not in step.reason
        session.tell(step.test, answer(model, table()[0].dropna().iloc[case_id], step.test))


def test_a_fixed_order_says_what_is_next():
    model = made("a fixed order").at(Tradeoff(0.08))
    assert model.frontier[model.blend.first].prefix == 2
    session = model.session({"age": 40})
    order = [model.schema.tests[i] for i in np.argsort(model.family.rank)[:2] if model.schema.tests[i] != "age"]
    step = session.next()
    assert [option.test for option in step.why] == order
    assert step.why[0].gain is None
    assert "order" in step.reason
    assert step.expected.total == pytest.approx(float(NAIVE.cost(set(order), {"age"})))


def test_set_ups_and_derived_tests_have_their_price_told():
    includes = set()
    for seed in range(8):
        session = family(seed=seed, budget=Tradeoff(0)).session(case_id=seed)
        while (step := session.next()).test is not None:
            held = set(session.answers)
            paid = set().union(*(NAIVE.needs(test, set()) for test in held))
            new = NAIVE.needs(step.test, set()) - paid
            in_lab = {"pressure", "colour"}
            assert step.shared == (0.5 if new & in_lab and not paid & in_lab else 0), (step.test, held)
            assert set(step.includes) == new - {step.test}
            includes |= set(step.includes)
            session.tell(step.test, FULL[step.test])
    assert includes  # a test was asked for before those that it is computed from


def test_what_if_changes_nothing_and_says_what_would_come():
    session = made("family").session({"age": 40}, case_id=5)
    session.refuse("town")
    before, step = session.trace(), session.next()
    value = {"pressure": 0.1, "smoker": True, "colour": "red", "index": 2}[step.test]
    would = session.what_if(step.test, value)
    assert session.trace()["answers"] == before["answers"]
    assert session.next() is step
    session.tell(step.test, value)
    assert alike(session.next().to_dict(), would.to_dict())


def test_a_refused_test_takes_with_it_what_is_computed_from_it():
    model = made("family")
    session = model.session()
    session.refuse("pressure")
    asked = [step.test for step in through_with(session, {"age": 40, "smoker": True, "colour": "red", "town": "Rom"})]
    assert "index" not in asked
    assert "pressure" not in asked
    session = model.session({"index": 2.0})
    session.refuse("pressure")  # what is known stays
    assert session.known == {"index": 2}
    session.tell("pressure", 0.5)  # it could be had after all
    assert session.refused == []
    session.undo()
    assert session.refused == ["pressure"]
    session.undo()
    assert session.refused == []


def through_with(session, values):
    steps = [session.next()]
    while steps[-1].decision is None:
        session.tell(steps[-1].test, values[steps[-1].test])
        steps.append(session.next())
    return steps


def test_refusing_twice_is_refusing_once():
    session = made("family").session(case_id=1)
    session.refuse("pressure")
    step = session.next()
    session.refuse("pressure")
    assert session.next() is step
    assert [entry["do"] for entry in session.trace()["events"]] == ["refuse", "ask"]


def test_the_draw_follows_the_case_and_is_in_the_trace():
    model = made("paper, a mixture")
    ids = [f"A-{i}" for i in range(40)]
    follows = [model.session(case_id=i).trace()["draw"]["follows"] for i in ids]
    assert 0 < sum(follows) < 40
    assert follows == [model.session(case_id=i).trace()["draw"]["follows"] for i in ids]
    other = model.session(case_id="A-1", draw=0.999).trace()
    assert other["draw"]["follows"] == 0
    assert Session.replay(model, other).draw == 0.999
    assert len({model.session().case_id for _ in range(5)}) == 5


def test_a_budget_of_its_own_keeps_the_price_of_the_model():
    model = made("family")
    for budget in (0, "0.1", 0.7, 1.3):
        session = model.session(case_id=1, budget=budget)
        through(session, ROWS.iloc[0].fillna({"pressure": 0.5, "index": 2, "smoker": True, "colour": "red", "town": "Rom"}))
        assert session.cost <= float(budget)
    assert model.session(budget=10**9).budget == pytest.approx(float(model.schema.costs.money(model.schema.costs.total)))
    hard = made("a hard budget")
    assert hard.session(budget=99).budget == hard.session().budget <= 1.9
    assert model.session(budget=HardBudget(1)).model.budget == HardBudget(1)


def test_what_was_told_and_paid_keeps_to_the_budget():
    session = made("family").session(budget="1.4")
    with pytest.raises(InputError, match=r"'pressure' this case would cost 1\.5, but may cost 1\.4; .*paid=False"):
        session.tell("pressure", 0.1)
    assert session.cost == 0
    session.tell("pressure", 0.1, paid=False)
    assert session.known == {"pressure": 0.1}
    with pytest.raises(InputError, match="may cost 1"):
        made("family").session(budget=1, answers={"pressure": 0.1})


def test_what_may_be_told_is_the_hard_budget_and_what_is_asked_keeps_to_the_measured_one():
    made_ = family(seed=2)
    small = min(p.cap for p in made_.points if p.cap is not None)
    points = tuple(replace(p, measure=replace(p.measure, loss=p.loss / 2)) if p.cap == small else p for p in made_.points)
    model = replace(made_, points=points, budget=HardBudget("1.9"))
    keeps = float(model.schema.costs.money(model.cap))
    assert keeps < 1
    assert model.session().budget == model.session().next().left == 1.9
    for i, row in ROWS.iterrows():
        session = begun(model, row, case_id=i)
        *_, end = through(session, row)
        assert end.decision == model.predict(ROWS.iloc[[i]], ids=[i])[0]
        assert end.cost <= keeps
        assert end.left == pytest.approx(1.9 - end.cost)
    session = model.session()
    session.tell("pressure", 0.25)  # 1.5, which nobody would have asked for
    assert session.next().decision is not None
    assert session.next().left == pytest.approx(0.4)
    assert f"within the {keeps:g} of the budget that it keeps to" in session.next().reason
    session.tell("town", "Rom")
    assert (session.cost, session.next().left) == (1.8, pytest.approx(0.1))
    with pytest.raises(InputError, match=r"cost 2, but may cost 1\.9"):
        session.tell("smoker", True)
    assert model.session(budget=1.6).budget == 1.6
    assert alike(Session.replay(model, session.trace()).trace(), session.trace())


def test_a_budget_between_two_prices_is_named_as_it_was_given():
    session = made("family").session(budget="0.05")
    assert (session.budget, session.next().left) == (0.05, 0.05)
    with pytest.raises(InputError, match=r"cost 0\.1, but may cost 0\.05"):
        session.tell("age", 50)


def test_a_classifier_has_sessions_too():
    X, y = table(80)
    fitted = CostlyClassifier(algorithm="paper", config=QUICK, random_state=0).fit(X, y)
    session = fitted.session({"age": 50}, case_id=3)
    assert session.model is fitted.model_
    assert session.next().decision is not None or session.next().test in X


def test_what_everyone_knows_is_expected_and_not_asked():
    model = made("known for everyone")
    session = model.session()
    assert session.lacking_known == ["age", "town"]
    session.tell("age", 44)
    assert session.lacking_known == ["town"]
    assert session.cost == 0
    assert session.known == {"age": 44}


def test_an_existing_classifier_cannot_be_asked():
    with pytest.raises(InputError, match="existing classifier"):
        replace(made("family"), external=Recorded("ours")).session()


# ------------------------------------------------------------------ traces


def test_the_trace_tells_all_that_happened(tmp_path):
    model = made("family")
    session = model.session({"age": 40}, case_id="A-17", budget=5)
    first = session.next().test
    other = next(t for t in ("town", "smoker") if t != first)
    session.tell(other, {"town": "Rom", "smoker": True}[other])
    session.undo()
    session.refuse("colour")
    session.stop()
    trace = session.trace()
    assert [e["do"] for e in trace["events"]] == ["ask", "tell", "undo", "refuse", "stop", "decide"]
    assert trace["events"][1]["cost"] == pytest.approx(float(PRICES["costs"][other]))
    assert trace["events"][1]["asked"] is False
    assert (trace["case_id"], trace["known"], trace["refused"]) == ("A-17", {"age": 40}, ["colour"])
    assert trace["budget"] == session.budget
    assert trace["decision"] == session.next().decision
    model.save(tmp_path / "m.askwise")
    assert alike(Session.replay(askwise.load(tmp_path / "m.askwise"), trace).trace(), trace)


@pytest.mark.parametrize(("budget", "told"), [("1/3", ["age"]), (1000, ["age", "pressure"])])
def test_a_trace_keeps_a_budget_that_no_decimal_number_says(budget, told):
    X, y = table()
    model = family(X[["age", "pressure"]], y, costs={"age": "1/3", "pressure": "1/7"})
    session = model.session(case_id=1, budget=budget)
    for test in told:
        session.tell(test, FULL[test])
    session.next()
    trace = json.loads(json.dumps(session.trace()))
    assert Session.replay(model, trace).trace() == session.trace()
    from askwise.web.view import carried, revived

    assert revived(model, carried(session)).answers == session.answers


def test_a_trace_that_does_not_fit_is_refused():
    model = made("family")
    session = model.session({"age": 40}, case_id=1)
    session.stop()
    trace = json.loads(json.dumps(session.trace()))
    with pytest.raises(StateError, match="another model"):
        Session.replay(made("paper"), trace)
    assert Session.replay(made("paper"), trace, strict=False).stopped
    for wrong, words in [
        ({}, "not the trace"),
        ([], "not the trace"),
        ({**trace, "events": [{"do": "dance"}]}, "dance"),
        ({**trace, "events": [{"do": "tell", "test": "age"}]}, "does not fit"),
        ({**trace, "events": [{"do": "undo"}]}, "nothing to undo"),
        ({**trace, "known": {"agee": 1}}, "agee"),
        ({**trace, "decision": "so so"}, "another decision"),
    ]:
        with pytest.raises(StateError, match=words):
            Session.replay(model, wrong)


def test_a_step_takes_little_time():
    X, y = wide(100, 0, 50)
    model = family(X, y)
    told = {f"x{i}": 0.1 for i in range(10)}
    model.session(answers=told).next()
    best = np.inf
    for _ in range(30):
        began = time.process_time()
        model.session(case_id="A", answers=told).next()
        best = min(best, time.process_time() - began)
    assert best < 5e-3  # it is about a tenth of this where nothing else runs
