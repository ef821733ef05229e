"""Where mistakes are not all alike, the decision need not be the likeliest class: that is said, with what each decision loses."""

import io
from functools import cache

import numpy as np
import pytest
from tests.support.commands import ok
from tests.support.models import family, made, paper

LOSS = np.array([[0, 1], [20, 0]])  # who is well and is called ill loses twenty times as much as the other way round


AGE = 50


@cache
def weighed():
    """A model that at AGE decides for the class that is not the likeliest."""
    return family(loss=LOSS.tolist(), seed=0)


def stopped(model, age):
    session = model.session({"age": age}, case_id="A-17")
    return session.stop()


def test_a_step_tells_the_expected_loss_of_each_decision():
    model = weighed()
    step = stopped(model, AGE)
    p = np.array(list(step.probabilities.values()))
    assert list(step.losses.values()) == pytest.approx((p @ LOSS).tolist())
    assert step.decision == min(step.losses, key=step.losses.get) != max(step.probabilities, key=step.probabilities.get)
    assert step.losses[step.decision] == pytest.approx(step.expected.loss)
    other = next(c for c in step.losses if c != step.decision)
    assert step.reason.endswith(
        f"; mistakes weigh differently here, and {step.decision} has the least expected loss, although {other} is more likely"
    )
    assert step.to_dict()["probabilities"] == [
        {"class": c, "probability": step.probabilities[c], "loss": step.losses[c]} for c in step.probabilities
    ]


def test_asked_tests_tell_it_too_and_equal_mistakes_need_no_words():
    model = weighed()
    step = model.session({"age": AGE}, case_id="A-17").next()
    assert step.test is not None
    assert min(step.losses.values()) >= step.expected.loss - 1e-9
    plain = stopped(made("family"), 50)
    assert list(plain.losses.values()) == pytest.approx([1 - p for p in plain.probabilities.values()])
    assert "mistakes" not in plain.reason


def test_the_paper_decides_for_the_least_of_the_losses_it_tells():
    model = paper(loss=LOSS.tolist(), seed=1)
    for age in range(20, 90, 7):
        step = stopped(model, age)
        assert step.decision == min(step.losses, key=step.losses.get)
        assert step.losses[step.decision] == pytest.approx(step.expected.loss)


def test_the_terminal_says_so(tmp_path, monkeypatch):
    model = weighed()
    step = stopped(model, AGE)
    model.save(tmp_path / "m.askwise")
    monkeypatch.setattr("sys.stdin", io.StringIO("why\nstop\n\n"))
    said = ok("ask", tmp_path / "m.askwise", "--known", f"age={AGE}", "--case-id", "A-17")
    losses = ", ".join(f"{c} {step.losses[c]:.3g}" for c in sorted(step.losses, key=step.losses.get))
    assert said.count(f"expected loss if decided now: {losses}") == 2  # by why, and with the decision
    assert f"decision: {step.decision} (probability {step.probability:.3f}, expected loss" in said
    assert "mistakes weigh differently here" in said


def test_the_page_says_so(make_client):
    from askwise.web import view

    model = weighed()
    step = stopped(model, AGE)
    client = make_client(of={"weighed": model})
    asked = client.post("/m/weighed/start", data={"known.0.0": str(AGE), "case_id": "A-17"}).text
    assert "Mistakes weigh differently here" in asked
    state = view.carried(model.session({"age": AGE}, case_id="A-17"))
    done = client.post("/m/weighed", data={"state": state, "do": "stop"}).text
    assert "likely to be right" not in done
    assert "Mistakes weigh differently here." in done
    other = next(c for c in step.losses if c != step.decision)
    assert f"although {other} is more likely" in done
    for page in (asked, done):
        for name, p in step.probabilities.items():
            cells = "".join(f'<td class="right">{words}</td>' for words in (view.percent(p), f"{step.losses[name]:.3g}"))
            assert f'<th scope="row">{name}</th>{cells}' in page


def test_who_hears_the_picture_of_the_model_hears_what_it_shows(make_client):
    from askwise.web.view import percent

    client = make_client(of={"weighed": weighed(), "alike": made("family")})
    first, last = weighed().frontier[0], weighed().frontier[-1]
    page, plain = (client.get(f"/m/{name}/model").text for name in ("weighed", "alike"))
    assert f"The expected loss falls from {first.loss:.4g} at no cost to {last.loss:.4g} at" in page
    assert f"A curve that rises from {percent(0.5)} right at no cost to {percent(0.85)} at" in plain


def test_the_api_says_so(make_client):
    model = weighed()
    step = stopped(model, AGE)
    client = make_client(of={"weighed": model})
    body = {"known": {"age": AGE}, "case_id": "A-17", "stop": True}
    said = client.post("/api/models/weighed/next", json=body).json()
    assert [row["loss"] for row in said["probabilities"]] == pytest.approx(list(step.losses.values()), abs=1e-4)
    assert said["reason"] == step.reason
