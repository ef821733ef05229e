"""Trees of their own for some prefixes of the order: which are meant, what they say, and that all ways in agree."""

import copy
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pytest
from tests.stack.test_stack_checkpoints import damages, same
from tests.stack.test_stack_training import agrees_with_onnx
from tests.support.members import QUICK, problem_of

from askwise import CostlyClassifier, load
from askwise.components.static_order import elimination_order
from askwise.errors import AskwiseError, StateError
from askwise.model import archives
from askwise.model.archives import MODEL
from askwise.stack import stages
from askwise.stack.belief import StackedBelief, StageScores
from askwise.stack.folds import Folds
from askwise.stack.members import MemberTask
from askwise.stack.stages import fit_stages, lengths
from askwise.stack.states import StateMaker
from askwise.stack.train import StackTrainer
from askwise.stack.trees import TreeArrays, concatenated, from_lightgbm
from askwise.training.checkpoint_checks import taking_over

MANY = QUICK.but(few_rows=100, stages=3, value_steps=4, pool_states=100, growths=0, calibration_rows=20)


@pytest.fixture(autouse=True)
def _few_rows_are_enough(monkeypatch):
    monkeypatch.setattr(stages, "FEWEST_ROWS", 30)


def test_prefixes_are_spread_from_three_tests_to_all():
    assert lengths(54, 5) == [3, 6, 13, 26, 54]
    assert lengths(8, 5) == [3, 4, 5, 6, 8]
    assert lengths(2, 5) == [2]
    assert lengths(20, 1) == [3]
    assert lengths(20, 0) == []


