"""Small tables of patients with prices that do not add up, and settings under which a fit takes a fraction of a second."""

import numpy as np
import pandas as pd
from tests.support.naive import NaiveCosts

from askwise import CostlyClassifier, FamilyConfig, TrainConfig

QUICK = TrainConfig(
    mixture="always",
    width=32,
    epoch=5,
    parallel_cases=20,
    batch_steps=200,
    memory_episodes=100,
    max_epochs=4,
    lr_pretrain=1e-2,
    lr_start=3e-3,
    pretrain_steps=80,
    pretrain_batch=64,
    window_epochs=2,
    explore_epochs=1,
)  # fmt: skip
QUICK_FAMILY = FamilyConfig(
    max_steps=200, width=32, prefix_batch=64, parallel_cases=16, interim_measurements=1, learning_rate=5e-3
)
COSTS = {"age": "0.1", "pressure": 1, "smoker": "0.2", "colour": "0.7", "town": "0.3", "index": "0.1"}
SETUP = {"lab": ("0.5", ["pressure", "colour"])}
DERIVED = {"index": ["age", "pressure"]}
PRICES = {"costs": COSTS, "setup": SETUP, "derived": DERIVED}
NAIVE = NaiveCosts(COSTS, SETUP, DERIVED)


def patients(n: int = 160, seed: int = 0, holes: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    """A frame with numbers, truths, categories and words, values missing in each sort, and classes 'ill' and 'well'."""
    rng = np.random.default_rng(seed)
    age, pressure = rng.integers(20, 90, n), rng.normal(size=n).round(2)
    colour = rng.choice(["red", "green", "blue"], n)
    smoker, town = rng.random(n) < 0.4, rng.choice(["Bonn", "Köln", "Rom"], n).astype(object)
    y = np.where((age - 55) / 15 + pressure + (colour == "red") > 0.3, "ill", "well")
    frame = pd.DataFrame({
        "age": age, "pressure": pressure, "smoker": smoker.astype(object), "colour": pd.Categorical(colour), "town": town,
        "index": (age / 20 + pressure).round(3),
    })  # fmt: skip
    if holes:
        for name in ("pressure", "smoker", "colour", "town"):
            frame.loc[rng.random(n) < 0.15, name] = None
        frame.loc[frame["pressure"].isna(), "index"] = None
    return frame, y


def numbers(n: int = 120, seed: int = 0, columns: int = 3, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Plain numbers; the first column, and a little of the second, tell the class, 0 to `classes` - 1."""
    X = np.random.default_rng(seed).normal(size=(n, columns))
    score = X[:, 0] + 0.3 * X[:, 1]
    return X, np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def classifier(**settings) -> CostlyClassifier:
    """One that is trained for a moment only, by the paper's algorithm, always the same one."""
    return CostlyClassifier(**{"config": QUICK, "algorithm": "paper", "random_state": 0, **settings})


def bills(report, prices=NAIVE, known=frozenset()):
    """What the tests of each case cost, read aloud."""
    return [prices.cost(set(tests), set(known)) for tests in report.tests]
