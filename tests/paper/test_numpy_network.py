"""The network without torch says what the network with torch says."""

import numpy as np
import pytest
import torch

from askwise.components.networks import weights_of
from askwise.core.cases import State
from askwise.core.cost_spec import CostSpec
from askwise.core.schema import Schema
from askwise.paper.network import NetworkValues, QNetwork
from askwise.paper.numpy_network import DenseValues


@pytest.mark.parametrize("reveals", [None, {"panel": ["x1", "x2", "x3"]}])
def test_the_same_values_as_torch(reveals) -> None:
    schema = Schema.build([f"x{i}" for i in range(12)], list("abc"), CostSpec(reveals=reveals))
    torch.manual_seed(0)
    network = QNetwork(schema, 32).eval()
    rng = np.random.default_rng(0)
    mask = rng.random((200, schema.n_tests)) < 0.5
    values = (rng.normal(size=(200, 12)) * schema.by_column(mask)).astype(np.float32)
    state = State(values, mask, np.ones((200, schema.n_actions), bool), np.zeros(200, np.uint64))
    ours = DenseValues(weights_of(network))(state)
    theirs = NetworkValues(network, torch.device("cpu"))(state)
    assert np.abs(ours - theirs).max() < 1e-5