OWNER = np.array([0, 1, 1, 2, 3])  # the test of each column
SETS = np.array([[0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], np.uint8)


def parts_of(classes=3, seed=0):
    """Trees for three prefixes, of LightGBM models that know only their columns, and these models."""
    rng, models = np.random.default_rng(seed), []
    X = rng.normal(size=(400, 5)).astype(np.float32)
    y = np.digitize(X[:, 1] + X[:, 0] * X[:, 3], [-0.5, 0.5])
    for held in SETS.astype(bool):
        known = np.where(held[OWNER], X, np.float32(np.nan))
        settings = {"objective": "multiclass", "num_class": classes, "num_leaves": 6, "verbose": -1, "num_threads": 1}
        models.append(lightgbm.train(settings, lightgbm.Dataset(known, y), 4))
    trees = [from_lightgbm(model, 5, classes) for model in models]
    counts = np.array([len(each.root) for each in trees], np.int32)
    return {"sets": SETS, "trees": counts, **concatenated(trees).arrays()}, models


def test_scores_are_those_of_the_longest_prefix_that_is_held():
    parts, models = parts_of()
    nothing, rng = np.array([0.1, -0.2, 0.3], np.float32), np.random.default_rng(1)
    scores = StageScores(parts, OWNER, nothing)
    X, mask = rng.normal(size=(60, 5)).astype(np.float32), rng.random((60, 4)) < 0.7
    known = mask[:, OWNER]
    values = np.where(known, X, np.float32(0))
    z, covered = scores(values, known, mask), scores.covered(mask, float)
    stages_met = set()
    for i in range(60):
        stage = max((g + 1 for g in range(3) if mask[i][SETS[g] > 0].all()), default=0)
        stages_met.add(stage)
        expected, share = nothing, 0.0
        if stage:
            own = SETS[stage - 1].astype(bool)
            known_to_it = np.where(own[OWNER], X[i : i + 1], np.float32(np.nan))
            expected = models[stage - 1].predict(known_to_it, raw_score=True)[0]
            share = own.sum() / mask[i].sum()
        np.testing.assert_allclose(z[i], expected, atol=1e-5)
        assert covered[i, 0] == pytest.approx(share)
    assert stages_met == {0, 1, 2, 3}


def test_what_is_kept_of_cases_that_grow_is_what_is_computed_anew():
    parts, _ = parts_of()
    scores, rng = StageScores(parts, OWNER, np.zeros(3)), np.random.default_rng(2)
    X, mask = rng.normal(size=(30, 5)).astype(np.float32), np.zeros((30, 4), bool)
    kept = scores.begin(np.zeros_like(X), mask[:, OWNER], mask)
    for test in rng.permutation(4).tolist():
        mask[:, test] = True
        known = mask[:, OWNER]
        values = np.where(known, X, np.float32(0))
        kept = scores.grown(kept, [(test, slice(0, 30))], values, known)
        np.testing.assert_array_equal(scores.read(kept), scores(values, known, mask))


def test_weights_depend_on_what_the_trees_know():
    """p = softmax(log π + w (z - log π)) with w = softplus(a_3 c), by hand."""
    parts, _ = parts_of()
    prior, mask = np.log([0.2, 0.5, 0.3]), np.array([[True, True, False, True], [False, False, True, True]])
    weights = {f"stages.{name}": value for name, value in parts.items()}
    weights |= {"prior": prior, "shift": np.zeros(3), "weight.stages": np.array([0.0, 0.0, 0.0, 2.0])}
    belief, X = StackedBelief(weights, OWNER, np.float64), np.ones((2, 5), np.float32)
    known = mask[:, OWNER]
    (z,) = belief.logits(np.where(known, X, np.float32(0)), mask)
    logits = prior + np.log1p(np.exp(2 * 2 / 3)) * (z[0] - prior)
    expected = np.exp(logits) / np.exp(logits).sum()
    p = belief(np.where(known, X, np.float32(0)), mask)
    np.testing.assert_allclose(p[0], expected, atol=1e-6)
    np.testing.assert_allclose(p[1], [0.2, 0.5, 0.3], atol=1e-6)  # no prefix is held


def task_of(problem, learned):
    order = elimination_order(problem)
    return MemberTask(StateMaker.of(problem, order, MANY), Folds.apart(learned, problem.labels[learned:]), MANY, 0), order


def test_trees_learn_from_their_rows_alone():
    """Other labels of rows that are held out change when they stop, and nothing else; those of rows that are not learn."""
    problem = problem_of(160)
    flipped = problem.y.copy()
    flipped[:120] = 1 - flipped[:120]
    task, order = task_of(problem, 120)
    other, _ = task_of(replace(problem, y=flipped), 120)
    one, two = fit_stages(task, order, 10_000, 1e9), fit_stages(other, order, 10_000, 1e9)
    assert one["sets"].tolist() == [np.isin(np.arange(4), order[:k]).astype(int).tolist() for k in (3, 4)]
    assert not np.array_equal(one["number"][:5], two["number"][:5])
    shown = problem.X[120:], np.ones((40, 4), bool)
    right = TreeArrays.of(one).part(int(one["trees"][0]), int(one["trees"].sum())).scores(*shown, 2).argmax(1)
    assert (right == problem.labels[120:]).mean() > 0.75


def test_rows_that_lack_a_test_of_a_prefix_are_left_out():
    problem = problem_of(160)
    task, order = task_of(problem, 120)
    available = np.ones((160, 4), bool)
    available[:100, order[3]] = False  # only twenty rows to learn from have everything
    lacking, _ = task_of(replace(problem, available=available), 120)
    made = fit_stages(replace(lacking, folds=task.folds), order, 10_000, 1e9)
    assert made["sets"].sum(1).tolist() == [3]
    assert fit_stages(task, order, 10_000, 1e9)["sets"].sum(1).tolist() == [3, 4]


def test_trees_have_as_many_nodes_as_they_may():
    problem = problem_of(160)
    task, order = task_of(problem, 120)
    few = replace(task, config=MANY.but(tree_rounds=1_000, leaves=4))
    for nodes in (400, 4_000):
        assert len(fit_stages(few, order, nodes, 1e9)["child"]) <= nodes


# ---------------------------------------------------------------------- in a training


@pytest.fixture
def all_earn_their_place(monkeypatch):
    monkeypatch.setattr("askwise.stack.weights.FEWEST_NATS", -1.0)


def trainer_of():
    problem = problem_of(200)
    return StackTrainer(problem, Folds.apart(140, problem.labels[140:]), elimination_order(problem), MANY)


def test_a_training_goes_on_as_if_it_had_not_stopped(all_earn_their_place):
    trainer, halves = trainer_of(), []
    while not trainer.finished:
        halves.append(copy.deepcopy(trainer.state()))
        trainer.advance()
    assert any(facts["refined"] and not facts["staged"] for _, facts in halves)
    assert trainer.stack().weights["weight.stages"].shape == (4,)
    for state in halves:
        resumed = trainer_of()
        with taking_over():
            resumed.load(*copy.deepcopy(state))
        while not resumed.finished:
            resumed.advance()
        assert same(resumed, trainer)


def test_damaged_trees_of_a_checkpoint_are_refused(all_earn_their_place):
    trainer = trainer_of()
    while not trainer.staged:
        trainer.advance()
    arrays, facts = trainer.state()
    names = [name for name in arrays if "stages" in name]
    assert len(names) == 10  # eight arrays of trees, and their weight twice
    for name in names:
        for changed in damages(name, arrays[name]):
            state = {n: v for n, v in arrays.items() if n != name} | ({} if changed is None else {name: changed}), facts
            resumed = trainer_of()
            with pytest.raises(StateError, match="the checkpoint is damaged"), taking_over():
                resumed.load(*copy.deepcopy(state))


def test_where_they_earn_nothing_they_are_dropped_and_no_weight_depends_on_them(monkeypatch):
    monkeypatch.setattr("askwise.stack.weights.FEWEST_NATS", 1e9)
    trainer = trainer_of()
    while not trainer.staged:
        trainer.advance()
    kept = [name for name in trainer.stack().weights if name.startswith("weight.")]
    assert len(kept) == 1
    assert trainer.common[kept[0]].shape == (4 if kept == ["weight.stages"] else 3,)


@pytest.fixture
def fitted(all_earn_their_place):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    y = (X.a + X.b * X.c + 0.3 * rng.normal(size=300) > 0).astype(int)
    classifier = CostlyClassifier([1, 1, 1, 1], algorithm="stack", config=MANY, random_state=0).fit(X, y)
    assert "weight.stages" in classifier.model_.family.weights
    return classifier, X


def test_files_and_exports_decide_alike(fitted, tmp_path):
    pytest.importorskip("onnxruntime")
    classifier, X = fitted
    for name in ("m.askwise", "m.npz"):
        path = tmp_path / name
        classifier.save(path) if name.endswith("askwise") else classifier.model_.export(path)
        np.testing.assert_array_equal(load(path).predict(X), classifier.predict(X))
        np.testing.assert_array_equal(load(path).acquire(X).cost, classifier.acquire(X).cost)
    agrees_with_onnx(classifier.model_, tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sets", lambda x: x * 0 + 2),
        ("sets", lambda x: x[::-1]),
        ("sets", lambda x: x[:, :-1]),
        ("trees", lambda x: x + 1),
        ("trees", lambda x: x * 0 + 2**30),
        ("trees", lambda x: np.r_[x[:-1], -x[-1]].astype(np.int32)),
        ("child", lambda x: np.where(x == np.arange(len(x)), x, x[::-1]).astype(np.int32)),
        ("root", lambda x: x[::-1].copy()),
        ("column", lambda x: x + 1000),
        ("number", lambda x: x * np.float32(np.nan)),
    ],
)
def test_a_damaged_model_is_refused(fitted, tmp_path, name, change):
    path = tmp_path / "bad.askwise"
    fitted[0].save(path)
    arrays, card = archives.read(path, MODEL)
    arrays[f"family/stages.{name}"] = np.ascontiguousarray(change(arrays[f"family/stages.{name}"]))
    archives.write(path, MODEL, arrays, card, lambda _: None)
    with pytest.raises(AskwiseError, match="damaged") as caught:
        load(path)
    assert "\n" not in str(caught.value)
