"""The Q-network: an encoder of [x ⊙ m, m], which can be replaced, and dueling heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from askwise.components.encoders import Encoder, encoded_width
from askwise.components.networks import inputs, stack
from askwise.core.arrays import Floats
from askwise.core.cases import State
from askwise.core.policy import ValueFunction
from askwise.core.schema import Schema


def dense(schema: Schema, width: int) -> nn.Module:
    """Three fully connected layers of equal width, each with a ReLU.

    Paper: section 3.2, three hidden layers
    """
    return stack(len(schema.columns) + schema.n_tests, width)


class QNetwork(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean over a' of A(s, a').

    Paper: section 3.1, dueling architecture
    """

    def __init__(self, schema: Schema, width: int, encoder: Encoder = dense) -> None:
        super().__init__()
        self.precision = torch.float32  # of the encoder's arithmetic
        self.encoder = encoder(schema, width)
        # value and advantages are one product; the first output is the value
        self.head = nn.Linear(encoded_width(self.encoder, schema), 1 + schema.n_actions)

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.autocast(inputs.device.type, self.precision, enabled=self.precision != torch.float32):
            encoded = self.encoder(inputs)
        out = self.head(encoded.float())
        return dueling(out[:, :1], out[:, 1:])


def dueling(value: Tensor, advantage: Tensor) -> Tensor:
    """Q = V + A - mean A.

    Paper: section 3.1, dueling architecture
    """
    return advantage + (value - advantage.mean(1, keepdim=True))


class NetworkValues(ValueFunction):
    """A network as a function of states, for policies."""

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self.network = network
        self.device = device

    @torch.inference_mode()
    def __call__(self, state: State) -> Floats:
        q: Floats = self.network(inputs(state.values, state.mask).to(self.device)).cpu().numpy()
        return q
