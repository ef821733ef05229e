"""A ring of whole episodes. It stores decisions, not observations: row, actions, and the probabilities they were taken with.

States are rebuilt from the decisions (`episode.replay`) and rewards priced with today's lambda, so a stale lambda cannot exist.

Paper: algorithm 2, add to memory
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from askwise.core.arrays import Array, Floats, Ints
from askwise.core.episode import Episodes


class Batch(NamedTuple):
    """E stored episodes, padded to the longest of them."""

    row: Ints  # E
    action: Array  # E, L
    probability: Floats  # E, L
    length: Ints  # E


class Memory:
    """The last `capacity` episodes, each of at most `longest` steps."""

    def __init__(self, capacity: int, longest: int, n_actions: int) -> None:
        self.row = np.zeros(capacity, np.int32)
        self.length = np.zeros(capacity, np.int32)
        self.action = np.zeros((capacity, longest), np.int16 if n_actions < 2**15 else np.int32)
        self.probability = np.zeros((capacity, longest), np.float32)
        self.size = 0  # how many of the places are filled
        self.next = 0  # where the next episode goes

    def add(self, row: Array, action: Array, probability: Floats, length: Array) -> None:
        """Stores E episodes, padded to any number of steps; the oldest are overwritten."""
        capacity = len(self.row)
        E = min(len(row), capacity)
        place = (self.next + np.arange(E)) % capacity
        width = min(action.shape[1], self.action.shape[1])
        last = slice(len(row) - E, None)
        self.row[place], self.length[place] = row[last], length[last]
        self.action[place, :width] = action[last, :width]
        self.probability[place, :width] = probability[last, :width]
        self.next = (self.next + E) % capacity
        self.size = min(self.size + E, capacity)

    def add_episodes(self, episodes: Episodes) -> None:
        """Stores what a rollout did."""
        E, L = len(episodes.row), int(episodes.length.max(initial=0))
        action, probability = np.zeros((E, L), self.action.dtype), np.zeros((E, L), np.float32)
        filled = np.arange(L) < episodes.length[:, None]
        action[filled], probability[filled] = episodes.action, episodes.probability
        self.add(episodes.row, action, probability, episodes.length)

    def sample(self, steps: int, rng: np.random.Generator) -> Batch:
        """Whole episodes, drawn with replacement, of about `steps` steps together: the first that do not exceed it.

        Paper: algorithm 2, sample a batch
        """
        mean = self.length[: self.size].mean()
        pick = rng.integers(self.size, size=int(1.2 * steps / mean) + 10)
        enough = int(np.searchsorted(np.cumsum(self.length[pick]), steps, "right"))
        pick = pick[: max(enough, 1)]
        longest = int(self.length[pick].max())
        return Batch(
            self.row[pick].astype(np.int64),
            self.action[pick, :longest],
            self.probability[pick, :longest],
            self.length[pick].astype(np.int64),
        )

    @property
    def bytes_per_step(self) -> int:
        """What one more stored step needs, the share of its episode's row and length not counted."""
        return self.action.itemsize + self.probability.itemsize

    def state(self) -> dict[str, Array]:
        """All of it, as arrays; episodes not yet there are left out."""
        longest = max(int(self.length.max(initial=1)), 1)
        n = self.size
        return {
            "row": self.row[:n],
            "length": self.length[:n],
            "action": self.action[:n, :longest],
            "probability": self.probability[:n, :longest],
            "next": np.array([self.next]),
        }

    def load(self, state: dict[str, Array]) -> None:
        """Takes over what `state` handed out."""
        n, longest = state["action"].shape
        self.row[:n], self.length[:n] = state["row"], state["length"]
        self.action[:n, :longest] = state["action"]
        self.probability[:n, :longest] = state["probability"]
        self.size, self.next = n, int(state["next"][0])
