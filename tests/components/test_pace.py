"""How long networks learn, and which of them are kept."""

import torch

from askwise.components.pace import BestNetworks, Pace


def test_phases_last_their_share_of_the_steps():
    pace = Pace(0, 100)
    first, second = list(pace.phase(0.3)), list(pace.phase(1.0))
    assert len(first) == 30
    assert len(second) == 70
    assert first[:2] == [0, 1 / 30]


def test_the_best_is_kept():
    network = torch.nn.Linear(3, 2)
    best = BestNetworks((network,))
    bias = network.bias
    for loss, value in ((3.0, 1.0), (1.0, 2.0), (2.0, 3.0)):
        torch.nn.init.constant_(bias, value)
        best.see(loss)
    assert best.bad == 1
    best.restore()
    assert bias.tolist() == [2, 2]


def test_without_a_number_of_steps_the_time_counts_but_some_steps_are_taken():
    assert len(list(Pace(0, fewest_steps=7).phase(1.0))) == 7
