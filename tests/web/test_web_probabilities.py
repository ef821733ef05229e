"""Where class probabilities are the goal, the page, the API and the terminal say so."""

import io
import json
import re

import pytest
from tests.support.commands import ok, run
from tests.support.models import made
from tests.support.patients import patients


def stopped(model):
    return model.session({"age": 50}, case_id="A-17").stop()


def test_the_page_says_that_the_probabilities_are_the_answer(make_client):
    from askwise.web import view

    model = made("log loss")
    client = make_client(of={"risk": model})
    asked = client.post("/m/risk/start", data={"known.0.0": "50", "case_id": "A-17"}).text
    assert "Expected log loss at the end" in asked
    assert "Mistakes weigh" not in asked
    done = client.post("/m/risk", data={"state": view.carried(model.session({"age": 50}, case_id="A-17")), "do": "stop"}).text
    assert f"Here the probabilities are the answer. Their expected log loss is {stopped(model).expected.loss:.3g}." in done


def test_the_picture_of_the_model_is_about_the_loss_it_was_learned_for(make_client):
    page = make_client(of={"risk": made("log loss")}).get("/m/risk/model").text
    first, last = made("log loss").frontier[0], made("log loss").frontier[-1]
    assert "Expected log loss over mean cost" in page
    assert f"The expected log loss falls from {first.loss:.4g} at no cost to {last.loss:.4g} at" in page
    assert '<th scope="col" class="right">Log loss</th>' in page
    assert "Brier score" in make_client(of={"risk": made("Brier score, a mixture")}).get("/m/risk/model").text


def test_the_api_tells_the_probabilities_and_what_they_lose(make_client):
    step = stopped(made("log loss"))
    body = {"known": {"age": 50}, "case_id": "A-17", "stop": True}
    client = make_client(of={"risk": made("log loss")})
    assert client.get("/api/models/risk").json()["objective"] == "log loss"
    said = client.post("/api/models/risk/next", json=body).json()
    told = [(row["class"], row["probability"], row["loss"]) for row in said["probabilities"]]
    assert told == [(c, pytest.approx(p), pytest.approx(step.losses[c])) for c, p in step.probabilities.items()]
    assert len({round(row["loss"], 9) for row in said["probabilities"]}) == 1


def test_the_terminal_says_so(tmp_path, monkeypatch):
    model = made("log loss")
    model.save(tmp_path / "m.askwise")
    monkeypatch.setattr("sys.stdin", io.StringIO("why\nstop\n\n"))
    said = ok("ask", tmp_path / "m.askwise", "--known", "age=50", "--case-id", "A-17")
    step = stopped(model)
    assert said.count(f"expected log loss if decided now: {step.expected.loss:.3g}") == 2  # by why, and with the decision
    likeliest = max(step.probabilities, key=step.probabilities.get)
    assert f"decision: {step.decision} ({likeliest} {step.probabilities[likeliest]:.3f}, " in said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("risk")
    X, y = patients(120)
    X.assign(diagnosis=y).to_csv(here / "cases.csv", index=False)
    words = ["--target", "diagnosis", "--algorithm", "stack", "--time-limit", "4s", "--quiet"]
    here.joinpath("said.txt").write_text(
        ok("fit", here / "cases.csv", *words, "--loss", "log", "--out", here / "m.askwise"), encoding="utf-8"
    )
    return here


def test_a_fit_on_the_command_line_says_log_loss_brier_score_and_auroc(folder):
    said = (folder / "said.txt").read_text()
    sentence = next(line for line in said.splitlines() if line.startswith("on 120 cases"))
    for words in (r"log loss 0\.\d+ ± ", r"accuracy \d+\.\d ± \d+\.\d %", r"Brier score 0\.\d+ ± ", r"AUROC 0\.\d+ ± "):
        assert re.search(words, sentence)
    assert "it was learned for the log loss of the class probabilities" in said
    assert "log loss" in (folder / "m.html").read_text()


def test_evaluate_and_predict_tell_probabilities(folder):
    words = "evaluate", folder / "m.askwise", folder / "cases.csv", "--target", "diagnosis"
    figures = json.loads(ok(*words, "--json"))
    assert {"accuracy", "log_loss", "log_loss_error", "brier_score", "brier_score_error", "auroc", "auroc_error"} <= set(figures)
    assert figures["loss"] == pytest.approx(figures["log_loss"], rel=1e-4)
    assert "auroc                0." in ok(*words)
    rows = json.loads(ok("predict", folder / "m.askwise", folder / "cases.csv", "--json"))
    assert all(r["probability ill"] + r["probability well"] == pytest.approx(1) for r in rows)
    assert all(r["probability"] == r[f"probability {r['prediction']}"] for r in rows)
    assert ok("predict", folder / "m.askwise", folder / "cases.csv").startswith("cost,prediction,probability,probability ill,")


def test_a_loss_that_is_neither_a_word_nor_a_file_is_refused(folder):
    words = "fit", folder / "cases.csv", "--target", "diagnosis", "--out", folder / "n.askwise"
    code, _, said = run(*words, "--loss", "lgo")
    assert code == 2
    assert "--loss is 'lgo', and there is no such file; name a file, or say log or brier" in said
    code, _, said = run(*words, "--loss", "brier", "--algorithm", "paper")
    assert code == 2
    assert "learns what classes are worth, not how probable they are" in said
