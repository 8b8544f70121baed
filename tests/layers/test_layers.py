"""Layers: bags of words, dropout of a run's own stream, normalisation, and copies with initial weights of their own."""

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from msda_bench.api import EachDomain, PluginError, WeightNormLinear, fresh_copy, norm_layers
from msda_bench.layers import BagLinear, Dropout, Normalise, StepKey
from msda_bench.testing import toy


def test_sparse_rows_give_the_product_and_gradient_of_dense_rows():
    torch.manual_seed(0)
    layer = BagLinear(6, 4)
    rows = toy.bag(5, 6)
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
    rows, layer = toy.bag(20, 50), keyed(0.7, 3, 4)
    out = layer(rows)
    assert len(out.columns) < len(rows.columns)
    assert torch.equal(out.to_dense(), layer(rows.to_dense()))


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
    torch.testing.assert_close(copied.state_dict(), new, rtol=0, atol=0)
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


def test_each_domain_is_normalised_as_in_a_pass_of_its_own():
    torch.manual_seed(0)
    x = torch.randn(4 + 4 + 2, 3)
    layer, plain = EachDomain(nn.BatchNorm1d(3)), nn.BatchNorm1d(3)
    layer.labelled, layer.unlabelled = (4, 4), 2
    for rows in ((4, 4, 2), (4, 4), (2,), (4,)):  # all, the labelled ones, the target alone, one source alone
        part = x[: sum(rows)]
        assert torch.equal(layer(part), torch.cat([plain(domain) for domain in part.split(rows)]))
    torch.testing.assert_close(layer.norm.state_dict(), plain.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(layer.eval()(x), plain.eval()(x))


def test_weight_norm_is_torchs_and_a_copy_draws_direction_and_length():
    torch.manual_seed(0)
    layer = WeightNormLinear(5, 3)
    reference = nn.Linear(5, 3)
    reference.load_state_dict({"weight": layer.weight, "bias": layer.bias})
    weight_norm(reference)
    x = torch.randn(7, 5)
    torch.testing.assert_close(layer(x), reference(x))
    with torch.no_grad():
        layer.length.mul_(2)
        layer.weight.mul_(3)  # its length has no effect
        reference.parametrizations.weight.original0.mul_(2)
    torch.testing.assert_close(layer(x), reference(x))
    copied = fresh_copy(layer)
    assert not torch.isclose(copied.weight, layer.weight).any()
    torch.testing.assert_close(copied.length, copied.weight.norm(dim=1, keepdim=True))


@pytest.mark.parametrize("images", [False, True])
def test_a_layer_of_each_kind_gives_mean_0_and_variance_1_where_it_says(images):
    x = torch.randn((6, 4, 3, 3) if images else (6, 4)) * 5 + 2
    assert norm_layers("none", 4, images=images) == []
    for norm, over in (("batch", 0), ("domain", 0), ("layer", 1)):
        (layer,) = norm_layers(norm, 4, images=images)  # type: ignore[arg-type]
        rows = layer(x).flatten(2).mean(-1) if images and norm == "layer" else layer(x).transpose(0, 1).flatten(1).T
        torch.testing.assert_close(rows.mean(over), torch.zeros_like(rows.mean(over)), atol=1e-5, rtol=0)
