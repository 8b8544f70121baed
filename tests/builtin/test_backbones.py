"""The networks have the paper's structure."""

from __future__ import annotations

import pytest
import torch

from msda_bench.api import BagLinear, Dropout, InputSpec, PluginError, Task
from msda_bench_builtin.backbones import ConvNet, Linear, Mlp

TWO = Task("classification", 2)
TEN = Task("classification", 10)


def parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_mlp_is_the_papers_amazon_network() -> None:
    network = Mlp().build(TWO, InputSpec((5000,), sparse=True))
    expected = (5000 * 1000 + 1000) + (1000 * 500 + 500) + (500 * 100 + 100)
    assert parameters(network.features) == expected
    assert parameters(network.predictor) == 100 * 2 + 2
    kinds = [type(layer).__name__ for layer in network.features]
    assert kinds == ["Dropout", "BagLinear", "ReLU"] + ["Dropout", "Linear", "ReLU"] * 2
    assert {layer.rate for layer in network.features if isinstance(layer, Dropout)} == {0.7}
    assert isinstance(network.features[1], BagLinear)


def test_mlp_without_hidden_layers_is_linear() -> None:
    network = Mlp(hidden=()).build(Task("regression"), InputSpec((7,)))
    assert network.feature_dim == 7
    assert network.predictor(network.features(torch.rand(3, 7))).shape == (3, 1)


def test_convnet_is_the_papers_digits_network() -> None:
    network = ConvNet().build(TEN, InputSpec((3, 32, 32)))
    convolutions = (3 * 64 + 64 * 128 + 128 * 256) * 9 + 64 + 128 + 256
    assert network.feature_dim == 2304
    assert parameters(network.features) == convolutions
    assert parameters(network.predictor) == (2304 * 2048 + 2048) + (2048 * 1024 + 1024) + (1024 * 10 + 10)
    sizes = []
    x = torch.rand(2, 3, 32, 32)
    for layer in network.features:
        x = layer(x)
        sizes.append(tuple(x.shape[1:]))
    assert sizes[2::3] == [(64, 15, 15), (128, 7, 7), (256, 3, 3)]
    assert network.predictor(x).shape == (2, 10)


def test_convnet_refuses_small_images_and_other_input() -> None:
    with pytest.raises(PluginError, match="at least 15x15, not"):
        ConvNet().build(TEN, InputSpec((3, 14, 32)))
    ConvNet().build(TEN, InputSpec((3, 15, 15)))
    with pytest.raises(PluginError, match="needs images"):
        ConvNet().build(TEN, InputSpec((5000,), sparse=True))


def test_linear_appends_the_bias_column() -> None:
    network = Linear().build(Task("regression"), InputSpec((1,)))
    assert network.features(torch.tensor([[2.0], [3.0]])).tolist() == [[2, 1], [3, 1]]
    assert parameters(network.predictor) == 2
    plain = Linear(bias_column=False).build(Task("regression"), InputSpec((1,)))
    assert plain.features(torch.tensor([[2.0]])).tolist() == [[2]]
    assert parameters(plain.predictor) == 2
