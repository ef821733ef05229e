"""Training: it can be killed and resumed at any moment, depends on its seed alone, and every variant of the problem trains."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.support.naive import World, check_rules
from tests.support.worlds import VARIANTS, with_batch_norm, with_dropout, world
from torch import nn

from askwise.components.pictures import Convolutions
from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.episode import rollout
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError, StateError
from askwise.paper.config import TrainConfig
from askwise.paper.network import QNetwork, dense
from askwise.paper.train import Trainer, measure, policy_of

TINY = TrainConfig(
    width=8, epoch=5, parallel_cases=6, max_epochs=2, batch_steps=40, memory_episodes=30, pretrain_steps=3, pretrain_batch=8,
    window_epochs=0.6,
)  # fmt: skip
BUDGET = AverageBudget(0.5)  # its price moves, so that it is part of what must be resumed


def trainer(of: World | None = None, budget: Budget = BUDGET, config=TINY, seed=0, encoder=dense) -> Trainer:
    problem = (of or world()).problem()
    return Trainer(problem, problem, budget, config, seed, encoder)


def run(t: Trainer, advances: int) -> Trainer:
    for _ in range(advances):
        t.advance()
    return t


def weights(t: Trainer):
    return {k: v.tobytes() for k, v in t.state()[0].items() if k.startswith("network/")}


def everything(t: Trainer):
    """All state, down to the bit."""
    arrays, facts = t.state()
    return {k: (v.dtype, v.shape, v.tobytes()) for k, v in arrays.items()}, json.dumps(facts)


def revived(t: Trainer, encoder=dense) -> Trainer:
    """What a new process has: the same arguments, and the state as it comes from a file."""
    arrays, facts = t.state()
    arrays, facts = {k: v.copy() for k, v in arrays.items()}, json.loads(json.dumps(facts))
    again = trainer(encoder=encoder)
    again.load(arrays, facts)
    return again


# ------------------------------------------------------------------ precision


def targets_of(t: Trainer) -> torch.Tensor:
    """Those of the next step."""
    kept = []
    t._descend = lambda loss: kept.append(loss.detach())
    unsoftened, t._targets = t._targets, lambda *args: kept.append(unsoftened(*args)) or kept[-1]
    t._learn(t.memory.sample(2_000, np.random.default_rng(0)))
    return kept[0]


def test_targets_in_low_precision_are_those_of_float32_but_for_a_rounding_error():
    config = TINY.but(width=128, batch_steps=2_000, memory_episodes=400, pretrain_steps=50, pretrain_batch=200)
    exact, low = (run(trainer(config=config), 60), trainer(config=config.but(precision="bfloat16")))
    arrays, facts = exact.state()
    facts["run"]["setting 'precision'"] = "bfloat16"
    low.load(arrays, facts)
    difference = (targets_of(exact) - targets_of(low)).abs()
    assert 0 < difference.mean() < 0.002
    assert difference.quantile(0.95) < 0.01  # the largest are where another action is greedy


def test_what_is_measured_and_handed_out_is_float32():
    t = run(trainer(config=TINY.but(precision="bfloat16")), 8)
    assert t.network.precision == t.target.precision == torch.float32
    assert {v.dtype for v in t.weights().values()} == {np.dtype("float32")}


# ------------------------------------------------------------------ gaps


def gaps_by_class(n: int = 400) -> Problem:
    """Rows of one class lack the dear test half of the time."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = np.stack([y + rng.normal(size=n), rng.normal(size=n)], 1)
    X[(y == 1) & (rng.random(n) < 0.5), 0] = np.nan
    return Problem.build(Schema.build(["dear", "cheap"], [0, 1], [2, 1]), X, y)


def test_gaps_that_go_with_the_class_are_filled_only_where_that_is_asked_for():
    problem = gaps_by_class()
    as_they_are, filled = (Trainer(problem, problem, BUDGET, TINY.but(fill_gaps=fill)) for fill in (False, True))
    assert as_they_are.problem.available is not None
    assert filled.problem.available is None


