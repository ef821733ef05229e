"""Learners of the classes from any set of tests: boosted trees, a linear model and networks.

Rows are seen several times, with other tests, and count by what is at stake in them, as everywhere with boosted trees. `shift`
undoes that in the logits.
"""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from torch.nn import functional

from askwise.components.boosting import MOST_RATE, Fitted, boost, loss_scales, row_weights
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Array, Arrays, Ints
from askwise.core.problem import Problem
from askwise.stack.config import DESIGN, StackConfig
from askwise.stack.networks import fit_networks
from askwise.stack.states import StateMaker, some_of
from askwise.stack.trees import from_lightgbm

NO_LIMIT = 1e9  # seconds
HELD_OUT_STATES = 6_000  # on which it is seen when trees are enough
TREE_TIME, LINEAR_TIME = 0.45, 0.1  # of the time of a member; networks take the rest
WIDER = 5  # so many more levels than a balanced one a tree may have
TRIAL_ROWS, TRIAL_ROUNDS, TRIAL_RATE = 50_000, 40, 0.2  # of a trial of how large trees should be
PROBED_STATES, FEWEST_ROUNDS = 10_000, 60  # by which a round is timed, and which there should be time for
LINEAR_STATES = 20_000  # from which the linear model is learned, at most
LINEAR_ROUNDS, FEWEST_EVALUATIONS = 80, 5  # of L-BFGS; and how often it computes its loss however short the time


class TimeOver(Exception):
    """There is no time for another evaluation."""


def fit_member(
    maker: StateMaker,
    learned: Ints,
    held_out: Ints,
    features: Arrays,
    config: StackConfig,
    members: int,
    seed: int,
    threads: int,
    seconds: float,
) -> Arrays:
    """All learners of one member of a stack, from the rows that it learns from, with how well they predict the others after each
    round and at each check: see `stopping`. The result depends on nothing else, so that members can be fitted anywhere, in any
    order. features: how networks see columns, see `networks`.
    `reached` in the result: how much of its schedule each learner had time for."""
    ends = time.monotonic() + seconds
    trees, of_trees = fit_trees(maker, learned, held_out, config, members, seed, threads, TREE_TIME * seconds)
    with own_torch(seed):
        linear, of_linear = fit_linear(maker, learned, config, seed, LINEAR_TIME * seconds)
        left = ends - time.monotonic()
        networks, of_networks = fit_networks(maker, learned, held_out, features, config, seed, left)
    parts = {"trees": trees, "linear": linear, "networks": networks}
    arrays = {f"{kind}.{name}": value for kind, part in parts.items() for name, value in part.items()}
    return {**arrays, "reached": np.array([of_trees, of_linear, of_networks], np.float32)}


