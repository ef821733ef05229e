"""Targets and class weights of a trained stack: what is measured, what `at` follows, and that files and runtimes agree."""

from __future__ import annotations

import itertools
import re
import time
import warnings

import numpy as np
import onnxruntime
import pytest
from tests.support.models import answer, family, lacking, paper
from tests.support.patients import PRICES, patients

import askwise
from askwise import AtLeast, AtMost, AverageBudget, Budget, ClassWeights, CostlyClassifier, HardBudget, StackConfig, Tradeoff
from askwise.core.episode import rollout
from askwise.errors import Doubt, InputError, StateError
from askwise.frontier.point import AT_ONCE
from askwise.model import archives
from askwise.model.alternatives import kinds_followed
from askwise.model.archives import MODEL
from askwise.model.export import step
from askwise.model.recalls import measured_targets, recalls
from askwise.model.targeting import judged
from askwise.reports.model_report import kinds_used
from askwise.reports.promises import borne_out

QUICK = StackConfig.quick().but(folds=3, value_steps=60, network_steps=40)
X, Y = patients(260)
NEW = patients(400, seed=9)


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)
        return CostlyClassifier(**PRICES, config=QUICK, random_state=0, n_jobs=1).fit(X, Y)


@pytest.fixture(scope="module")
def model(fitted):
    return fitted.model_


def recall_of(model, name="ill"):
    """Of the point that a model follows, by its counts."""
    k = model.schema.classes.index(name)
    (point, _) = model.followed
    return point.counts[k, k] / point.counts[k].sum()


def test_points_are_measured_class_by_class_under_several_weights(model):
    points, prior = model.targeted, np.exp(model.family.weights["prior"])
    assert points[0].prefix == 0
    assert points[0].class_weights is None
    weights = {p.class_weights for p in points}
    assert len(weights) == 9
    for each in weights - {None}:
        assert np.dot(each, prior) == pytest.approx(1)
    ratios = sorted(w[1] / w[0] for w in weights - {None})
    assert (ratios[0], ratios[-1]) == (pytest.approx(1 / 30), pytest.approx(30))
    for p in points:
        assert p.counts.sum() == pytest.approx(len(Y))
        assert p.counts.sum(1) == pytest.approx([(Y == "ill").sum(), (Y == "well").sum()])
        assert p.believed.sum() == pytest.approx(len(Y), abs=1e-3)
        assert p.measure.accuracy == pytest.approx(np.trace(p.counts) / len(Y))
        assert p.measure.loss == pytest.approx(1 - p.measure.accuracy)


def test_the_more_a_class_weighs_the_more_of_it_is_found(model):
    """Where the same tests are bought for everybody, exactly so; the order of decisions by their weights does not change."""
    of_all = [p for p in model.targeted if p.prefix == model.schema.n_tests]
    of_all.sort(key=lambda p: 1 if p.class_weights is None else p.class_weights[1] / p.class_weights[0])
    ill = [p.counts[0, 0] for p in of_all]
    assert ill == sorted(ill, reverse=True)
    assert ill[0] > ill[-1]


def test_what_buys_nothing_decides_the_same_for_every_case(model):
    """Whatever each of its members would decide: so it never reaches a recall and a specificity above 0."""
    problem = model.problem(*NEW)
    bought_by_nobody = [p for p in model.targeted if p.cost == 0]
    assert len(bought_by_nobody) > 9
    for point in bought_by_nobody:
        decided = {int(d) for d in rollout(problem, model.arm(point), model.limit(point)).decision}
        assert decided == set(np.flatnonzero(point.counts.sum(0)).tolist())
        assert point.measure.accuracy == pytest.approx(np.trace(point.counts) / point.counts.sum())


def test_a_target_follows_the_cheapest_measured_point(model):
    for value in (0.5, 0.7, 0.8):
        there = model.at(AtLeast(recall={"ill": value}))
        enough = [
            p for p in model.targeted if p.counts[0, 0] / p.counts[0].sum() >= value and p.loss <= model.targeted[0].loss + 1e-9
        ]
        assert there.measured.cost == min(p.cost for p in enough)
        assert recall_of(there) >= value
        assert there.family is model.family


