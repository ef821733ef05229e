"""A stack is trained, stopped, resumed and used; what it is measured on it has not seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.support import members as support
from tests.support.patients import PRICES, numbers, patients

from askwise import AverageBudget, CostlyClassifier, HardBudget, StackConfig, load
from askwise.components.static_order import elimination_order
from askwise.core.budget import Budget
from askwise.core.cases import Cases
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError, StateError
from askwise.family.states import Observation
from askwise.frontier.point import KINDS
from askwise.methods import stack as method
from askwise.stack.config import DESIGN
from askwise.stack.folds import Folds
from askwise.stack.measure import RememberedBeliefs, StackCandidate
from askwise.stack.networks import choose_features, features_of
from askwise.stack.run import held_out_rows, run
from askwise.stack.states import StateMaker
from askwise.stack.train import StackTrainer

QUICK = support.QUICK.but(value_steps=40, folds=3)


def problem_of(n=150, seed=0, columns=4, **more):
    X, y = numbers(n, seed, columns)
    schema = Schema.build([f"x{i}" for i in range(columns)], [0, 1], **more)
    return Problem.build(schema, X, y)


@pytest.fixture(scope="module")
def trained():
    problem = problem_of(240)
    folds = Folds.across(problem.labels, 3, 0)
    trainer = StackTrainer(problem, folds, elimination_order(problem), QUICK)
    while not trainer.finished:
        trainer.advance()
    return trainer


def test_no_member_has_seen_the_rows_that_it_judges(trained):
    """Rows of a part with another label would change nothing of what is believed of them by their member's learners."""
    problem, folds = trained.problem, trained.folds
    part = np.flatnonzero(folds.belief == 1)
    changed = problem.y.copy()
    changed[part] = 1 - changed[part]
    before, after = (
        replace(trained.task, maker=StateMaker.of(p, trained.order, QUICK)) for p in (problem, replace(problem, y=changed))
    )
    for k, same in ((1, True), (0, False)):
        one, other = before.fit(k, 1e9), after.fit(k, 1e9)
        for name in ("trees.number", "linear.main", "networks.0.weight"):
            n = min(len(one[name]), len(other[name]))  # how long they learn is up to the rows of the other members
            assert np.array_equal(one[name][:n], other[name][:n]) == same


def test_beliefs_of_the_pool_are_those_of_members_that_have_not_seen_the_rows(trained):
    pool, rng = trained.pool, np.random.default_rng(0)
    for i in rng.integers(len(pool.row), size=10):
        row, mask = pool.row[i : i + 1], pool.parts["mask"][i : i + 1]
        values = np.where(mask, trained.problem.X[row], 0).astype(np.float32)
        member = trained.member(int(trained.folds.belief[row[0]]), 0)
        np.testing.assert_allclose(pool.parts["belief"][i], member.values(0.0).believe(values, mask)[0], atol=1e-5)
        for s, test in enumerate(pool.parts["test"][i]):
            after = mask.copy()
            after[0, test] = True
            values = np.where(after, trained.problem.X[row], 0).astype(np.float32)
            np.testing.assert_allclose(pool.parts["after"][i, s], member.values(0.0).believe(values, after)[0], atol=1e-5)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.4, 2.5)])
def test_torch_and_numpy_heads_agree(trained, weights):
    """The same states, conditions, breadths and class weights: D, V, G and the best test."""
    rng = np.random.default_rng(1)
    who = rng.integers(len(trained.pool.row), size=30 * trained.folds.heads)
    row, mask = trained.pool.row[who], trained.pool.parts["mask"][who]
    live = trained._asked(row, mask)
    live.refused[:] = False
    live.lam[:] = trained.scale.low * 3
    live.cap[:] = 2 * trained.schema.costs.total
    observed = Observation.of(live, trained.problem, trained.scale, trained.alone)
    belief = trained.pool.parts["belief"][who]
    with torch.no_grad():
        view = trained._outlook(trained.mean, observed, belief, np.full(len(who), 3), np.tile(weights, (len(who), 1)))
    for h in range(trained.folds.heads):
        part = slice(30 * h, 30 * h + 30)
        values = trained.member(0, h).values(trained.scale.low * 3, breadth=3, class_weights=weights)
        values.believe = lambda x, m, b=belief[part]: b
        state = Cases(trained.problem, row[part], mask[part], None).observe()
        mine = values.predict(state)
        np.testing.assert_allclose(mine.decision_loss[:, 0], view.decision_loss[part].numpy(), atol=1e-5)
        np.testing.assert_allclose(mine.continue_value, view.continue_value[part].numpy(), atol=1e-5)
        np.testing.assert_allclose(mine.final_loss, view.predicted.final_loss[part].numpy(), atol=1e-5)
        still = state.legal[:, -4:].any(1)
        assert (mine.best == view.best[part].numpy())[still].all()


