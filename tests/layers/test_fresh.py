"""Copies with initial weights of their own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from msda_bench.api import PluginError
from msda_bench.layers import BagLinear, Dropout, fresh_copy


def network() -> nn.Sequential:
    return nn.Sequential(BagLinear(6, 5), nn.ReLU(), Dropout(0.5), nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)))


def test_a_copy_equals_a_newly_built_module() -> None:
    module = network()
    with torch.no_grad():
        for value in module.parameters():
            value.fill_(7)
    torch.manual_seed(3)
    copied = fresh_copy(module)
    torch.manual_seed(3)
    new = network()
    assert copied.state_dict().keys() == new.state_dict().keys()
    for name, value in new.state_dict().items():
        assert torch.equal(copied.state_dict()[name], value), name
    assert all(bool((value == 7).all()) for value in module.parameters())


def test_a_copy_shares_nothing() -> None:
    module = network()
    copied = fresh_copy(module)
    kept, made = ({value.data_ptr() for value in part.state_dict().values()} for part in (module, copied))
    assert not kept & made


class _Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))


@pytest.mark.parametrize(
    ("module", "what"),
    [(_Scale(), "module _Scale holds"), (nn.Sequential(nn.ReLU(), _Scale()), "module _Scale at '1' holds")],
)
def test_a_module_without_reset_parameters_is_named(module: nn.Module, what: str) -> None:
    with pytest.raises(PluginError, match=f"{what} parameters but has no reset_parameters"):
        fresh_copy(module)