def test_costs_are_measured_on_rows_as_they_are():
    problem = gaps_by_class()
    t = run(Trainer(problem, problem, Tradeoff(0.0), TINY.but(fill_gaps=True)), 9)
    on_rows = measure(problem, t.policy(), None)
    assert t.measure().train == on_rows
    assert on_rows.cost < measure(t.problem, t.policy(), None).cost or on_rows.cost == 0


# ------------------------------------------------------------------ resuming

END = 13  # 3 of pretraining, 1 that fills the memory, 9 of learning: three windows


@pytest.mark.parametrize("encoder", [dense, with_dropout, with_batch_norm])
def test_a_run_killed_at_any_moment_goes_on_as_if_it_had_not_been(encoder):
    expected = everything(run(trainer(encoder=encoder), END))
    alive, moments = trainer(encoder=encoder), set()
    for killed_after in range(END):
        moments.add("pretraining" if alive.pretraining else "window over" if alive.step % TINY.window == 0 else "mid-window")
        assert everything(run(revived(alive, encoder), END - killed_after)) == expected, killed_after
        alive.advance()
    assert moments == {"pretraining", "mid-window", "window over"}


def test_handing_out_state_does_not_disturb_the_run():
    watched = trainer()
    for _ in range(END):
        watched.state()
        watched.advance()
    assert everything(watched) == everything(run(trainer(), END))


def test_handed_out_state_does_not_change_when_the_run_goes_on():
    t = run(trainer(), 6)
    arrays, _ = t.state()
    before = {k: v.copy() for k, v in arrays.items()}
    run(t, 4)
    assert all((arrays[k] == v).all() for k, v in before.items())


def test_the_price_moves_and_is_resumed():
    t = run(trainer(budget=AverageBudget(0)), END)
    assert t.controller.lam > 0
    assert t.state()[1]["lambda"]["lam"] == t.controller.lam


def sentence(error) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 300  # a sentence, not a listing
    return message


