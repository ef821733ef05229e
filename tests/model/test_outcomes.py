"""How cases end, as a fit measures it and a file keeps it: recomputed case by case."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.support.members import QUICK as quick_members
from tests.support.patients import PRICES, classifier

import askwise
from askwise import AverageBudget, CostlyClassifier
from askwise.errors import StateError
from askwise.model import archives
from askwise.model.outcomes import Bin, Outcomes, outcomes_of
from askwise.model.purchases import usage

QUICK = quick_members.but(value_steps=40, pool_states=400, growths=1, folds=3)


@pytest.fixture(scope="module")
def stack(frame):
    return CostlyClassifier(**PRICES, algorithm="stack", config=QUICK, random_state=0).fit(*frame)


def naive(report):
    """Recall, and what is bought, of each class; and bins of the probability of the rarer of two classes."""
    classes = []
    for k in range(report.problem.schema.n_classes):
        own = [i for i, truth in enumerate(report.truth) if truth == k]
        right = [report.episodes.decision[i] == k for i in own]
        bought = [np.mean([t in report.tests_of(i) for i in own]) for t in report.problem.schema.tests]
        classes.append((len(own), np.mean(right), np.std(right) / np.sqrt(len(own)), bought))
    rare = min(range(len(classes)), key=lambda k: classes[k][0])
    bins = {}
    for i, p in enumerate(report.belief[:, rare]):
        bins.setdefault(min(int(10 * p), 9), []).append((p, report.truth[i] == rare))
    return classes, [(len(bins[b]), *np.mean(bins[b], 0)) for b in sorted(bins)], rare


def check(ends, report):
    classes, bins, rare = naive(report)
    for mine, (n, recall, error, bought) in zip(ends.classes, classes, strict=True):
        assert mine[:3] == pytest.approx((n, recall, error), abs=1e-4)
        assert list(mine.bought) == pytest.approx(bought, abs=1e-4)
    assert ends.about == rare
    assert [tuple(b) for b in ends.bins] == [pytest.approx(b, abs=1e-4) for b in bins]
    off = sum(n * abs(p - share) for n, p, share in bins) / sum(n for n, _, _ in bins)
    assert ends.calibration_error == pytest.approx(off, abs=1e-4)


def test_what_is_kept_of_a_stack_is_what_happened_to_its_rows_out_of_fold(stack, frame):
    report = stack.out_of_fold_
    assert len(report.truth) == len(frame[0])
    check(outcomes_of(report), report)
    check(usage(stack.model_).outcomes, report)


def test_what_is_kept_of_a_single_network_is_what_happened_to_validation_rows(free, frame):
    kept = free.validation_rows_
    model = free.model_
    assert model.blend.share == 0
    report = model.report(model.problem(frame[0].iloc[kept], frame[1][kept]))
    np.testing.assert_allclose(report.belief, free.predict_proba(frame[0].iloc[kept]))
    check(usage(model).outcomes, report)


def test_probabilities_out_of_fold_come_from_members_that_had_not_seen_the_row(stack, frame):
    """All members together have seen every row, and are surer of it."""
    belief, truth = stack.out_of_fold_.belief, stack.out_of_fold_.truth
    np.testing.assert_allclose(belief.sum(1), 1, rtol=1e-5)
    report, rows = stack.out_of_fold_, np.arange(len(truth))
    together = stack.model_.belief(report.problem, report.episodes)  # in the same states
    assert np.log(belief[rows, truth]).mean() < np.log(together[rows, truth]).mean()


def test_a_mixture_of_two_points_has_a_share_of_each(free):
    model = free.model_
    mixed = model.at(AverageBudget(round((model.points[0].cost + model.points[-1].cost) / 2, 3)))
    s = mixed.blend.share
    assert 0 < s < 1
    kept = [Outcomes.from_facts(model.facts["usage"]["points"][i]) for i in (mixed.blend.first, mixed.blend.second)]
    ends = usage(mixed).outcomes
    for mine, a, b in zip(ends.classes, *(k.classes for k in kept), strict=True):
        assert mine.recall == pytest.approx((1 - s) * a.recall + s * b.recall)
        assert mine.bought == pytest.approx([(1 - s) * x + s * y for x, y in zip(a.bought, b.bought, strict=True)])
    assert sum(b.cases for b in ends.bins) == pytest.approx(ends.cases)
    true = sum(b.cases * b.share for b in ends.bins)
    assert true == pytest.approx(sum(p * b.cases * b.share for p, k in zip((1 - s, s), kept, strict=True) for b in k.bins))


def test_an_interval_is_never_empty_and_stays_between_0_and_1():
    for n, share in ((1, 0.0), (7, 1.0), (40, 0.25)):
        low, high = Bin(n, 0.5, share).interval
        assert 0 <= low < high <= 1
        assert low <= share <= high
    low, high = Bin(10_000, 0.5, 0.3).interval
    assert high - low == pytest.approx(2 * np.sqrt(0.3 * 0.7 / 10_000), rel=1e-3)


def test_weighted_rows_count_as_often_as_their_weights_say(frame):
    X, y = frame
    weight = np.where(np.arange(len(y)) % 2, 3.0, 0.0)
    fitted = classifier(**PRICES).fit(X, y, sample_weight=weight)
    model, kept = fitted.model_, fitted.validation_rows_
    heavy = [i for i in kept if weight[i]]
    report = model.report(model.problem(X.iloc[heavy], y[heavy]))
    for mine, (_, recall, _, _) in zip(usage(model).outcomes.classes, naive(report)[0], strict=True):
        assert mine.recall == pytest.approx(recall, abs=1e-4)


def test_of_many_classes_it_is_not_kept_what_each_of_them_buys():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 15, 150)
    ends = usage(classifier().fit(rng.normal(size=(150, 3)), y).model_).outcomes
    assert all(each.bought is None for each in ends.classes)
    assert ends.about is None


def test_files_that_do_not_tell_how_cases_end_are_read(free, tmp_path):
    facts = json.loads(json.dumps(free.model_.facts))
    for point in facts["usage"]["points"]:
        for name in ("recall", "bins", "about", "by_class"):
            del point[name]
    replace(free.model_, facts=facts).save(tmp_path / "m.askwise")
    assert usage(askwise.load(tmp_path / "m.askwise")).outcomes is None


@pytest.mark.parametrize(
    "damage",
    [
        {"recall": [[3, 0.5, 0.1]]},
        {"recall": [[3, 2.0, 0.1], [3, 0.5, 0.1]]},
        {"bins": [[0, 0.5, 0.5]]},
        {"bins": [["many", 0.5, 0.5]]},
        {"about": 7},
        {"by_class": [[0.5], [0.5]]},
    ],
)
def test_a_file_whose_ends_do_not_hold_together_is_refused(free, tmp_path, damage):
    facts = json.loads(json.dumps(free.model_.facts))
    facts["usage"]["points"][0] |= damage
    free.save(tmp_path / "m.askwise")
    arrays, card = archives.read(tmp_path / "m.askwise", archives.MODEL)
    archives.write(tmp_path / "m.askwise", archives.MODEL, arrays, {**card, "facts": facts})
    with pytest.raises(StateError, match="damaged"):
        askwise.load(tmp_path / "m.askwise")
