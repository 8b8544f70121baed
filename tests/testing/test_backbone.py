"""The contract of backbones accepts a correct one and catches each sin."""

from __future__ import annotations

import math
import random

import torch
from torch import nn

from msda_bench.api import Backbone, BagLinear, Dropout, Embedding, Network, PluginError, component
from msda_bench.functional import SparseRows
from msda_bench.testing import BackboneContract
from tests.testing.sins import sin


@component
class OneLayer(Backbone):
    """One hidden layer with dropout, for vectors and bags of words."""

    name = "one_layer"

    def build(self, task, input, files=None):
        if len(input.shape) > 1:
            raise PluginError("backbone one_layer needs vectors")
        first = (BagLinear if input.sparse else nn.Linear)(input.shape[0], 4)
        return Network(nn.Sequential(Dropout(0.5), first, nn.Tanh()), nn.Linear(4, task.outputs), 4)


class TestOneLayer(BackboneContract):
    component = OneLayer()


@component
class Spoiled(Backbone):
    """Correct except for what a subclass breaks; accepts dense input of any shape."""

    name = "spoiled"

    def build(self, task, input, files=None):
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


@sin("shapes", "accepts none of the inputs")
class Picky(Spoiled):
    def build(self, task, input, files=None):
        raise PluginError("never")


@sin("shapes", r"sparse input \(12,\), but fails on it: .*TypeError: .*asks build to raise PluginError")
class DenseOnly(Backbone):
    name = "dense_only"

    def build(self, task, input, files=None):
        return Network(nn.Linear(math.prod(input.shape), 4), nn.Linear(4, task.outputs), 4)


@sin("shapes", r"cannot be built for .* input \(3, 16, 16\): .*py:.*asks build to raise PluginError")
class VectorsOnly(Spoiled):
    def build(self, task, input, files=None):
        (_,) = input.shape
        return super().build(task, input, files)


@sin("shapes", r"the shape of the features .* is \(5, 4\); the contract asks for \(5, 5\)")
class WrongWidth(Spoiled):
    def build(self, task, input, files=None):
        return super().build(task, input, files)._replace(feature_dim=5)


@sin("shapes", r"the shape of the outputs .* is \(5, 1\); the contract asks for \(5, 3\)")
class OneOutput(Spoiled):
    def build(self, task, input, files=None):
        return super().build(task, input, files)._replace(predictor=nn.Linear(4, 1))


@sin("gradient_reaches_every_parameter", "no gradient reaches parameter")
class IdleLayer(Spoiled):
    def more(self):
        module = Function(lambda x: x)
        module.idle = nn.Linear(2, 2)
        return [module]


@sin("same_seed_same_weights", "built twice with one seed, predictor.weight differs")
class Unseeded(Spoiled):
    def build(self, task, input, files=None):
        network = super().build(task, input, files)
        nn.init.normal_(network.predictor.weight, generator=torch.Generator().manual_seed(torch.seed()))
        return network


@sin("same_seed_same_weights", "seeds 0 and 1 give the same predictor")
class Constant(Spoiled):
    def build(self, task, input, files=None):
        network = super().build(task, input, files)
        nn.init.constant_(network.predictor.weight, 0.5)
        nn.init.zeros_(network.predictor.bias)
        return network


@sin("leaves_the_process_alone", "torch's global random generator.*use msda_bench.api.Dropout")
@sin("stacked_runs_equal_each_alone", "use msda_bench.api.Dropout in place of torch.nn.Dropout")
class TorchDropout(Spoiled):
    def more(self):
        return [nn.Dropout(0.5)]


@sin("evaluation_is_deterministic", "in evaluation mode a second call changes the features")
class NoisyEvaluation(Spoiled):
    def more(self):
        return [Function(lambda x: x + torch.rand_like(x))]


@sin("evaluation_is_deterministic", "depend on the rest of the batch")
class BatchStatistics(Spoiled):
    def more(self):
        return [Function(lambda x: x - x.mean(0))]


class InTraining(Function):
    """Applies a function in training, and the identity in evaluation."""

    def forward(self, x):
        return self.function(x) if self.training else x


@sin("parameters_are_float32_on_the_cpu", "is torch.float64 on cpu; the contract asks for float32")
class DoubleScale(Spoiled):
    def more(self):
        scale = nn.Parameter(torch.ones(4, dtype=torch.float64))
        module = Function(lambda x: x * module.scale.float())
        module.scale = scale
        return [module]


@sin("leaves_the_process_alone", "Python's global random generator")
class DrawsAndForgets(Spoiled):
    def more(self):
        return [Function(lambda x: x if random.random() < 2 else -x)]


@sin("input_is_not_changed", "changed its input, the batch, in place")
class InPlaceInTraining(Spoiled):
    def build(self, task, input, files=None):
        def scale(x):
            return x * 2 if torch._C._functorch.is_batchedtensor(x) else x.mul_(2)

        network = super().build(task, input, files)
        return network._replace(features=nn.Sequential(InTraining(scale), network.features))


@sin("stacked_runs_equal_each_alone", "cannot be stacked")
class BranchingInTraining(Spoiled):
    def more(self):
        return [InTraining(lambda x: x if x.sum() > 0 else -x)]


class Embedded(Spoiled):
    """Means of thirds of the columns as frozen features; correct except for what a subclass breaks."""

    identity, width = "thirds", 3

    def embedding(self, input):
        if input.shape != (12,) or input.sparse:
            raise PluginError("backbone spoiled embeds vectors of 12 numbers")
        return Embedding(self.name_it(), self.width, lambda files: nn.Sequential(Function(self.embed), *self.more()))

    def name_it(self):
        return "thirds"

    def embed(self, x):
        return x.unflatten(1, (3, 4)).mean(2)


@component
class Thirds(Embedded):
    """A subclass without changes."""

    name = "thirds"


class TestThirds(BackboneContract):
    component = Thirds()


@sin(
    "embeddings_are_vectors_of_one_example_each", r"shape of the embedding is \(5, 3\); the contract asks for \(5, 4\)"
)
class WrongEmbeddingWidth(Embedded):
    width = 4


@sin("embeddings_are_vectors_of_one_example_each", "the embedding is torch.float64; the contract asks for float32")
class DoubleEmbedding(Embedded):
    def embed(self, x):
        return super().embed(x).double()


@sin("embeddings_are_vectors_of_one_example_each", "depends on the rest of the batch")
class NormalisedByBatch(Embedded):
    def embed(self, x):
        return super().embed(x) - x.mean()


@sin("embeddings_are_vectors_of_one_example_each", "a second call changes the embedding")
class CountingEmbedding(Embedded):
    def embed(self, x):
        self.calls_so_far.append(1)
        return super().embed(x) + len(self.calls_so_far)

    calls_so_far = []  # noqa: RUF012 - a sinner's


@sin("embeddings_are_named", "the identity is b'thirds', not text")
class NamedInBytes(Embedded):
    def name_it(self):
        return b"thirds"


@sin("embeddings_are_named", "the same parameters give another identity")
class NamedByPlace(Embedded):
    def name_it(self):
        return f"at {id(self)}"


@sin("embeddings_are_named", "building the embedding again changes it")
class UntrainedEmbedding(Embedded):
    def more(self):
        return [nn.Linear(3, 3)]


def test_contract_tries_sparse_input():
    contract = TestOneLayer()
    batches = [contract.batch(case) for case in contract.cases()]
    assert {type(batch) for batch in batches} == {torch.Tensor, SparseRows}