@pytest.mark.parametrize(
    ("other", "word"),
    [
        pytest.param(dict(seed=1), "seed", id="seed"),
        pytest.param(dict(config=replace(TINY, rho=0.2)), "rho", id="config"),
        pytest.param(dict(budget=AverageBudget(0.6)), "budget", id="budget"),
        pytest.param(dict(budget=AverageBudget("0.500000001")), "budget", id="nearly the same budget"),
        pytest.param(dict(of=world(seed=1)), "data", id="data"),
        pytest.param(dict(of=world(costs={"a": 0.2, "b": 0.8, "scan": 0})), "", id="prices"),
        pytest.param(dict(of=world(setup={"draw": (0.1, ["a"])})), "", id="set-ups"),
        pytest.param(dict(encoder=with_dropout), "network", id="network"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(other, word):
    state = run(trainer(), 5).state()
    fresh = trainer(**other)
    with pytest.raises(StateError) as caught:
        fresh.load(*state)
    message = sentence(caught)
    assert "another run" in message
    assert word in message
    assert fresh.step == 0  # nothing was taken over


def test_what_is_no_checkpoint_is_refused():
    with pytest.raises(StateError) as caught:
        trainer().load({}, {})
    sentence(caught)


# ------------------------------------------------------------------ seeds


def test_the_same_seed_gives_the_same_weights_whatever_happened_before():
    one = weights(run(trainer(seed=5), END))
    torch.rand(3)
    np.random.default_rng(1).random(3)
    assert weights(run(trainer(seed=5), END)) == one


@pytest.mark.parametrize("advances", [0, 2, END])
def test_another_seed_gives_other_weights(advances):
    assert weights(run(trainer(seed=0), advances)) != weights(run(trainer(seed=1), advances))


def test_the_programs_own_random_numbers_are_left_alone():
    before = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002 - the global state is what is tested
    t = run(trainer(encoder=with_dropout), END)
    policy_of(t.weights(), t.problem.schema, TINY, with_dropout)
    after = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert all(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))


def test_the_programs_random_numbers_do_not_reach_the_run():
    one = weights(run(trainer(encoder=with_dropout), END))
    with torch.random.fork_rng():
        torch.manual_seed(999)
        assert weights(run(trainer(encoder=with_dropout), END)) == one


# ------------------------------------------------------------------ snapshots


def test_snapshots_come_once_per_window_until_the_end():
    t = trainer()
    assert [measurement.step for measurement in t] == [3, 6, 9]
    assert t.finished
    assert t.step == 10


def test_a_snapshot_is_the_policy_it_was_measured_with():
    t = trainer(encoder=with_dropout)
    snapshots = [(measurement, t.weights()) for measurement in t]
    for measured, weights in snapshots:
        policy = policy_of(weights, t.problem.schema, TINY, with_dropout)
        assert measure(t.problem, policy, t.cap) == measured.train == measured.validation
    (_, first), (_, last) = snapshots[0], snapshots[-1]
    assert any((first[k] != last[k]).any() for k in first)


def test_measure_by_hand():
    w = world()
    problem = w.problem()

    class BuyAThenSayYes(Policy):
        def act(self, state):
            action = np.where(state.mask[:, 0], 1, 2)
            return Choice(action, np.ones(len(action), np.float32))

    result = measure(problem, BuyAThenSayYes(), None)
    wrong = w.y.count("no") / len(w.y)
    assert (result.cost, result.loss, result.accuracy) == (pytest.approx(0.3), pytest.approx(wrong), pytest.approx(1 - wrong))


def test_measuring_on_some_rows_takes_the_same_rows_every_time():
    t = trainer(config=replace(TINY, measure_rows=7))
    assert [len(rows) for rows in t.measured] == [7, 7]
    assert len(set(t.measured[0].tolist())) == 7
    assert (t.measured[0] == trainer(config=replace(TINY, measure_rows=7)).measured[0]).all()


# ------------------------------------------------------------------ device, encoders, budgets


def test_the_network_lives_where_the_settings_say():
    t = trainer(config=replace(TINY, device="meta"))
    assert {p.device.type for net in (t.network, t.target) for p in net.parameters()} == {"meta"}


def test_a_device_that_does_not_exist_is_named():
    with pytest.raises((InputError, RuntimeError), match="nowhere"):
        trainer(config=replace(TINY, device="nowhere"))


def test_without_a_budget_the_price_sweeps_from_low_to_high():
    t = trainer(budget=Budget(), config=replace(TINY, max_epochs=6))
    prices = [measurement.lam for measurement in t]
    assert len(prices) == 10
    factors = np.array(prices[2:]) / prices[1:-1]
    assert np.allclose(factors, factors[0])
    assert prices[1] > prices[0] > 0
    assert t.controller.lam == pytest.approx(t.controller.most)


def test_an_encoder_that_is_none_is_refused():
    class Flat(nn.Module):
        def forward(self, inputs):
            return inputs.sum()

    with pytest.raises(InputError, match="encoder"):
        trainer(encoder=lambda schema, width: Flat())


def pictures(rows=4, columns=3, **more) -> World:
    names = [f"p{i}" for i in range(rows * columns)]
    X = np.random.default_rng(0).normal(size=(20, len(names))).astype(np.float32)
    y = ["yes" if x > 0 else "no" for x in X[:, 0]]
    return World(**(dict(reveals={n: [n] for n in names}, costs=dict.fromkeys(names, 1), X=X, y=y, classes=["no", "yes"]) | more))


@pytest.mark.parametrize("reveals", [None, "rows"])
def test_pictures_train_with_a_convolutional_encoder(reveals):
    w = pictures()
    if reveals:  # one test reveals a whole row of the picture
        w = pictures(
            reveals={f"row{r}": [f"p{3 * r + c}" for c in range(3)] for r in range(4)}, costs={f"row{r}": 3 for r in range(4)}
        )
    t = run(trainer(w, Tradeoff(0.01), encoder=Convolutions(4, 3, channels=(16, 32))), 7)
    check_rules(w, t.problem, rollout(t.problem, t.policy(), None))


def test_a_convolutional_encoder_puts_values_and_mask_on_the_picture():
    w = pictures(
        reveals={f"row{r}": [f"p{3 * r + c}" for c in range(3)] for r in range(4)}, costs={f"row{r}": 3 for r in range(4)}
    )
    encoder = Convolutions(4, 3, channels=(16, 32))(w.problem().schema, 8)
    planes = []
    encoder.body.register_forward_pre_hook(lambda module, args: planes.append(args[0]))
    values, mask = torch.arange(12.0)[None], torch.tensor([[1.0, 0, 0, 1]])
    encoder(torch.cat([values, mask], 1))
    assert planes[0].shape == (1, 2, 4, 3)
    assert planes[0][0, 0].tolist() == values.view(4, 3).tolist()
    assert planes[0][0, 1].tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1]]


