"""Networks side by side: units that are left out while they learn."""

import pytest
import torch

from askwise.components.torch_state import own_torch
from askwise.stack.side_by_side import SideBySide, some_left_out


@pytest.mark.parametrize(("share", "out"), [(0.2, 51 / 256), (0.5, 0.5), (1.0, 255 / 256)])
def test_about_the_share_is_left_out_and_the_mean_is_kept(share, out):
    with own_torch(0):
        factor = some_left_out(torch.zeros(3, 200, 333), share)
    assert sorted(factor.unique().tolist()) == [0.0, pytest.approx(1 / (1 - out))]
    assert float((factor == 0).float().mean()) == pytest.approx(out, abs=0.005)
    assert float(factor.mean()) == pytest.approx(1, abs=0.1)


def test_units_are_left_out_in_learning_alone_and_others_each_time():
    with own_torch(0):
        network, inputs = SideBySide(2, 5, 16, 2, 3, dropout=0.5), torch.ones(2, 7, 5)
        network.weight[-1].data.normal_()
        first, second = network(inputs), network(inputs)
        assert not torch.equal(first, second)
        network.eval()
        assert torch.equal(network(inputs), network(inputs))


def test_gradients_do_not_pass_units_that_are_left_out():
    with own_torch(0):
        hidden = torch.ones(1, 4, 64, requires_grad=True)
        factor = some_left_out(hidden, 0.5)
        (hidden * factor).sum().backward()
    assert torch.equal(hidden.grad, factor)