def test_a_target_that_deciding_at_once_reaches_is_followed_by_deciding_at_once(model):
    there = model.at(AtLeast(accuracy=0.3))
    assert there.followed[0].prefix == 0
    assert there.kind_of(there.blend.first) == AT_ONCE
    assert kinds_followed(there) == (AT_ONCE,)
    assert "decides at once at 0; " in kinds_used(there)


def test_a_hard_budget_is_kept_by_every_case(model):
    there = model.at(AtLeast(accuracy=0.6) & HardBudget(1))
    assert there.acquire(NEW[0]).cost.max() <= 1
    assert there.measured.accuracy >= 0.6


def test_class_weights_weigh_losses_wherever_they_are_measured(model):
    there = model.at(ClassWeights({"ill": 4}) & Tradeoff(0.02))
    weights = np.array(there.class_weights)
    assert weights[0] / weights[1] == pytest.approx(4)
    problem = there.problem(*NEW)
    report = there.report(problem)
    wrong = report.episodes.decision != problem.labels
    assert report.loss == pytest.approx((wrong * weights[problem.labels]).mean())
    assert model.at(ClassWeights({"ill": 2, "well": 0.5})).class_weights == pytest.approx(there.class_weights)
    plain = model.at(Tradeoff(0.02))
    sure = model.at(ClassWeights({"ill": 50}) & Tradeoff(0.02))
    assert plain.report(plain.problem(*NEW)).recall["ill"].value <= sure.report(sure.problem(*NEW)).recall["ill"].value


def test_a_target_joined_with_class_weights_tells_weighed_losses(model):
    there = model.at(AtMost(loss=0.35) & ClassWeights({"ill": 4}))
    ((_, measured),) = measured_targets(there)
    assert there.expected["loss"] == pytest.approx(measured.value)
    assert there.expected["loss"] <= 0.35
    point = there.followed[0]
    assert measured.value == pytest.approx((point.counts * there.losses).sum() / point.counts.sum())
    figures = [p.loss for p in there.frontier if p is not point and p.cost <= point.cost]
    assert there.expected["loss"] <= max(figures)  # on the same scale as the others of the frontier


def test_weights_between_the_measured_ones_are_run_as_they_are_asked_for(model):
    there = model.at(ClassWeights({"ill": 3}) & Tradeoff(0.02))
    assert all(p.class_weights == there.class_weights for p in there.followed)
    assert there.class_weights not in {p.class_weights for p in model.targeted}


@pytest.mark.parametrize("weight", [0.004, 0.3, 3.58, 19.6, 800])
def test_an_average_budget_is_kept_by_what_was_measured_whatever_the_weights(model, weight):
    """Under other weights a policy pays more or less than it was measured to pay."""
    measured = {(p.lam, p.prefix, p.cap, p.class_weights): p for p in model.targeted}
    for amount in (0.4, 0.8, 1.6):
        there = model.at(ClassWeights({"ill": weight}) & AverageBudget(amount, mixing=False))
        first, second = (there.frontier[i] for i in (there.blend.first, there.blend.second))
        for point in (first, second):
            same = measured[point.lam, point.prefix, point.cap, point.class_weights]
            assert (point.cost, point.counts is same.counts) == (same.cost, True)
            assert point.loss == pytest.approx((point.counts * there.losses).sum() / point.counts.sum())
        assert first.class_weights == second.class_weights


def combinations(rng):
    for _ in range(50):
        value, confidence = float(rng.choice([0.3, 0.5, 0.7, 0.8, 0.9, 0.97])), rng.choice([None, 0.5, 0.8, 0.9])
        kind = rng.integers(4)
        targets = [
            {"recall": {"ill": value}},
            {"recall": {"well": value}},
            {"accuracy": value},
            {"recall": {"ill": value}, "specificity": 0.3},
        ]
        budget = AtLeast(**targets[kind], confidence=confidence)
        if rng.random() < 0.5:
            budget &= AverageBudget(round(float(rng.uniform(0, 2.5)), 2), confidence=rng.choice([None, 0.9]))
        if rng.random() < 0.3:
            budget &= HardBudget(round(float(rng.uniform(0.2, 3)), 2))
        if rng.random() < 0.3:
            budget &= ClassWeights({"ill": 3.0})
        yield budget