def test_pictures_of_another_size_are_refused():
    with pytest.raises(InputError, match="28 x 28 need 784 columns; there are 12"):
        trainer(pictures(), encoder=Convolutions(28, 28))


def test_a_dense_network_has_one_value_per_action():
    problem = world().problem()
    q = QNetwork(problem.schema, 8)(torch.zeros(3, 5 + 4))
    assert q.shape == (3, problem.schema.n_actions)


# ------------------------------------------------------------------ every variant of the problem


class Script(Policy):
    """Takes stored actions again. All cases are at the same step, those that are over have left."""

    def __init__(self, action, length) -> None:
        self.action, self.length, self.t = action, length, 0

    def act(self, state) -> Choice:
        action = self.action[self.length > self.t, self.t].astype(np.int64)
        self.t += 1
        return Choice(action, np.ones(len(action), np.float32))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize(
    "budget", [Tradeoff(0.05), AverageBudget(0.4), HardBudget(0.9), AverageBudget(0.4) & HardBudget(0.9)], ids=str
)
def test_every_variant_trains_and_obeys_the_rules(name, budget):
    w, data, settings = VARIANTS[name]
    problem = w.problem(**data)
    t = Trainer(problem, problem, budget, replace(TINY, **settings))
    before = weights(t)
    run(t, 8)
    assert t.step >= 4
    assert weights(t) != before
    assert all(np.isfinite(v).all() for k, v in t.state()[0].items() if k.startswith("network/"))
    w = replace(w, hard=None if budget.hard is None else str(budget.hard), loss=problem.loss.tolist())
    check_rules(w, problem, rollout(problem, t.policy(), t.cap))
    # what was stored while exploring obeys them too
    stored = t.memory
    again = Script(stored.action[: stored.size], stored.length[: stored.size])
    check_rules(w, problem, rollout(problem, again, t.cap, rows=stored.row[: stored.size].astype(np.int64)))


# ------------------------------------------------------------------ a problem whose answer is known


@pytest.mark.parametrize(("lam", "cost", "accuracy"), [(0.2, 0.3, 1.0), (5.0, 0.0, 0.5)])
def test_it_buys_the_test_that_tells_the_answer_if_it_is_worth_its_price(lam, cost, accuracy):
    # `a` is the label, `b` is noise. At 0.2 per unit, `a` is worth its 0.06; at 5, guessing (loss 0.5) beats paying 1.5
    X = np.array([[1, 0], [-1, 0], [1, 1], [-1, 1]] * 8, np.float32)
    w = World({"a": ["a"], "b": ["b"]}, {"a": 0.3, "b": 2}, X, ["yes" if x > 0 else "no" for x in X[:, 0]], ["no", "yes"])
    config = TrainConfig(
        width=16, epoch=100, parallel_cases=32, max_epochs=3, batch_steps=256, memory_episodes=200, pretrain_steps=100,
        pretrain_batch=64, lr_start=5e-3, lr_pretrain=1e-2, window_epochs=3,
    )  # fmt: skip
    last = list(Trainer(w.problem(), w.problem(), Tradeoff(lam), config))[-1]
    assert last.train.cost == pytest.approx(cost)
    assert last.train.accuracy == pytest.approx(accuracy)


def test_losses_in_another_currency_change_nothing():
    # a power of two, so that not even the rounding differs; without counting in stakes a loss of 512 is never learned
    weights = []
    for worth in (1, 512):
        t = trainer(world(loss=[[0, worth], [worth, 0]]), Tradeoff(0.25 * worth))
        weights.append(run(t, 12).network.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
