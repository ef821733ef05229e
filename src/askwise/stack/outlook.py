"""What value heads make of states while they learn."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from askwise.family.network import ValuePrediction


class Outlook(NamedTuple):
    """What the heads make of B states."""

    predicted: ValuePrediction
    decision_loss: Tensor  # B: D
    fee: Tensor  # B: the part of it that is cost
    best: Tensor  # B: i*
    best_cost: Tensor  # B
    continue_value: Tensor  # B: G, without gradient
    continues: Tensor  # B