def test_the_policy_that_is_used_is_the_mean_of_its_members(trained):
    problem, stack = trained.problem, trained.stack()
    mask = np.random.default_rng(2).random((20, 4)) < 0.5
    values = np.where(mask, problem.X[:20], 0).astype(np.float32)
    logits = [trained.member(k, 0).values(0.0).believe_in.logits(values, mask) for k in range(3)]
    both = stack.values(0.0).believe_in.logits(values, mask)
    for j, whole in enumerate(both):
        np.testing.assert_allclose(whole, np.mean([each[j] for each in logits], 0), atol=1e-4)


def test_with_breadth_one_the_order_is_kept(trained):
    state = Cases.start(trained.problem, np.arange(40), None).observe()
    prediction = trained.stack().values(trained.scale.low, breadth=1).predict(state)
    assert (prediction.candidates.sum(1) == 1).all()
    assert (prediction.best == trained.order[0]).all()
    assert DESIGN.breadths_for(1) == [1]
    assert DESIGN.breadths_for(3) == [1, 3]
    assert DESIGN.breadths_for(5) == DESIGN.breadths_for(8) == [1, 3, 8]
    assert DESIGN.breadths_for(9) == DESIGN.breadths_for(64) == list(DESIGN.breadths)


def test_what_is_measured_is_measured_by_members_that_have_not_seen_it(trained):
    held_out = held_out_rows(trained, trained.problem)
    candidate = StackCandidate(trained.scale.low, None, None, 3)
    whole = held_out.tally(candidate, np.arange(240))
    report = held_out.report(candidate.point(whole.measure(trained.schema.costs)), None)
    assert whole.came.n == len(report.truth) == 240
    assert report.measure.loss == pytest.approx(whole.came.loss.value)
    assert report.measure.cost == pytest.approx(float(trained.schema.costs.money(whole.came.cost.value)))
    believed = np.take_along_axis(report.belief, report.episodes.decision[:, None], 1)
    assert (whole.right.value, whole.loss.value) == (pytest.approx(believed.mean()), pytest.approx(1 - believed.mean()))
    assert whole.held.value == pytest.approx(report.episodes.mask.mean())


def test_remembered_beliefs_are_computed_once():
    asked = []

    def scores(values, known):
        asked.append(len(values))
        return values[:, :2] * known[:, :2]

    remembered, rng = RememberedBeliefs(scores), np.random.default_rng(0)
    values = rng.normal(size=(50, 3)).astype(np.float32)
    known = rng.random((50, 3)) < 0.7
    expected = values[:, :2] * known[:, :2]
    for _ in range(3):
        np.testing.assert_allclose(remembered(values, known), expected)
    np.testing.assert_allclose(remembered(values[::-1], known[::-1]), expected[::-1])
    assert sum(asked) <= 50


def test_remembered_beliefs_forget_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr("askwise.stack.measure.MOST_REMEMBERED", 40)
    remembered, rng = RememberedBeliefs(lambda values, known: values[:, :2]), np.random.default_rng(0)
    values, known = rng.normal(size=(100, 3)).astype(np.float32), np.ones((100, 3), bool)
    for part in (slice(0, 30), slice(20, 50), slice(0, 100)):
        np.testing.assert_allclose(remembered(values[part], known[part]), values[part, :2])


def test_a_training_that_is_resumed_is_the_same_training():
    problem, validation = problem_of(120), problem_of(60, 1)
    states = []
    whole = run(problem, validation, None, QUICK, 3, save=states.append)
    assert len(states) > 1
    for state in states[:2]:
        again = run(problem, validation, None, QUICK, 3, resume=state)
        assert all(np.array_equal(again.shared.weights[n], value) for n, value in whole.shared.weights.items())
        assert [p.shown for p in again.points] == [p.shown for p in whole.points]
    with pytest.raises(StateError, match="seed"):
        run(problem, validation, None, QUICK, 4, resume=states[0])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("optimiser/0/exp_avg", lambda x: x[:1]),
        ("optimiser/0/exp_avg", lambda x: x[:0]),
        ("optimiser/0/step", lambda x: np.r_[x, x]),
        ("optimiser/0/exp_avg", None),
        ("order", None),
        ("refined_order", None),
        ("refined_order", lambda x: x * 0),
        ("refined_order", lambda x: x[:-1]),
        ("refined_order", lambda x: x.astype(float)),
    ],
)
def test_a_damaged_checkpoint_is_refused_in_a_sentence(name, change):
    problem, validation, states = problem_of(120), problem_of(60, 1), []
    run(problem, validation, None, QUICK, 3, save=states.append)
    arrays, facts = states[-1]
    arrays = {n: value for n, value in arrays.items() if n != name} | ({} if change is None else {name: change(arrays[name])})
    with pytest.raises(StateError, match="the checkpoint is damaged"):
        run(problem, validation, None, QUICK, 3, resume=(arrays, facts))