def tighter(a: Budget, b: Budget) -> bool:
    """Whether whatever keeps b keeps a."""
    same = [t.key for t in a.targets] == [t.key for t in b.targets] and a.class_weights == b.class_weights
    return same and (
        all(t.value <= u.value and (t.confidence or 0) <= (u.confidence or 0) for t, u in zip(a.targets, b.targets, strict=True))
        and (a.average is None or (b.average is not None and a.average >= b.average))
        and (a.average is None or (a.confidence or 0) <= (b.confidence or 0))
        and (a.hard is None or (b.hard is not None and a.hard >= b.hard))
    )


def test_fifty_combinations_are_answered_at_once_without_training_and_without_contradiction(model):
    paid, said = dict[Budget, float](), list[str]()
    for budget in combinations(np.random.default_rng(5)):
        began = time.perf_counter()
        try:
            there = model.at(budget)
            assert there.family is model.family
            assert there.predict(NEW[0][:5]).shape == (5,)
            paid[budget] = there.expected["cost"]
        except InputError as error:
            said.append(str(error))
            paid[budget] = np.inf
        assert time.perf_counter() - began < 1
    assert all(re.fullmatch(r"At\w+\(.*cannot be reached.* that can be had is .*, for [\d.]+ per case.*", text) for text in said)
    assert 5 < sum(np.isfinite(list(paid.values()))) < len(paid)
    pairs = [(a, b) for a, b in itertools.permutations(paid, 2) if tighter(a, b)]
    assert pairs
    assert all(paid[a] <= paid[b] for a, b in pairs)


