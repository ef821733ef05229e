"""Torch's random numbers and threads belong to the program: what learns borrows them and gives them back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch


@contextmanager
def own_torch(seed: int, threads: int | None = None) -> Iterator[None]:
    """Torch draws by this seed and uses so many threads, or as many as before."""
    with own_threads(threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def own_threads(threads: int | None = None) -> Iterator[None]:
    """Torch uses so many threads, or as many as before. However many it uses in the end, it goes back to those."""
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


class _Drawing(Protocol):
    torch_rng: torch.Tensor


@contextmanager
def own_random_numbers(training: _Drawing) -> Iterator[None]:
    """Torch goes on with the numbers of this training, which keeps where it is in them."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(training.torch_rng)
        yield
        training.torch_rng = torch.get_rng_state()