def test_what_is_measured_of_each_kind_of_policy_is_what_happens_to_all_rows_out_of_fold():
    result = run(problem_of(120), problem_of(60, 1), None, QUICK, 0)
    assert {p.kind for p in result.measured} == set(KINDS)
    assert any(p.prefix == 4 for p in result.measured)  # all tests for everybody
    for point in result.measured:
        report = result.held_out(point, None)
        assert (len(report.truth), point.measure.n) == (180, 180)
        if point.prefix is not None:  # the others are told by members that paid as much, at another tradeoff: see `as_paid`
            assert report.accuracy == pytest.approx(point.accuracy, abs=2 * point.measure.accuracy_error)  # see `steady`
            assert report.cost == pytest.approx(point.cost)
        assert report.belief.argmax(1).tolist() == report.episodes.decision.tolist()


def test_many_rows_are_measured_on_the_validation_rows():
    config = QUICK.but(few_rows=100)
    result = run(problem_of(120), problem_of(60, 1), None, config, 0)
    assert result.held_out is None
    assert result.measured_on == "validation cases"
    assert {p.measure.n for p in result.points} == {60}


def test_a_time_limit_is_kept():
    result = run(problem_of(300), problem_of(100, 1), None, None, 0, time_limit=4.0)
    assert result.seconds < 10


def test_all_rows_are_measured_and_time_is_left():
    """Fewer rows than are measured first where there is a time limit."""
    result = run(problem_of(90), problem_of(30, 1), None, QUICK, 0, time_limit=600.0)
    assert {point.measure.n for point in result.points} == {120}


def test_it_learns_what_there_is_to_learn():
    """The first column tells nearly all: with its cost alone one is about as good as with everything."""
    policy = method.fit(problem_of(400), problem_of(200, 1), AverageBudget(1), steps=300)
    test = problem_of(500, 2)
    from askwise.evaluation import evaluate

    report = evaluate(policy, test, Budget())
    assert report.cost < 1.15
    assert report.accuracy > 0.84


# ---------------------------------------------------------------------- as users meet it


@pytest.fixture(scope="module")
def fitted():
    X, y = patients(160)
    return (
        CostlyClassifier(**PRICES, algorithm="stack", config=QUICK, budget=AverageBudget("0.8"), random_state=0).fit(X, y),
        X,
        y,
    )


def test_a_fit_tells_what_rows_came_to_that_their_members_had_not_seen(fitted):
    classifier, X, _ = fitted
    report = classifier.out_of_fold_
    assert len(report.truth) == len(X)
    expected = classifier.model_.measured
    assert report.measure.accuracy == pytest.approx(expected.accuracy, abs=2 * expected.accuracy_error)
    assert classifier.model_.expected["n"] == len(X)
    assert "each held out in turn" in classifier.model_.facts["measured_on"]


def test_files_and_exports_decide_alike(fitted, tmp_path):
    pytest.importorskip("onnxruntime")
    classifier, X, _ = fitted
    for name in ("m.askwise", "m.npz"):
        path = tmp_path / name
        classifier.save(path) if name.endswith("askwise") else classifier.model_.export(path)
        again = load(path)
        assert again.fingerprint == classifier.model_.fingerprint
        assert (again.predict(X) == classifier.predict(X)).all()
        np.testing.assert_array_equal(again.acquire(X).cost, classifier.acquire(X).cost)
    agrees_with_onnx(classifier.at(HardBudget(2)).model_, tmp_path / "m.onnx")


def agrees_with_onnx(model, path):
    """On random states."""
    import onnxruntime

    from askwise.model.export import step

    model.export(path)
    session = onnxruntime.InferenceSession(path)
    rng, F, C = np.random.default_rng(0), model.schema.n_tests, len(model.schema.columns)
    mask = rng.random((200, F)) < 0.4
    inputs = {
        "values": rng.normal(size=(200, C)),
        "mask": mask,
        "legal": rng.random((200, F)) < 0.8,
        "test_cost": rng.random((200, F)),
        "left": rng.random(200) * 2,
        "draw": rng.random(200),
    }
    inputs = {i.name: inputs[i.name] for i in session.get_inputs()}
    action, _, p = session.run(None, inputs)
    mine = step(model, **inputs)
    assert (action == mine["action"]).all()
    np.testing.assert_allclose(p, mine["probabilities"], atol=1e-5)


def test_hard_budgets_are_kept_and_sessions_agree(fitted):
    classifier, X, _ = fitted
    for amount in ("0.3", "1", "2.5"):
        capped = classifier.at(HardBudget(amount))
        assert (capped.acquire(X).cost <= float(amount) + 1e-9).all()
    session = classifier.at(HardBudget(2)).session()
    step = session.next()
    assert step.test is None or step.test in X.columns


