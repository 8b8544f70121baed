"""The bag-of-words layer, dropout from a run's own stream, and copies with initial weights of their own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from msda_bench.api import PluginError
from msda_bench.functional import SparseRows
from msda_bench.layers import BagLinear, Dropout, Normalise, StepKey, fresh_copy


def test_sparse_rows_give_the_product_and_gradient_of_dense_rows():
    torch.manual_seed(0)
    layer = BagLinear(6, 4)
    rows = SparseRows(torch.tensor([0, 5, 2]), torch.tensor([1.0, 2.0, -3.0]), torch.tensor([0, 2, 2, 3]), 6)
    sparse_out = layer(rows)
    sparse_out.square().sum().backward()
    sparse_weight = layer.weight.grad
    layer.zero_grad()
    dense_out = layer(rows.to_dense())
    dense_out.square().sum().backward()
    assert torch.allclose(sparse_out, dense_out)
    assert torch.allclose(sparse_weight, layer.weight.grad)


def test_initial_weights_have_the_distribution_of_torchs_linear_layer():
    layer = BagLinear(400, 30)
    assert layer.weight.abs().max() <= 1 / 20
    assert layer.weight.std().item() == pytest.approx(1 / 20 / 3**0.5, rel=0.05)


def keyed(rate, *halves):
    layer = Dropout(rate)
    layer.key = torch.tensor(halves, dtype=torch.int32)
    return layer


def test_dropout_keeps_the_expectation_and_depends_on_its_key_alone():
    before = torch.get_rng_state()
    out = keyed(0.7, 1, 2)(torch.ones(400, 500))
    assert out.mean().item() == pytest.approx(1, abs=0.02)
    assert sorted(set(out.unique().tolist())) == pytest.approx([0, 1 / 0.3])
    assert torch.equal(before, torch.get_rng_state())
    x = torch.ones(30, 40)
    assert torch.equal(keyed(0.5, 1, 2)(x), keyed(0.5, 1, 2)(x))
    assert not torch.equal(keyed(0.5, 1, 2)(x), keyed(0.5, 1, 3)(x))
    assert keyed(0.5, 1, 1).eval()(x) is x
    assert keyed(0.0, 1, 1)(x) is x


def test_sparse_and_dense_input_lose_identical_elements():
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(20, 50, generator=generator) * (torch.rand(20, 50, generator=generator) < 0.3)
    nonzero = dense.nonzero()
    offsets = torch.cat([torch.zeros(1).long(), torch.bincount(nonzero[:, 0], minlength=20).cumsum(0)])
    rows = SparseRows(nonzero[:, 1], dense[nonzero[:, 0], nonzero[:, 1]], offsets, 50)
    layer = keyed(0.7, 3, 4)
    out = layer(rows)
    assert len(out.columns) < len(rows.columns)
    assert torch.equal(out.to_dense(), layer(dense))


def test_a_key_is_zero_until_set_and_is_not_saved():
    module = nn.Sequential(StepKey())
    assert (module[0].key.tolist(), module[0].key.dtype) == ([0, 0], torch.int32)
    assert not module.state_dict()
    assert [name for name, _ in module.named_buffers()] == ["0.key"]


def test_colours_are_normalised_as_imagenets():
    white = Normalise()(torch.ones(1, 3, 1, 1)).flatten()
    torch.testing.assert_close(white, torch.tensor([0.515 / 0.229, 0.544 / 0.224, 0.594 / 0.225]))


def network():
    return nn.Sequential(BagLinear(6, 5), nn.ReLU(), Dropout(0.5), nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)))


def test_a_copy_equals_a_newly_built_module_and_shares_nothing():
    module = network()
    with torch.no_grad():
        for value in module.parameters():
            value.fill_(7)
    torch.manual_seed(3)
    copied = fresh_copy(module)
    torch.manual_seed(3)
    new = network().state_dict()
    assert copied.state_dict().keys() == new.keys()
    for name, value in new.items():
        assert torch.equal(copied.state_dict()[name], value), name
    assert all(bool((value == 7).all()) for value in module.parameters())
    kept, made = ({value.data_ptr() for value in part.state_dict().values()} for part in (module, copied))
    assert not kept & made


class _Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))


@pytest.mark.parametrize(
    ("module", "what"),
    [(_Scale(), "module _Scale holds"), (nn.Sequential(nn.ReLU(), _Scale()), "module _Scale at '1' holds")],
)
def test_a_module_without_reset_parameters_is_named(module, what):
    with pytest.raises(PluginError, match=f"{what} parameters but has no reset_parameters"):
        fresh_copy(module)
