"""The contract of backbones passes an honest one and catches each sin."""

from __future__ import annotations

import math
import random

import torch
from torch import nn

from msda_bench.api import Backbone, BagLinear, Dropout, Network, PluginError, component
from msda_bench.functional import SparseRows
from msda_bench.testing import BackboneContract


@component
class OneLayer(Backbone):
    """One hidden layer with dropout, for vectors and bags of words."""

    name = "one_layer"

    def build(self, task, input):
        if len(input.shape) > 1:
            raise PluginError("backbone one_layer needs vectors")
        first = (BagLinear if input.sparse else nn.Linear)(input.shape[0], 4)
        return Network(nn.Sequential(Dropout(0.5), first, nn.Tanh()), nn.Linear(4, task.outputs), 4)


class TestOneLayer(BackboneContract):
    component = OneLayer()


@component
class Spoiled(Backbone):
    """Right but for what a subclass spoils; takes dense input of any shape."""

    name = "spoiled"

    def build(self, task, input):
        if input.sparse:
            raise PluginError("backbone spoiled needs dense input")
        layers = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input.shape), 4), nn.Tanh(), *self.more())
        return Network(layers, nn.Linear(4, task.outputs), 4)

    def more(self):
        return []


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@component
class Picky(Spoiled):
    """Accepts nothing."""

    def build(self, task, input):
        raise PluginError("never")


@component
class DenseOnly(Backbone):
    """Forgets that input may be sparse."""

    name = "dense_only"

    def build(self, task, input):
        return Network(nn.Linear(math.prod(input.shape), 4), nn.Linear(4, task.outputs), 4)


@component
class VectorsOnly(Spoiled):
    """Forgets that input may have more than one axis."""

    def build(self, task, input):
        (_,) = input.shape
        return super().build(task, input)


@component
class WrongWidth(Spoiled):
    """States another width than it gives."""

    def build(self, task, input):
        return super().build(task, input)._replace(feature_dim=5)


@component
class OneOutput(Spoiled):
    """One output whatever the classes."""

    def build(self, task, input):
        return super().build(task, input)._replace(predictor=nn.Linear(4, 1))


@component
class IdleLayer(Spoiled):
    """Owns a layer that it does not use."""

    def more(self):
        module = Function(lambda x: x)
        module.idle = nn.Linear(2, 2)
        return [module]


@component
class Unseeded(Spoiled):
    """Draws its weights from a generator that nobody seeds."""

    def build(self, task, input):
        network = super().build(task, input)
        nn.init.normal_(network.predictor.weight, generator=torch.Generator().manual_seed(torch.seed()))
        return network


@component
class Constant(Spoiled):
    """The same weights for every seed."""

    def build(self, task, input):
        network = super().build(task, input)
        nn.init.constant_(network.predictor.weight, 0.5)
        nn.init.zeros_(network.predictor.bias)
        return network


@component
class TorchDropout(Spoiled):
    """torch's own dropout, which draws from the global generator."""

    def more(self):
        return [nn.Dropout(0.5)]


@component
class NoisyEvaluation(Spoiled):
    """Noise in evaluation too."""

    def more(self):
        return [Function(lambda x: x + torch.rand_like(x))]


@component
class BatchStatistics(Spoiled):
    """Centres by the batch, in evaluation too."""

    def more(self):
        return [Function(lambda x: x - x.mean(0))]


class InTraining(Function):
    """The function in training, and nothing in evaluation."""

    def forward(self, x):
        return self.function(x) if self.training else x


@component
class DoubleScale(Spoiled):
    """One parameter in float64."""

    def more(self):
        scale = nn.Parameter(torch.ones(4, dtype=torch.float64))
        module = Function(lambda x: x * module.scale.float())
        module.scale = scale
        return [module]


@component
class DrawsAndForgets(Spoiled):
    """Draws from Python's global generator, for nothing."""

    def more(self):
        return [Function(lambda x: x if random.random() < 2 else -x)]


@component
class InPlaceInTraining(Spoiled):
    """Scales its input in place, where it trains alone."""

    def build(self, task, input):
        def scale(x):
            return x * 2 if torch._C._functorch.is_batchedtensor(x) else x.mul_(2)

        network = super().build(task, input)
        return network._replace(features=nn.Sequential(InTraining(scale), network.features))


@component
class BranchingInTraining(Spoiled):
    """Branches on a tensor's value in training."""

    def more(self):
        return [InTraining(lambda x: x if x.sum() > 0 else -x)]


def test_sparse_input_is_tried():
    contract = TestOneLayer()
    batches = [contract.batch(case) for case in contract.cases()]
    assert {type(batch) for batch in batches} == {torch.Tensor, SparseRows}


SINS = [
    (Picky, "shapes", "accepts none of the inputs"),
    (WrongWidth, "shapes", r"the features .* has shape \(5, 4\); the contract asks for \(5, 5\)"),
    (OneOutput, "shapes", r"the outputs .* has shape \(5, 1\); the contract asks for \(5, 3\)"),
    (DoubleScale, "parameters_are_float32_on_the_cpu", "is torch.float64 on cpu; the contract asks for float32"),
    (IdleLayer, "gradient_reaches_every_parameter", "no gradient reaches the parameter"),
    (Unseeded, "same_seed_same_weights", "built twice with one seed, weight differs"),
    (Constant, "same_seed_same_weights", "seeds 0 and 1 give the same predictor"),
    (
        TorchDropout,
        "leaves_the_process_alone",
        "torch's global random generator.*use msda_bench.api.Dropout",
    ),
    (TorchDropout, "stacked_runs_equal_each_alone", "use msda_bench.api.Dropout in place of torch.nn.Dropout"),
    (DenseOnly, "shapes", r"sparse input \(12,\), but fails on it: .*TypeError: .*asks build to raise PluginError"),
    (VectorsOnly, "shapes", r"cannot be built for .* input \(3, 16, 16\): .*py:.*asks build to raise PluginError"),
    (InPlaceInTraining, "input_is_not_changed", "changed its input, the batch, in place"),
    (NoisyEvaluation, "evaluation_is_deterministic", "the same input gives other features"),
    (BatchStatistics, "evaluation_is_deterministic", "depend on the rest of the batch"),
    (BranchingInTraining, "stacked_runs_equal_each_alone", "cannot be stacked"),
    (DrawsAndForgets, "leaves_the_process_alone", "Python's global random generator"),
]
"""What spoils a component, the clause that it breaks and how the kit says so."""