def fit_trees(
    maker: StateMaker, learned: Ints, held_out: Ints, config: StackConfig, members: int, seed: int, threads: int, seconds: float
) -> tuple[Arrays, float]:
    """Boosted trees of any set of tests, as arrays, with their log loss after each round, and how much of their rounds there was
    time for."""
    problem, rng, K = maker.problem, np.random.default_rng(seed), maker.problem.schema.n_classes
    weight, y, outputs = row_weights(problem), problem.labels, 1 if K == 2 else K
    rounds = max(10, min(config.tree_rounds, config.most_trees // (members * outputs)))
    rate = float(np.clip(config.tree_rate * config.tree_rounds / rounds, config.tree_rate, MOST_RATE))
    ends = time.monotonic() + seconds

    def boosted(states: int, rounds: int, left: float) -> Fitted:
        """From so many states of the rows to learn from."""
        parts = []
        for rows, most in ((learned, states), (held_out, HELD_OUT_STATES)):
            row = some_of(rows, most, rng)
            parts.append((maker.with_nan(row, maker.masks(row, rng)), y[row], weight[row]))
        return boost(
            parts[0],
            parts[1],
            K,
            seconds=left,
            seed=seed,
            threads=threads,
            rounds=rounds,
            rate=rate,
            keeps_all=True,
            min_data_in_leaf=max(5, min(round(5 * len(parts[0][0]) / len(learned)), len(parts[0][0]) // 200)),
            num_leaves=config.leaves,
            max_depth=math.ceil(math.log2(config.leaves)) + WIDER,
            feature_fraction=0.9,
            max_bin=127,
        )

    states = min(config.most_states, config.states_per_row * len(learned))
    if seconds < NO_LIMIT and states > PROBED_STATES:  # fewer states and enough rounds rather than many states and few rounds
        each = max(boosted(PROBED_STATES, 3, math.inf).per_round, 1e-9) / PROBED_STATES
        states = min(states, max(PROBED_STATES, int((ends - time.monotonic()) / (FEWEST_ROUNDS * each))))
    fitted = boosted(states, rounds, max(ends - time.monotonic(), 0.0))
    arrays = from_lightgbm(fitted.model, len(problem.schema.columns), K).arrays()
    rounds = len(arrays["root"]) // outputs  # one that finds nothing to split leaves no trees
    return {**arrays, "curve": np.array(fitted.curve[:rounds], np.float32)}, fitted.reached


def choose_leaves(
    maker: StateMaker, learned: Ints, held_out: Ints, config: StackConfig, seed: int, threads: int, seconds: float
) -> int:
    """How many leaves trees should have, by short trainings on all tests and on the first quarter of the order. These tell
    whether a table is rich enough for large trees much sooner than trees of any set of tests, which are large only with many
    states."""
    sizes = config.tree_sizes
    if len(sizes) == 1:
        return sizes[0]
    problem, rng, rank = maker.problem, np.random.default_rng(seed), maker.sampler.rank
    parts = [rng.permutation(rows)[:most] for rows, most in ((learned, TRIAL_ROWS), (held_out, HELD_OUT_STATES))]
    weight, F, lost = row_weights(problem), len(rank), dict.fromkeys(sizes, 0.0)
    tries = [(leaves, rank < length) for leaves in sizes for length in (F, -(-F // 4))]
    for leaves, held in tries:
        train, validation = (
            (maker.with_nan(rows, np.tile(held, (len(rows), 1))), problem.labels[rows], weight[rows]) for rows in parts
        )
        lost[leaves] += boost(
            train,
            validation,
            problem.schema.n_classes,
            seconds=seconds / len(tries),
            seed=seed,
            threads=threads,
            rounds=TRIAL_ROUNDS,
            rate=TRIAL_RATE,
            num_leaves=leaves,
            feature_fraction=0.9,
            max_bin=127,
        ).log_loss
    return min(sizes, key=lambda leaves: lost[leaves])


def fit_linear(maker: StateMaker, learned: Ints, config: StackConfig, seed: int, seconds: float) -> tuple[Arrays, float]:
    """A softmax regression on states of any set of tests, by L-BFGS with a ridge, and how much of it there was time for."""
    ends = time.monotonic() + seconds
    problem, rng, schema = maker.problem, np.random.default_rng(seed), maker.problem.schema
    F, C, K = schema.n_tests, len(schema.columns), schema.n_classes
    row = some_of(learned, LINEAR_STATES, rng)
    mask = maker.masks(row, rng)
    known = schema.by_column(mask)
    x = (problem.X[row] * known).clip(-DESIGN.value_limit, DESIGN.value_limit)
    main = torch.from_numpy(np.concatenate([x, mask], 1, dtype=np.float32))
    by_set = DESIGN.by_set_tests >= F
    pairs = torch.from_numpy((mask[:, :, None] * x[:, None, :]).reshape(len(row), -1).astype(np.float32)) if by_set else None
    labels = torch.from_numpy(problem.labels[row])
    weight = torch.from_numpy(row_weights(problem)[row]).float()
    weight = weight / weight.sum()
    coefficients = [torch.zeros(C + F, K), torch.zeros(K), torch.zeros(F * C if by_set else 0, K)]
    for part in coefficients:
        part.requires_grad_()
    optimiser = torch.optim.LBFGS(coefficients, max_iter=LINEAR_ROUNDS, history_size=10, line_search_fn="strong_wolfe")
    ridge = config.ridge / len(np.unique(row))

    best, totals = coefficients, list[float]()

    def loss() -> torch.Tensor:
        nonlocal best
        if len(totals) >= FEWEST_EVALUATIONS and time.monotonic() > ends:
            raise TimeOver
        optimiser.zero_grad()
        logits = main @ coefficients[0] + coefficients[1]
        if pairs is not None:
            logits = logits + pairs @ coefficients[2]
        nats = (weight * functional.cross_entropy(logits, labels, reduction="none")).sum()
        total = nats + ridge * (coefficients[0].square().sum() + 2 * coefficients[2].square().sum())
        total.backward()  # type: ignore[no-untyped-call]
        totals.append(total.item())
        if totals[-1] == min(totals):  # in the middle of a line search the last ones may be bad
            best = [part.detach().clone() for part in coefficients]
        return total

    reached = 1.0
    try:
        optimiser.step(loss)  # type: ignore[no-untyped-call]
        best = coefficients
    except TimeOver:
        reached = min(len(totals) / LINEAR_ROUNDS, 0.99)
    main_weights, bias, pair_weights = (part.detach().numpy() for part in best)
    arrays: dict[str, Array] = {"main": main_weights, "bias": bias}
    if by_set:
        arrays["by_set"] = pair_weights.reshape(F, C * K)
    return arrays, reached


def shift(problem: Problem) -> Array:
    """K: how much larger the logits of a class are for being seen more often."""
    return np.log(loss_scales(problem))
