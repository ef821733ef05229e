"""Targets and losses of the family: against values worked by hand, and against loops over single cases on random inputs."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from askwise.components.networks import gumbel_perturbed
from askwise.family import losses
from askwise.family.calibration import ridge
from askwise.family.config import FamilyConfig
from askwise.family.forward import uncalibrated
from askwise.family.losses import Outcome

SEEDS = range(5)


def t(*values: float) -> Tensor:
    return torch.tensor(values)


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(v - max(row)) for v in row]
    return [p / sum(powers) for p in powers]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def nats(logits: list[list[float]], labels: list[int], temperature: float = 1.0) -> list[float]:
    return [-math.log(softmax([z / temperature for z in row])[y]) for row, y in zip(logits, labels, strict=True)]


def random_logits(seed: int, n: int = 7, classes: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    return 2 * torch.randn(n, classes), torch.randint(classes, (n,))


# ------------------------------------------------------------------ classifier and temperature


def test_prefix_loss_by_hand() -> None:
    logits = torch.log(torch.tensor([[3.0, 1.0], [1.0, 1.0]]))  # probabilities (3/4, 1/4) and (1/2, 1/2)
    assert losses.prefix_loss(logits, torch.tensor([0, 1])).item() == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_prefix_and_temperature_loss_as_a_loop(seed: int) -> None:
    logits, labels = random_logits(seed)
    naive = mean(nats(logits.tolist(), labels.tolist()))
    assert losses.prefix_loss(logits, labels).item() == pytest.approx(naive, rel=1e-5)
    assert losses.temperature_loss(logits.log_softmax(1), labels).item() == pytest.approx(naive, rel=1e-5)


def test_temperature_loss_by_hand() -> None:
    log_belief = torch.log(torch.tensor([[0.5, 0.5], [0.25, 0.75]]))
    assert losses.temperature_loss(log_belief, torch.tensor([1, 0])).item() == pytest.approx((math.log(2) + math.log(4)) / 2)


# ------------------------------------------------------------------ selector


def test_gumbel_noise_by_hand_and_never_for_what_is_not_legal() -> None:
    uniform = np.array([[math.exp(-1), math.exp(-math.e), 0.5]], np.float32)  # noise -log(1) = 0 and -log(e) = -1
    perturbed = gumbel_perturbed(torch.tensor([[2.0, 3.0, 9.0]]), torch.tensor([[True, True, False]]), uniform)
    assert perturbed.tolist() == [pytest.approx([2.0, 2.0, -1e9])]


def test_the_largest_perturbed_logit_is_a_draw_from_the_softmax() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([[0.0, 1.0, 2.0, 9.0]]).expand(40_000, 4)
    legal = torch.tensor([[True, True, True, False]]).expand(40_000, 4)
    drawn = gumbel_perturbed(logits, legal, torch.rand(40_000, 4).numpy()).argmax(1)
    shares = (torch.bincount(drawn, minlength=4) / 40_000).tolist()
    assert shares == pytest.approx([*softmax([0.0, 1.0, 2.0]), 0.0], abs=0.01)


def test_soft_choice_by_hand() -> None:
    perturbed = torch.tensor([[math.log(3.0), 0.0, -1e9], [-1e9, -1e9, -1e9]])
    share = losses.soft_choice(perturbed, torch.tensor([True, False]), 0.5)
    assert share.tolist() == [pytest.approx([0.9, 0.1, 0.0]), [0.0, 0.0, 0.0]]  # 3² : 1; nothing to choose from


@pytest.mark.parametrize("seed", SEEDS)
def test_soft_choice_as_a_loop(seed: int) -> None:
    torch.manual_seed(seed)
    logits, legal = torch.randn(6, 4), torch.rand(6, 4) < 0.6
    share = losses.soft_choice(logits.masked_fill(~legal, -1e9), legal.any(1), 0.3)
    for row, z, can in zip(share.tolist(), logits.tolist(), legal.tolist(), strict=True):
        inside = softmax([z[i] / 0.3 for i in range(4) if can[i]]) if any(can) else []
        assert row == pytest.approx([inside.pop(0) if can[i] else 0.0 for i in range(4)], abs=1e-6)


def test_soft_mask_equals_the_share_and_its_gradient_is_multiplied_by_the_stake() -> None:
    mask, share = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[0.4, 0.6], [0.3, 0.7]], requires_grad=True)
    soft = losses.soft_mask(mask, share, t(2.0, 5.0))
    assert soft.tolist() == [pytest.approx([1.0, 0.6]), pytest.approx([0.3, 0.7])]
    soft.sum().backward()
    assert share.grad is not None
    assert share.grad.tolist() == [[0.0, 2.0], [5.0, 5.0]]  # what is held already needs no choice


def test_selector_loss_by_hand() -> None:
    logits = torch.log(torch.tensor([[1.0, 1.0], [1.0, 3.0]]))
    share, cost = torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[0.2, 0.4], [0.1, 7.0]])
    loss = losses.selector_loss(logits, torch.tensor([0, 1]), share, cost, 3.0)
    assert loss.item() == pytest.approx((math.log(2) + math.log(4 / 3)) / 2 + 3.0 * (0.3 + 0.1) / 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_selector_loss_as_a_loop(seed: int) -> None:
    logits, labels = random_logits(seed)
    share, cost = torch.rand(7, 5), torch.rand(7, 5)
    spent = [sum(q * c for q, c in zip(*both, strict=True)) for both in zip(share.tolist(), cost.tolist(), strict=True)]
    naive = mean(nats(logits.tolist(), labels.tolist())) + 1.7 * mean(spent)
    assert losses.selector_loss(logits, labels, share, cost, 1.7).item() == pytest.approx(naive, rel=1e-5)


def test_nats_per_loss_by_hand() -> None:
    assert losses.nats_per_loss(np.array([0.5, 0.5]), 0.25) == pytest.approx(4 * math.log(2))
    assert losses.nats_per_loss(np.array([1.0, 0.0]), 0.25) == pytest.approx(0)
    assert losses.nats_per_loss(np.array([0.5, 0.5]), 0.0) == pytest.approx(1_000 * math.log(2))  # never divides by 0


# ------------------------------------------------------------------ value targets


def test_an_ending_is_the_decision_or_asking_where_that_is_legal_and_better() -> None:
    asks = torch.tensor([True, False, True])
    end = losses.ending(t(0.5, 0.5, 0.5), t(0.0, 0.0, 0.2), t(0.3, 0.3, 0.7), t(0.1, 0.1, 0.1), asks)
    assert end.total.tolist() == pytest.approx([0.3, 0.5, 0.5])
    assert end.loss.tolist() == pytest.approx([0.2, 0.5, 0.3])
    assert end.cost.tolist() == pytest.approx([0.1, 0.0, 0.2])
    alone = losses.ending(t(0.5), t(0.125))
    assert [part.item() for part in alone] == [0.5, 0.375, 0.125]


def test_a_value_target_is_what_follows_where_the_case_continues_and_that_is_better() -> None:
    end = Outcome(t(0.5, 0.5, 0.5), t(0.4, 0.4, 0.4), t(0.1, 0.1, 0.1))
    later = Outcome(t(0.3, 0.3, 0.6), t(0.2, 0.2, 0.2), t(0.15, 0.15, 0.15))
    target = losses.value_target(end, later, torch.tensor([True, False, True]))
    assert target.total.tolist() == pytest.approx([0.3, 0.5, 0.5])
    assert target.loss.tolist() == pytest.approx([0.2, 0.4, 0.4])
    assert target.cost.tolist() == pytest.approx([0.15, 0.1, 0.1])


@pytest.mark.parametrize("seed", SEEDS)
def test_value_targets_as_a_loop(seed: int) -> None:
    torch.manual_seed(seed)
    n = 20
    decide, fee, external, bill, total, loss, cost = torch.rand(7, n)
    may_ask, continues = torch.rand(2, n) < 0.5
    end = losses.ending(decide, fee, external, bill, may_ask)
    target = losses.value_target(end, Outcome(total, loss, cost), continues)
    for i in range(n):
        naive = (decide[i], decide[i] - fee[i], fee[i])
        if may_ask[i] and external[i] < decide[i]:
            naive = (external[i], external[i] - bill[i], bill[i])
        if continues[i] and total[i] < naive[0]:
            naive = (total[i], loss[i], cost[i])
        assert [part[i].item() for part in target] == pytest.approx([part.item() for part in naive])


# ------------------------------------------------------------------ value losses


def test_value_losses_by_hand() -> None:
    assert losses.value_loss(t(1.0, 0.0), t(0.5, 0.5)).item() == pytest.approx(0.25)
    assert losses.external_loss(t(1.0, 1.0), t(0.5, 9.0), t(0.2, 0.2)).item() == pytest.approx(
        (0.09 + 4.0) / 2
    )  # 9.2 is cut to 3
    target = Outcome(t(0.5), t(0.3), t(0.2))
    loss = losses.best_loss(t(0.7), t(0.4), t(0.25), target, t(0.4))  # 0.2 / 0.4 = 0.5 of the cost bound
    assert loss.item() == pytest.approx(2 * 0.04 + 0.01 + 0.0625)
    tiny = losses.best_loss(t(0.5), t(0.3), t(0.0), target, t(1e-6))  # the share is cut to 2
    assert tiny.item() == pytest.approx(4.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_value_losses_as_a_loop(seed: int) -> None:
    torch.manual_seed(seed)
    n = 9
    value, loss, share, total, final, cost, bound = torch.rand(7, n)
    rows = range(n)
    squares = {
        "value": [(value[i] - total[i]).item() ** 2 for i in rows],
        "loss": [(loss[i] - final[i]).item() ** 2 for i in rows],
        "cost": [(share[i].item() - min((cost[i] / bound[i]).item(), 2.0)) ** 2 for i in rows],
    }
    naive = 2 * mean(squares["value"]) + mean(squares["loss"]) + mean(squares["cost"])
    assert losses.best_loss(value, loss, share, Outcome(total, final, cost), bound).item() == pytest.approx(naive, rel=1e-5)
    assert losses.value_loss(value, total).item() == pytest.approx(mean(squares["value"]), rel=1e-5)
    asked = [(value[i].item() - min((4 * loss[i] + cost[i]).item(), 3.0)) ** 2 for i in rows]
    assert losses.external_loss(value, 4 * loss, cost).item() == pytest.approx(mean(asked), rel=1e-5)


# ------------------------------------------------------------------ overfitting


@pytest.mark.parametrize("seed", SEEDS)
def test_surprise_is_that_of_the_best_temperature(seed: int) -> None:
    logits, labels = random_logits(seed)
    weight, temperatures = torch.rand(7), (1.0, 2.0, 5.0)
    each = [nats(logits.tolist(), labels.tolist(), temperature) for temperature in temperatures]
    assert losses.surprise(logits, labels, None, temperatures) == pytest.approx(min(map(mean, each)), rel=1e-5)
    weighted = [sum(w * v for w, v in zip(weight.tolist(), values, strict=True)) / weight.sum().item() for values in each]
    assert losses.surprise(logits, labels, weight, temperatures) == pytest.approx(min(weighted), rel=1e-5)


def test_a_classifier_that_is_only_too_sure_is_not_surprised() -> None:
    belief = torch.log(torch.tensor([[0.75, 0.25]] * 4))
    labels = torch.tensor([0, 0, 0, 1])
    calm, sure = (losses.surprise(factor * belief, labels, None, (1.0, 3.0)) for factor in (1.0, 3.0))
    assert sure == pytest.approx(calm)


# ------------------------------------------------------------------ schedule and calibration


def test_schedules_by_hand() -> None:
    config = FamilyConfig(averaging=0.99, last_softness=0.25)
    assert [config.rate_factor(s) for s in (0.0, 0.01, 0.3, 0.75, 1.0)] == pytest.approx([0.01, 0.51, 1.0, 0.51, 0.01])
    assert config.averaging_weight(0, 0) == 0.5
    assert config.averaging_weight(0, 1) == 0.1
    assert config.averaging_weight(10_000, 0) == pytest.approx(0.01)
    assert [config.softness(s) for s in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.5, 0.25])


def test_the_ridge_minimises_what_it_says() -> None:
    rng = np.random.default_rng(0)
    X, Y, weight, strength = rng.normal(size=(60, 15)), rng.normal(size=(60, 2)), rng.random(60), 0.1
    start = uncalibrated()
    size = (weight[:, None] * X**2).sum(0)

    def objective(M: np.ndarray) -> float:
        errors = [w * ((y - M @ x) ** 2).sum() for x, y, w in zip(X, Y, weight, strict=True)]
        return float(sum(errors) + strength * ((size + size.mean()) * (M - start) ** 2).sum())

    fitted = ridge(X, Y, weight, strength)
    least = objective(fitted)
    assert least < objective(start)
    for _ in range(20):
        assert least < objective(fitted + 0.01 * rng.normal(size=(2, 15)))
    assert ridge(X, Y, weight, 1e9) == pytest.approx(start, abs=1e-6)
