"""Normalisation domain by domain, and weight normalisation, against torch's own layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from msda_bench.api import EachDomain, WeightNormLinear, fresh_copy, norm_layers


def test_each_domain_is_normalised_as_in_a_pass_of_its_own() -> None:
    x = torch.randn(4 + 4 + 2, 3, generator=torch.Generator().manual_seed(0))
    layer, plain = EachDomain(nn.BatchNorm1d(3)), nn.BatchNorm1d(3)
    layer.labelled, layer.unlabelled = (4, 4), 2
    for rows in ((4, 4, 2), (4, 4), (2,), (4,)):  # all, the labelled ones, the target alone, one source alone
        part = x[: sum(rows)]
        assert torch.equal(layer(part), torch.cat([plain(domain) for domain in part.split(rows)]))
    for name, value in plain.state_dict().items():
        assert torch.equal(value, layer.norm.state_dict()[name]), name
    torch.testing.assert_close(layer.eval()(x), plain.eval()(x))


def test_weight_norm_is_torchs_and_a_copy_draws_direction_and_length() -> None:
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
def test_a_layer_of_each_kind_gives_mean_0_and_variance_1_where_it_says(images: bool) -> None:
    x = torch.randn((6, 4, 3, 3) if images else (6, 4)) * 5 + 2
    assert norm_layers("none", 4, images=images) == []
    for norm, over in (("batch", 0), ("domain", 0), ("layer", 1)):
        (layer,) = norm_layers(norm, 4, images=images)  # type: ignore[arg-type]
        rows = layer(x).flatten(2).mean(-1) if images and norm == "layer" else layer(x).transpose(0, 1).flatten(1).T
        torch.testing.assert_close(rows.mean(over), torch.zeros_like(rows.mean(over)), atol=1e-5, rtol=0)
