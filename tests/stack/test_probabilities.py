"""Class probabilities as the goal: what a stack learns for, measures and tells, whichever way one asks."""

import json
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from tests.support.members import QUICK as quick_members
from tests.support.models import answer, lacking
from tests.support.patients import PRICES, numbers, patients

from askwise import AverageBudget, CostlyClassifier, HardBudget, Recorded, StackConfig, load
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError, StateError
from askwise.methods.exact import Exact
from askwise.model import archives
from askwise.model.archives import MODEL
from askwise.reports.model_report import MeasuredOn, describe, frontier_table, measured, results
from askwise.stack.run import run

QUICK = quick_members.but(value_steps=60, pool_states=600, growths=1, folds=3)


def classifier(**more) -> CostlyClassifier:
    settings = {**PRICES, "algorithm": "stack", "config": QUICK, "random_state": 0}
    return CostlyClassifier(**(settings | more))


@pytest.fixture(scope="module")
def fitted():
    X, y = patients(160)
    return classifier(loss="log", budget=AverageBudget("0.8")).fit(X, y), X, y


# ------------------------------------------------------------------ what is measured


def test_the_frontier_is_the_log_loss_of_beliefs_out_of_fold(fitted):
    learned, X, _ = fitted
    report, model = learned.out_of_fold_, learned.model_
    p, truth = np.asarray(report.belief), report.truth
    assert len(truth) == len(X)
    assert report.log_loss.value == pytest.approx(log_loss(truth, p))
    assert report.measure.loss == pytest.approx(report.log_loss.value)
    first, second = model.followed
    low, high = sorted((first.loss, second.loss))
    assert low - 3 * second.measure.loss_error <= report.measure.loss <= high + 3 * second.measure.loss_error
    at_once = model.points[0]
    assert at_once.loss == pytest.approx(model.loss_scale, rel=0.02)  # what the class shares lose
    assert all(p.loss < at_once.loss for p in model.frontier[1:])


def test_every_point_of_the_frontier_equals_its_cases_recomputed():
    X, y = numbers(120, 0, 3)
    schema = Schema.build(["a", "b", "c"], [0, 1])
    for rule in ("log", "brier"):
        problem = Problem.build(schema, X, y, loss=rule)
        result = run(problem, problem, None, QUICK, 0)
        for point in result.points:
            report = result.held_out(point, result.shared.limit(schema.costs, point.prefix, point.cap))
            found = report.log_loss if rule == "log" else report.brier_score
            if point.prefix is not None:  # the others lose what members lost that paid as much
                assert point.measure.loss == pytest.approx(found.value, abs=2.5 * found.error)  # with less noise, see `steady`
                assert point.measure.loss_error == pytest.approx(found.error)


def test_scores_are_those_of_scikit_learn_the_larger_the_better(fitted):
    learned, _, _ = fitted
    X, y = patients(80, 1)
    p, weight = learned.predict_proba(X), np.arange(80) % 3
    assert learned.score(X, y) == pytest.approx(-log_loss(y, p))
    assert learned.score(X, y, weight) == pytest.approx(-log_loss(y, p, sample_weight=weight))
    brier = classifier(loss="brier").fit(*patients(160))
    both = brier.predict_proba(X)
    one = brier_score_loss(y, both[:, 1], pos_label="well", scale_by_half=False)
    assert brier.score(X, y) == pytest.approx(-one)  # over both classes
    with pytest.raises(InputError, match="the target is 'wel' in row 0"):
        learned.score(X[:1], ["wel"])
    with pytest.raises(InputError, match="the target is missing in row 0"):
        learned.score(X[:1], [float("nan")])