BUDGETS = [
    AtLeast(recall={"ill": 0.8}),
    AtLeast(recall={"ill": 0.6}, confidence=0.8) & HardBudget(2),
    AtMost(loss=0.3),
    ClassWeights({"ill": 5}) & Tradeoff(0.05),
    ClassWeights({"well": 5}) & AverageBudget(0.6, mixing=True),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_files_sessions_and_runtimes_decide_alike(model, budget, tmp_path):
    there, rows = model.at(budget), NEW[0][:60]
    told = there.acquire(rows, ids=np.arange(60))
    for name, write in (("m.askwise", there.save), ("m.npz", there.export)):
        write(tmp_path / name)
        again = askwise.load(tmp_path / name)
        assert again.budget == budget
        assert again.fingerprint == there.fingerprint == model.fingerprint
        assert again.acquire(rows, ids=np.arange(60)).tests == told.tests
        assert again.expected == there.expected
        assert again.at(AtLeast(recall={"ill": 0.7})).expected == model.at(AtLeast(recall={"ill": 0.7})).expected
    for i in range(8):
        row = rows.iloc[i]
        session = there.session(case_id=i, refused=lacking(there, row))
        while (asked := session.next()).test is not None:
            session.tell(asked.test, answer(there, row, asked.test))
        assert asked.decision == told.prediction[i]
        assert session.cost == pytest.approx(told.cost[i])


@pytest.mark.parametrize("budget", [BUDGETS[0], BUDGETS[3]], ids=str)
def test_the_graph_computes_what_the_policy_computes(model, budget, tmp_path):
    there = model.at(budget)
    there.export(tmp_path / "m.onnx")
    graph = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    rng, F = np.random.default_rng(0), model.schema.n_tests
    values = model.encoding.transform(NEW[0][:50]).astype(float)
    mean, deviation = (np.concatenate([getattr(p, name) for p in model.encoding.parts]) for name in ("mean", "deviation"))
    mask = rng.random((50, F)) < 0.3
    given = {
        "values": np.nan_to_num(values) * deviation + mean,
        "mask": mask,
        "legal": ~mask,
        "test_cost": np.tile(model.schema.costs.money(model.schema.costs.alone.astype(float)), (50, 1)),
        "left": np.full(50, np.inf),
    }
    mine = step(there, **given)
    action, q, _ = graph.run(["action", "q", "probabilities"], given)
    np.testing.assert_array_equal(action, mine["action"])
    np.testing.assert_allclose(q, mine["q"], rtol=1e-4, atol=1e-4)


def test_a_file_with_wrong_counts_is_refused(model, tmp_path):
    model.save(tmp_path / "m.askwise")
    arrays, card = archives.read(tmp_path / "m.askwise", MODEL)
    n = len(model.targeted)
    wrong = {
        "targeted/counts": [-arrays["targeted/counts"], arrays["targeted/counts"][:-1], np.zeros((n, 2, 2)), np.zeros((n, 2, 3))],
        "targeted/believed": [arrays["targeted/believed"] * np.nan, arrays["targeted/believed"][0]],
        "targeted/class_weights": [arrays["targeted/class_weights"] * 0, arrays["targeted/class_weights"][:, :1]],
    }
    for name, values in wrong.items():
        for value in values:
            archives.write(tmp_path / "bad.askwise", MODEL, {**arrays, name: value}, card)
            with pytest.raises(StateError):
                askwise.load(tmp_path / "bad.askwise")
    budget = {**card["budget"], "targets": [{"figure": "recall", "value": 1.0, "of": "nobody", "confidence": None}]}
    archives.write(tmp_path / "bad.askwise", MODEL, arrays, {**card, "budget": budget})
    with pytest.raises(StateError, match="nobody"):
        askwise.load(tmp_path / "bad.askwise")
    old = {name: value for name, value in arrays.items() if not name.startswith("targeted/")}
    del card["targeted"]  # as files were before there were any
    archives.write(tmp_path / "old.askwise", MODEL, old, card)
    with pytest.raises(InputError, match="measured class by class"):
        askwise.load(tmp_path / "old.askwise").at(AtLeast(recall={"ill": 0.5}))


def test_rows_of_a_class_that_weigh_more_are_not_more_cases(tmp_path):
    tiny, weight = QUICK.but(folds=2, value_steps=5), np.where(Y == "ill", 9.0, 1.0)
    model = CostlyClassifier(**PRICES, config=tiny, random_state=0, n_jobs=1).fit(X, Y, sample_weight=weight).model_
    ill = int((Y == "ill").sum())
    first, *_ = recalls(model)[0].steps
    assert recalls(model)[0].name == "ill"
    assert first.recall.cases == pytest.approx(ill)
    with pytest.raises(InputError) as all_found:
        model.at(AtLeast(recall={"ill": 1}, specificity=0.001, confidence=0.9))
    most = float(re.findall(r"can be had is ([\d.]+) with", str(all_found.value))[0])
    assert most <= 0.1 ** (1 / ill) + 1e-4  # that of all of the ill
    point = model.targeted[-1]
    wrong = (point.counts * (1 - np.eye(2))).sum(1) / point.counts.sum(1)  # of each class
    own = [(w, w * n, n) for w, n in ((9.0, ill), (1.0, len(Y) - ill))]
    mean = sum(total * p for (_, total, _), p in zip(own, wrong, strict=True)) / sum(total for _, total, _ in own)
    squares = sum(w**2 * n * (p * (1 - mean) ** 2 + (1 - p) * mean**2) for (w, _, n), p in zip(own, wrong, strict=True))
    assert judged(point, 1 - np.eye(2)).measure.loss == pytest.approx(mean)
    assert judged(point, 1 - np.eye(2)).measure.loss_error == pytest.approx(squares**0.5 / sum(total for _, total, _ in own))
    model.save(tmp_path / "m.askwise")
    again = askwise.load(tmp_path / "m.askwise")
    assert all(np.array_equal(a.cases, b.cases) for a, b in zip(model.targeted, again.targeted, strict=True))
    arrays, card = archives.read(tmp_path / "m.askwise", MODEL)
    for bad in (-arrays["targeted/cases"], arrays["targeted/cases"] * np.inf, arrays["targeted/cases"][:1], np.zeros(2)):
        archives.write(tmp_path / "bad.askwise", MODEL, {**arrays, "targeted/cases": bad}, card)
        with pytest.raises(StateError):
            askwise.load(tmp_path / "bad.askwise")


@pytest.mark.parametrize("made", [family, paper])
def test_other_algorithms_have_accuracy_and_loss_only(made, tmp_path):
    model = made()
    assert model.at(AtLeast(accuracy=0.75)).measured.accuracy >= 0.75
    assert model.at(AtMost(loss=0.35)).measured.cost == 0.8
    for budget in (AtLeast(recall={"ill": 0.5}), ClassWeights({"ill": 2})):
        with pytest.raises(InputError, match="needs algorithm 'stack'"):
            model.at(budget)
    with pytest.raises(InputError, match=r"the best accuracy that can be had is 0\.8"):
        model.at(AtLeast(accuracy=0.99))
    model.save(tmp_path / "m.askwise")
    arrays, card = archives.read(tmp_path / "m.askwise", MODEL)
    for budget in (AtLeast(recall={"ill": 0.5}), ClassWeights({"ill": 2})):  # which a file may say all the same
        archives.write(tmp_path / "bad.askwise", MODEL, arrays, {**card, "budget": budget.to_dict()})
        with pytest.raises(StateError, match="measured class by class"):
            askwise.load(tmp_path / "bad.askwise")


def test_bad_classes_are_named_before_anything_is_learned():
    with pytest.raises(InputError, match="names the class 'il'"):
        CostlyClassifier(**PRICES, budget=AtLeast(recall={"il": 0.9}), config=QUICK).fit(X, Y)
    with pytest.raises(InputError, match="names the class 'il'"):
        CostlyClassifier(**PRICES, budget=ClassWeights({"il": 0.9}), config=QUICK).fit(X, Y)
    with pytest.raises(InputError, match="needs algorithm 'stack'"):
        CostlyClassifier(**PRICES, budget=ClassWeights({"ill": 0.9}), algorithm="paper").fit(X, Y)


def test_a_fit_for_a_target_ends_at_it_and_keeps_the_model_where_it_cannot():
    tiny = QUICK.but(folds=2, value_steps=5)
    fitted = CostlyClassifier(**PRICES, budget=AtLeast(accuracy=0.6), config=tiny, random_state=0, n_jobs=1).fit(X, Y)
    assert fitted.model_.budget == AtLeast(accuracy=0.6)
    assert fitted.out_of_fold_.accuracy >= 0.55
    with pytest.warns(Doubt, match=re.escape("AtLeast(accuracy=1) cannot be reached") + ".*the model is kept at HardBudget"):
        fitted = CostlyClassifier(
            **PRICES, budget=AtLeast(accuracy=1) & HardBudget(1), config=tiny, random_state=0, n_jobs=1
        ).fit(X, Y)
    model = fitted.model_
    assert model.budget == HardBudget(1)
    assert model.budget.cap(model.schema.costs) in {p.cap for p in model.targeted}


def test_given_cases_bear_out_each_promise_or_not(model):
    there = model.at(AtLeast(recall={"ill": 0.6}, specificity=0.3, confidence=0.6) & AtMost(loss=0.4))
    report = there.report(there.problem(*NEW))
    found = {promise.promise: promise for promise in borne_out(there, report)}
    assert list(found) == [
        "recall of 'ill' of at least 0.6, with a probability of 0.6",
        "specificity of 'ill' of at least 0.3, with a probability of 0.6",
        "cases lose at most 0.4 on average",
    ]
    share, n = report.recall["ill"].value, (NEW[1] == "ill").sum()
    assert str(next(iter(found.values()))).endswith(f"these come to {share:.4g}, of {n} cases (kept)")
    only_well = there.problem(NEW[0][NEW[1] == "well"], NEW[1][NEW[1] == "well"])
    assert borne_out(there, there.report(only_well))[0].verdict == "not seen"
    flipped = there.problem(NEW[0], np.where(NEW[1] == "ill", "well", "ill"))
    assert borne_out(there, there.report(flipped))[0].verdict == "below, by more than chance would explain"