@pytest.fixture(scope="module")
def all_learners():
    """What the first two columns tell together trees see best; what the third tells is linear."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = ((X[:, 0] * X[:, 1] > 0) + 0.9 * X[:, 2] + 0.3 * rng.normal(size=400) > 0.5).astype(int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("askwise.stack.members.choose_features", lambda maker, *_: features_of(maker.problem, QUICK, rich=True))
        patch.setattr("askwise.stack.weights.FEWEST_NATS", -1.0)  # none is dropped
        classifier = CostlyClassifier([1, 1, 1], algorithm="stack", config=QUICK, random_state=0).fit(X, y)
    assert {"weight.trees", "weight.linear", "weight.networks"} <= set(classifier.model_.family.weights)
    return classifier


def damaged(tmp_path, classifier, name, change):
    from askwise.model import archives
    from askwise.model.archives import MODEL

    path = tmp_path / "bad.askwise"
    classifier.save(path)
    arrays, card = archives.read(path, MODEL)
    arrays[name] = change(arrays[name].copy())
    archives.write(path, MODEL, arrays, card, lambda _: None)
    return path


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("family/trees.child", lambda x: x + 10**9),
        ("family/trees.child", lambda x: -x),
        ("family/trees.column", lambda x: x + 1000),
        ("family/trees.root", lambda x: x + 10**6),
        ("family/trees.output", lambda x: x + 5),
        ("family/trees.depth", lambda x: x + 10**9),
        ("family/trees.depth", lambda x: x * 0 + 1),
        ("family/trees.depth", lambda x: np.r_[x, x]),
        ("family/trees.root", lambda x: x[::-1] * 0),
        ("family/trees.root", lambda x: x + 1),
        ("family/trees.child", lambda x: x * 0),
        ("family/trees.child", lambda x: np.where(x == np.arange(len(x)), x, 0)),
        ("family/trees.number", lambda x: np.where(x == 0, x, np.float32(np.inf))),
        ("family/trees.number", lambda x: x[:, None]),
        ("family/trees.column", lambda x: x.astype(np.int64)),
        ("family/networks.bins.low", lambda x: x * 0 + np.float32(np.inf)),
        ("costs/own", lambda x: x * 0 + 2**62),
        ("family/trees.number", lambda x: x[:-1]),
        ("family/trees.number", lambda x: x * np.float32(np.nan)),
        ("family/linear.main", lambda x: x[:-1]),
        ("family/heads.0.weight", lambda x: x[:, :-1]),
        ("family/heads.2.weight", lambda x: x[:, :, :-1]),
        ("family/prior", lambda x: x[:-1]),
        ("family/weight.trees", lambda x: x[:-1]),
        ("family/networks.bins.source", lambda x: x + 1000),
        ("family/networks.bins.low", lambda x: x[:-1]),
        ("family/networks.sines.source", lambda x: x - 1000),
        ("family/networks.sines.rate", lambda x: x[:-1]),
        ("family/networks.0.weight", lambda x: x[:, :-1]),
        ("family/networks.1.weight", lambda x: x[:-1]),
        ("family/networks.1.bias", lambda x: x[:, :, :-1]),
        ("family/networks.3.weight", lambda x: x[:, :, :-1]),
        ("family/weight.networks", lambda x: x[:-1]),
    ],
)
def test_a_damaged_stack_is_refused_in_a_sentence(all_learners, tmp_path, name, change):
    with pytest.raises(StateError, match=r"damaged|fail"):
        load(damaged(tmp_path, all_learners, name, change))


def test_networks_with_bins_and_sines_are_exported_as_they_are(all_learners, tmp_path):
    agrees_with_onnx(all_learners.at(HardBudget(2)).model_, tmp_path / "m.onnx")


def test_bins_and_sines_are_shown_where_they_help():
    """The class comes and goes along one column, or is a plain sum of all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4)).astype(np.float32)
    config = StackConfig(network_steps=1200)
    for y, rich in (((np.sin(9 * X[:, 0]) > 0), True), ((X.sum(1) + rng.normal(size=1200) > 0), False)):
        problem = Problem.build(Schema.build([f"x{i}" for i in range(4)], [0, 1]), X, y.astype(int))
        trainer = StackTrainer(problem, Folds.across(problem.labels, 2, 0), np.arange(4), config)
        rows = trainer.folds.learned(0), np.flatnonzero(trainer.folds.belief == 0)
        assert bool(choose_features(trainer.maker, *rows, config, 0, 1e9)) == rich


def test_a_network_of_ones_own_is_refused(fitted):
    _, X, y = fitted
    with pytest.raises(InputError, match="leave algorithm= out"):
        CostlyClassifier(**PRICES, algorithm="stack", network=lambda schema, width: None).fit(X, y)