def test_it_is_told_which_loss_it_was_learned_for_and_how_good_probabilities_are(fitted):
    learned, _, _ = fitted
    X, y = patients(80, 1)
    model = learned.model_
    assert (model.objective, model.weighted, model.judged_by_loss) == ("log loss", False, True)
    assert "log loss" in frontier_table(model).partition("---")[0]
    assert "log loss" in describe(model)
    assert "log loss" in repr(model)
    report = model.report(model.problem(X, y))
    figures = measured(model, report)
    p = learned.predict_proba(X)
    assert figures["log_loss"] == pytest.approx(log_loss(y, p))
    assert figures["loss"] == pytest.approx(figures["log_loss"], abs=1e-5)
    assert figures["auroc"] == pytest.approx(roc_auc_score(y, p[:, 1]))
    assert figures["brier_score"] == pytest.approx(((p - (y[:, None] == learned.classes_)) ** 2).sum(1).mean())
    assert all(figures[f"{name}_error"] > 0 for name in ("log_loss", "brier_score", "auroc"))
    said = results(model, MeasuredOn(report, "80 cases", "test"))
    assert all(f"{name} 0." in said for name in ("log loss", "Brier score", "AUROC"))
    assert f"accuracy {100 * figures['accuracy']:.1f} ± {100 * figures['accuracy_error']:.1f} %" in said
    assert said.count("log loss") == 1


# ------------------------------------------------------------------ every way in


def test_every_way_in_tells_the_same_probabilities(fitted, tmp_path):
    learned, _, _ = fitted
    X, _ = patients(12, 3)
    model = learned.at(HardBudget("1.5")).model_
    p, report = model.predict_proba(X), model.acquire(X)
    frame = report.to_frame()
    assert frame[["probability ill", "probability well"]].to_numpy() == pytest.approx(p)
    assert (report.prediction == learned.classes_[p.argmax(1)]).all()
    for i, (_, row) in enumerate(X.iterrows()):
        session = model.session(refused=lacking(model, row), outside=True)
        while (step := session.next()).decision is None:
            session.tell(step.test, answer(model, row, step.test))
        assert tuple(session.answers) == report.tests[i]
        assert list(step.probabilities.values()) == pytest.approx(p[i].tolist(), abs=1e-5)
        uncertain = -sum(q * np.log(q) for q in p[i])
        assert list(step.losses.values()) == pytest.approx([uncertain] * 2, abs=1e-5)
        assert step.expected.loss == pytest.approx(uncertain, abs=1e-5)
        assert "mistakes" not in step.reason
    for name in ("m.askwise", "m.npz"):
        model.save(tmp_path / name) if name == "m.askwise" else model.export(tmp_path / name)
        again = load(tmp_path / name)
        assert (again.rule, again.fingerprint) == ("log", model.fingerprint)
        assert again.predict_proba(X) == pytest.approx(p, abs=1e-12)


