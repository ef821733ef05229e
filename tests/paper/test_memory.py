"""The ring of episodes against a deque, and what it hands out."""

from collections import deque

import numpy as np
import pytest

from askwise.core.episode import Episodes, rollout
from askwise.core.policy import random_policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.paper.memory import Memory

LONGEST = 5


def random_episodes(rng, n, longest=LONGEST):
    """n episodes as plain tuples, and padded arrays of the same; what stands after the end of an episode is rubbish."""
    length = rng.integers(1, longest + 1, size=n)
    row = rng.integers(1000, size=n)
    width = longest if rng.random() < 0.5 else int(length.max(initial=1))
    action, probability = rng.integers(1, 90, size=(n, width)), rng.random((n, width)).astype(np.float32)
    plain = [(int(row[i]), tuple(action[i, : length[i]].tolist()), tuple(probability[i, : length[i]].tolist())) for i in range(n)]
    return plain, (row, action, probability, length)


def contents(memory: Memory):
    """Stored episodes from the oldest to the newest."""
    first = memory.next if memory.size == len(memory.row) else 0
    places = [(first + i) % len(memory.row) for i in range(memory.size)]
    return [
        (
            int(memory.row[p]),
            tuple(memory.action[p, : memory.length[p]].tolist()),
            tuple(memory.probability[p, : memory.length[p]].tolist()),
        )
        for p in places
    ]


def unpacked(batch):
    return [
        (int(r), tuple(a[:n].tolist()), tuple(p[:n].tolist()))
        for r, a, p, n in zip(batch.row, batch.action, batch.probability, batch.length, strict=True)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_ring_holds_what_a_deque_holds(seed):
    rng = np.random.default_rng(seed)
    capacity = int(rng.integers(1, 12))
    memory, twin = Memory(capacity, LONGEST, n_actions=100), deque(maxlen=capacity)
    for _ in range(15):
        # none, some, exactly all, or more than there is room for
        plain, arrays = random_episodes(rng, int(rng.choice([0, 1, 3, capacity, capacity + 1, 3 * capacity + 2])))
        memory.add(*arrays)
        twin.extend(plain)
        assert contents(memory) == list(twin)
        assert memory.size == len(twin)


def test_a_rollout_is_stored_as_it_happened():
    schema = Schema.build(["a", "b", "c"], [0, 1])
    problem = Problem.build(schema, np.zeros((4, 3)), [0, 1, 0, 1])
    done: Episodes = rollout(problem, random_policy(np.random.default_rng(0)), None, rows=np.array([3, 1, 0, 2, 2]))
    memory = Memory(10, 4, schema.n_actions)
    memory.add_episodes(done)
    expected = [
        (int(row), tuple(done.action[f : f + n].tolist()), tuple(done.probability[f : f + n].tolist()))
        for row, f, n in zip(done.row, done.first, done.length, strict=True)
    ]
    assert contents(memory) == expected


def filled(seed=0, capacity=50, n=80):
    rng = np.random.default_rng(seed)
    memory = Memory(capacity, LONGEST, n_actions=100)
    memory.add(*random_episodes(rng, n)[1])
    return memory


@pytest.mark.parametrize("steps", [5, 6, 17, 100, 1000])
def test_a_sample_is_whole_episodes_of_at_most_the_steps_asked_for(steps):
    memory, rng = filled(), np.random.default_rng(1)
    stored = set(contents(memory))
    for _ in range(20):
        batch = memory.sample(steps, rng)
        assert set(unpacked(batch)) <= stored
        assert steps - LONGEST < batch.length.sum() <= steps  # no further episode would surely fit
        assert batch.action.shape == batch.probability.shape == (len(batch.row), batch.length.max())


def test_fewer_steps_than_an_episode_has_still_give_one_episode():
    memory = Memory(3, LONGEST, n_actions=100)
    memory.add(np.array([7]), np.array([[1, 2, 3]]), np.ones((1, 3), np.float32), np.array([3]))
    assert unpacked(memory.sample(1, np.random.default_rng(0))) == [(7, (1, 2, 3), (1.0, 1.0, 1.0))]


def test_samples_are_drawn_with_replacement_and_evenly():
    memory = Memory(4, 1, n_actions=10)
    memory.add(np.arange(4), np.zeros((4, 1)), np.ones((4, 1), np.float32), np.ones(4))
    batch = memory.sample(4_000, np.random.default_rng(0))
    assert len(batch.row) == 4_000  # far more than are stored
    assert np.bincount(batch.row) == pytest.approx(1_000, abs=120)


def test_only_what_has_been_stored_is_sampled():
    memory = Memory(1_000, LONGEST, n_actions=100)
    memory.add(np.array([5, 6]), np.ones((2, 1)), np.ones((2, 1), np.float32), np.ones(2))
    assert set(memory.sample(100, np.random.default_rng(0)).row.tolist()) == {5, 6}


def test_a_sample_stays_as_it_is_when_the_ring_moves_on():
    memory, rng = filled(), np.random.default_rng(2)
    batch = memory.sample(50, rng)
    before = unpacked(batch)
    memory.add(*random_episodes(rng, 50)[1])
    assert unpacked(batch) == before


@pytest.mark.parametrize("n", [1, 30, 50, 80])
def test_state_and_load_are_a_round_trip(n):
    memory, copy = filled(n=n), Memory(50, LONGEST, n_actions=100)
    copy.load({k: v.copy() for k, v in memory.state().items()})
    assert contents(copy) == contents(memory)
    # and both go on alike
    for m in (memory, copy):
        m.add(*random_episodes(np.random.default_rng(3), 13)[1])
    assert contents(copy) == contents(memory)
    one, other = (unpacked(m.sample(40, np.random.default_rng(4))) for m in (memory, copy))
    assert one == other


def test_an_empty_memory_can_be_saved_too():
    copy = Memory(5, LONGEST, n_actions=100)
    copy.load(Memory(5, LONGEST, n_actions=100).state())
    assert contents(copy) == []


def test_many_actions_get_wider_numbers():
    memory = Memory(2, 1, n_actions=40_000)
    memory.add(np.array([0]), np.array([[39_999]]), np.ones((1, 1), np.float32), np.array([1]))
    assert contents(memory)[0][1] == (39_999,)


def test_a_step_costs_bytes_not_observations():
    assert Memory(1, 1, n_actions=1_000).bytes_per_step <= 8
