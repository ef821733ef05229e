"""Pictures: their shape, patches as tests, and what sees them."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from askwise.components.pictures import Convolutions
from askwise.core.cost_spec import CostSpec
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.tables.pictures import PictureShape


def test_patches_are_named_by_row_and_column_and_show_their_pixels():
    picture = PictureShape.of((3, 4), 2)
    names = [f"x{i}" for i in range(12)]
    assert picture.reveals(names) == {
        "patch 0,0": ["x0", "x1", "x4", "x5"],
        "patch 0,1": ["x2", "x3", "x6", "x7"],
        "patch 1,0": ["x8", "x9"],  # what is left at the edge
        "patch 1,1": ["x10", "x11"],
    }


def test_without_patches_each_pixel_is_a_test_whatever_its_colours():
    assert PictureShape.of((2, 2)).reveals(list("abcd")) == {}
    assert PictureShape.of((1, 2, 3)).reveals(list("abcdef")) == {"pixel 0,0": ["a", "b", "c"], "pixel 0,1": ["d", "e", "f"]}
    assert PictureShape.of((2, 3), (2, 1)).reveals(list("abcdef")) == {
        "patch 0,0": ["a", "d"], "patch 0,1": ["b", "e"], "patch 0,2": ["c", "f"],
    }  # fmt: skip


@pytest.mark.parametrize(("shape", "patch", "words"), [
    (None, 2, "patch is given, but no shape"),
    ((28,), None, r"shape is \(28,\); it must be whole numbers above 0 such as \(28, 28\)"),
    ("28x28", None, "shape is '28x28'"),
    ((28, 0), None, r"shape is \(28, 0\)"),
    ((28, True), None, r"shape is \(28, True\)"),
    ((8, 8), 2.5, r"patch is 2.5; it must be whole numbers above 0 such as 4"),
    ((8, 8), (9, 1), "the patch is 9 x 1, which is more than a picture of 8 x 8"),
])  # fmt: skip
def test_what_is_no_shape_is_refused_in_a_sentence(shape, patch, words):
    with pytest.raises(InputError, match=words):
        PictureShape.of(shape, patch)


def test_arrays_of_pictures_become_rows():
    grey, coloured, rng = PictureShape.of((2, 3)), PictureShape.of((2, 3, 2)), np.random.default_rng(0)
    X = rng.random((5, 2, 3, 2))
    assert np.array_equal(coloured.flat(X), X.reshape(5, 12))
    assert np.array_equal(grey.flat(X[..., 0]), X[..., 0].reshape(5, 6))
    assert np.array_equal(grey.flat(X[..., :1]), X[..., 0].reshape(5, 6))
    assert grey.flat(flat := np.ones((2, 6))) is flat
    with pytest.raises(InputError, match=r"the pictures are 2 x 3 x 2; by shape= they must be 2 x 3$"):
        grey.flat(X)
    with pytest.raises(InputError, match="pictures of 2 x 3 have 6 columns; the table has 7"):
        grey.reveals(list("abcdefg"))


def schema_of(picture: PictureShape) -> Schema:
    names = [f"x{i}" for i in range(picture.size)]
    return Schema.build(names, ["a", "b"], CostSpec(reveals=picture.reveals(names)))


def test_convolutions_see_each_colour_and_its_mask_where_they_are():
    """One that adds up the neighbours, against sums by hand."""
    picture = PictureShape.of((2, 2, 2))
    schema = schema_of(picture)
    network = Convolutions(2, 2, 2, (1,))(schema, 1)
    kernel = torch.zeros(1, 4, 3, 3)
    kernel[0, :, 1, 1] = torch.tensor([1.0, 10.0, 100.0, 1000.0])  # first colour, second, masks of both
    with torch.no_grad():
        network.body[0].weight.copy_(kernel)
        network.body[0].bias.zero_()
    values = torch.arange(8.0)[None]  # pixels 0 to 3 with colours (0, 1), (2, 3), (4, 5), (6, 7)
    mask = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    seen = network.body[0](_planes(network, torch.cat([values * mask[:, torch.from_numpy(schema.owner)], mask], 1)))
    assert seen.flatten().tolist() == [0 + 10 + 1100, 0, 0, 6 + 70 + 1100]


def _planes(network, inputs):
    seen = []
    handle = network.body.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    network(inputs)
    handle.remove()
    return seen[0]


def test_pictures_in_a_mirror_are_flipped_from_left_to_right_with_their_masks():
    network = Convolutions(2, 3, 1, (4,))(schema_of(PictureShape.of((2, 3))), 5).eval()
    x, m = torch.rand(7, 2, 3), (torch.rand(7, 2, 3) < 0.5).float()
    inputs, mirrored = (torch.cat([(a * b).flatten(1), b.flatten(1)], 1) for a, b in ((x, m), (x.flip(2), m.flip(2))))
    plain = network(inputs)
    network.flipped = True
    assert torch.equal(network(mirrored), plain)
    assert not torch.equal(network(inputs), plain)


def test_what_a_file_says_of_convolutions_is_not_believed():
    whole = Convolutions(4, 4, 1, (2, 3), mirror=True)
    facts = {**asdict(whole), "channels": [2, 3]}
    assert Convolutions.from_dict(facts) == whole
    for wrong in (
        {"rows": 0},
        {"rows": 10**9},
        {"columns": 2.0},
        {"channels": []},
        {"channels": [2] * 20},
        {"mirror": 1},
        {"more": 1},
    ):
        with pytest.raises(ValueError, match="sizes of convolutions"):
            Convolutions.from_dict({**facts, **wrong})


def test_weights_of_another_size_do_not_fit():
    sizes = Convolutions(4, 4, 1, (2, 3))
    weights = {f"a.{k}": v.numpy() for k, v in sizes(schema_of(PictureShape.of((4, 4))), 7).state_dict().items()}
    assert sizes.fit(weights, "a", 7)
    assert not sizes.fit(weights, "a", 8)
    assert not replace(sizes, channels=(2, 4)).fit(weights, "a", 7)
    assert not replace(sizes, rows=9).fit(weights, "a", 7)