def test_the_onnx_graph_decides_alike_and_tells_the_same(fitted, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from askwise.model.export import step

    model = fitted[0].at(HardBudget(2)).model_
    model.export(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    rng, F, C = np.random.default_rng(0), model.schema.n_tests, len(model.schema.columns)
    inputs = {
        "values": rng.normal(size=(300, C)), "mask": rng.random((300, F)) < 0.4, "legal": rng.random((300, F)) < 0.8,
        "test_cost": rng.random((300, F)), "left": rng.random(300) * 2, "draw": rng.random(300),
    }  # fmt: skip
    inputs = {i.name: inputs[i.name] for i in session.get_inputs()}
    action, _, p = session.run(None, inputs)
    mine = step(model, **inputs)
    assert (action == mine["action"]).all()
    np.testing.assert_allclose(p, mine["probabilities"], atol=1e-5)


@pytest.mark.parametrize("change", [
    lambda arrays, card: card.update(rule="lgo"),
    lambda arrays, card: card.update(rule=["log"]),
    lambda arrays, card: card.pop("rule"),
    lambda arrays, card: arrays.update(loss=np.array([[0.5, 1], [1, 0]])),
], ids=["another word", "a list", "no word", "losses that are no class weights"])  # fmt: skip
def test_a_file_whose_rule_is_damaged_is_refused_in_a_sentence(fitted, tmp_path, change):
    path = tmp_path / "m.askwise"
    fitted[0].save(path)
    arrays, card = archives.read(path, MODEL)
    change(arrays, card)
    archives.write(path, MODEL, arrays, json.loads(json.dumps(card)), lambda _: None)
    with pytest.raises(StateError, match="damaged"):
        load(path)


# ------------------------------------------------------------------ what is learned


def guided(rows: int, rule: str, seed: int) -> Problem:
    """`which` says whether `left` or `right` tells the class; the other one says nothing."""
    rng = np.random.default_rng(seed)
    y, which, noise = (rng.random(rows) < 0.4).astype(int), rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    tells = np.where(rng.random(rows) < 0.9, y, 1 - y)
    X = np.stack([which, np.where(which, noise, tells), np.where(which, tells, noise)], 1)
    return Problem.build(Schema.build(["which", "left", "right"], [0, 1], [1, 4, 4]), X, y, loss=rule)


@pytest.mark.parametrize(("rule", "lams"), [("log", ("0.005", "0.02")), ("brier", ("0.004", "0.012"))])
def test_it_comes_near_the_exact_optimum(rule, lams):
    """Of what the best of all policies for these very rows saves against answering at once, it saves most."""
    config = StackConfig.for_size(700, 3).but(value_steps=400, tree_rounds=30, folds=3, pool_states=2000)
    stack = run(guided(500, rule, 0), guided(200, rule, 1), None, config, 0).shared
    test = guided(3000, rule, 2)
    exact = Exact(test)
    for lam in map(Fraction, lams):
        best, found = exact.solve(lam, None), measure(test, stack.policy(float(lam)), None)
        total = found.loss + float(lam) * found.cost
        optimum = float(best.loss + lam * best.cost)
        assert optimum - 1e-5 <= total <= optimum + 0.25 * (test.loss_scale - optimum)


def test_class_weights_count_in_the_loss_and_leave_probabilities_as_they_are():
    X, y = patients(160)
    plain, weighted = (classifier(loss="log", class_weight=w).fit(X, y) for w in (None, {"ill": 4}))
    assert weighted.model_.objective == "weighted log loss"
    assert weighted.model_.loss_scale > 2 * plain.model_.loss_scale
    report = weighted.out_of_fold_
    each = np.where(report.truth == 0, 4, 1) * -np.log(report.belief[np.arange(160), report.truth].clip(1e-6))
    assert report.measure.loss == pytest.approx(each.mean())
    assert abs(weighted.predict_proba(X)[:, 0].mean() - (y == "ill").mean()) < 0.08
    heavier = weighted.predict(X) == "ill"
    assert heavier[weighted.predict_proba(X)[:, 0] > 0.21].all()  # named as if errors of the ill counted four times


# ------------------------------------------------------------------ what cannot be


def test_an_existing_classifier_is_asked_for_its_probabilities(tmp_path):
    X, y = patients(160)
    X = X[["age", "pressure"]].fillna(0)
    other = LogisticRegression().fit(X, y)
    learned = CostlyClassifier({"age": 1, "pressure": 2}, loss="log", algorithm="stack", config=QUICK, external=other).fit(X, y)
    problem = learned.model_.problem(X, y)
    assert problem.external_belief == pytest.approx(other.predict_proba(X))
    learned.save(tmp_path / "m.askwise")
    assert (load(tmp_path / "m.askwise", external=other).predict(X) == learned.predict(X)).all()

    class OnlyClasses:
        def predict(self, X):
            return other.predict(X)

    with pytest.raises(InputError, match="a OnlyClasses, has no predict_proba, but the loss 'log' judges probabilities"):
        CostlyClassifier(loss="log", algorithm="stack", external=OnlyClasses()).fit(X, y)
    with pytest.raises(InputError, match="column 'doctor' holds the classes that an existing classifier named"):
        CostlyClassifier(loss="log", algorithm="stack", external=Recorded("doctor")).fit(X.assign(doctor=y), y)


def test_what_judges_classes_alone_refuses(fitted):
    _, X, y = fitted
    with pytest.raises(InputError, match="the paper's algorithm learns what classes are worth, not how probable they are"):
        CostlyClassifier(loss="log", algorithm="paper").fit(X, y)
    with pytest.raises(InputError, match="loss is 'logs'; it must be 'log', 'brier' or a loss matrix"):
        CostlyClassifier(loss="logs").fit(X, y)
