"""Sins against the contract of backbones."""

from __future__ import annotations

import itertools
import math
import random

import torch
from torch import nn

from msda_bench.api import Backbone, BagLinear, Dropout, Embedding, Network, PluginError, component
from msda_bench.functional import SparseRows
from msda_bench.testing import contract
from tests.testing.sins import after, sins

COUNTER = itertools.count()


@component
class OneLayer(Backbone):
    """One hidden layer with dropout, for vectors and bags of words."""

    name = "one_layer"

    def build(self, task, input, files=None):
        if len(input.shape) > 1:
            raise PluginError("backbone one_layer needs vectors")
        first = (BagLinear if input.sparse else nn.Linear)(input.shape[0], 4)
        return Network(nn.Sequential(Dropout(0.5), first, nn.Tanh()), nn.Linear(4, task.outputs), 4)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class InTraining(Function):
    """Applies a function in training, and the identity in evaluation."""

    def forward(self, x):
        return self.function(x) if self.training else x


class Spoiled(Backbone):
    """Correct except for what a sin changes; accepts dense input of any shape."""

    name = "spoiled"

    def build(self, task, input, files=None):
        if input.sparse:
            raise PluginError("backbone spoiled needs dense input")
        layers = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input.shape), 4), nn.Tanh(), *self.more())
        return self.spoil(Network(layers, nn.Linear(4, task.outputs), 4), input)

    def more(self):
        return []

    def spoil(self, network, input):
        return network


@component
class Embedded(Spoiled):
    """Means of thirds of the columns as frozen features."""

    name = "thirds"
    width = 3

    def embedding(self, input):
        if input.shape != (12,) or input.sparse:
            raise PluginError("backbone spoiled embeds vectors of 12 numbers")
        return Embedding(self.name_it(), self.width, lambda files: nn.Sequential(Function(self.embed), *self.more()))

    def name_it(self):
        return "thirds"

    def embed(self, x):
        return self.wrong(x.unflatten(1, (3, 4)).mean(2))

    def wrong(self, features):
        return features


def more(function, module=Function):
    return {"more": lambda self: [module(function)]}


def spoil(function):
    return {"spoil": lambda _, *given: function(*given)}


def wrong(function):
    return {"wrong": lambda self, features: function(features)}


def never(self, task, input, files=None):
    raise PluginError("never")


def dense_only(self, task, input, files=None):
    return Network(nn.Linear(math.prod(input.shape), 4), nn.Linear(4, task.outputs), 4)


def idle():
    module = Function(lambda x: x)
    module.idle = nn.Linear(2, 2)
    return [module]


def unseeded(network, _):
    generator = torch.Generator().manual_seed(torch.seed())
    return after(nn.init.normal_(network.predictor.weight, generator=generator), network)


def constant(network, _):
    nn.init.constant_(network.predictor.weight, 0.5)
    return after(nn.init.zeros_(network.predictor.bias), network)


def in_place(network, _):
    def scale(x):
        return x * 2 if torch._C._functorch.is_batchedtensor(x) else x.mul_(2)

    return network._replace(features=nn.Sequential(InTraining(scale), network.features))


BROKEN = {
    "shapes": {
        "accepts none of the inputs": {"build": never},
        r"sparse input \(12,\), but fails on it: .*TypeError: .*asks build to raise PluginError": {"build": dense_only},
        r"cannot be built for .* input \(3, 16, 16\): .*py:.*asks build to raise PluginError": spoil(
            lambda network, seen: after(seen.shape.index(12), network)
        ),
        r"features .* is \(5, 4\); the contract asks for \(5, 5\)": spoil(
            lambda network, _: network._replace(feature_dim=5)
        ),
        r"outputs .* is \(5, 1\); the contract asks for \(5, 3\)": spoil(
            lambda network, _: network._replace(predictor=nn.Linear(4, 1))
        ),
    },
    "gradient_reaches_every_parameter": {"no gradient reaches parameter": {"more": lambda self: idle()}},
    "same_seed_same_weights": {
        "built twice with one seed, predictor.weight differs": spoil(unseeded),
        "seeds 0 and 1 give the same predictor": spoil(constant),
    },
    "evaluation_is_deterministic": {
        "in evaluation mode a second call changes the features": more(lambda x: x + torch.rand_like(x)),
        "depend on the rest of the batch": more(lambda x: x - x.mean(0)),
    },
    "leaves_the_process_alone": {
        "torch's global random generator.*use msda_bench.api.Dropout": {"more": lambda self: [nn.Dropout(0.5)]},
        "Python's global random generator": more(lambda x: after(random.random(), x)),
    },
    "stacked_runs_equal_each_alone": {
        "use msda_bench.api.Dropout in place of torch.nn.Dropout": {"more": lambda self: [nn.Dropout(0.5)]},
        "cannot be stacked": more(lambda x: x if x.sum() > 0 else -x, InTraining),
    },
    "input_is_not_changed": {"changed its input, the batch, in place": spoil(in_place)},
}
OF_EMBEDDINGS = {
    "embeddings_are_vectors_of_one_example_each": {
        r"of the embedding is \(5, 3\); the contract asks for \(5, 4\)": {"width": 4},
        "depends on the rest of the batch": wrong(lambda features: features - features.mean()),
        "a second call changes the embedding": wrong(lambda features: features + next(COUNTER)),
    },
    "embeddings_are_named": {
        "the identity is b'thirds', not text": {"name_it": lambda self: b"thirds"},
        "the same parameters give another identity": {"name_it": lambda self: f"at {id(self)}"},
        "building the embedding again changes it": {"more": lambda self: [nn.Linear(3, 3)]},
    },
}
SINS = sins(Spoiled, BROKEN) + sins(Embedded, OF_EMBEDDINGS)


def test_contract_tries_sparse_input():
    kit = contract(OneLayer())
    batches = [kit.batch(case) for case in kit.cases()]
    assert {type(batch) for batch in batches} == {torch.Tensor, SparseRows}
