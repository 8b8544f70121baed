"""Sins against the contracts of data sets and backbones."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import torch
from torch import nn

from msda_bench.api import Backbone, Dataset, DomainData, Embedding, InputSpec, Network, PluginError, Task, component
from tests.testing.sins import Reversed, after, batched, drawing, sins

COUNTER = itertools.count()


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


class SpoiledNetwork(Backbone):
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
class Embedded(SpoiledNetwork):
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
        return x.unflatten(1, (3, 4)).mean(2)


def more(function, module=Function):
    return {"more": lambda self: [module(function)]}


def embeds(change):
    return {"embed": lambda self, x: change(Embedded.embed(self, x))}


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
        return x * 2 if batched(x) else x.mul_(2)

    return network._replace(features=nn.Sequential(InTraining(scale), network.features))


OF_BACKBONES = {
    "shapes": {
        "accepts none of the inputs": {"build": never},
        r"sparse input \(12,\), but fails on it: .*TypeError: .*asks build to raise PluginError": {"build": dense_only},
        r"cannot be built for .* input \(3, 16, 16\): .*py:.*asks build to raise PluginError": (
            lambda network, seen: after(seen.shape.index(12), network)
        ),
        r"features .* is \(5, 4\); the contract asks for \(5, 5\)": lambda network, _: network._replace(feature_dim=5),
        r"outputs .* is \(5, 1\); the contract asks for \(5, 3\)": (
            lambda network, _: network._replace(predictor=nn.Linear(4, 1))
        ),
    },
    "gradient_reaches_every_parameter": {"no gradient reaches parameter": {"more": lambda self: idle()}},
    "same_seed_same_weights": {
        "built twice with one seed, predictor.weight differs": unseeded,
        "seeds 0 and 1 give the same predictor": constant,
    },
    "evaluation_is_deterministic": {
        "in evaluation mode a second call changes the features": more(lambda x: x + torch.rand_like(x)),
        "depend on the rest of the batch": more(lambda x: x - x.mean(0)),
    },
    "leaves_the_process_alone": {
        "torch's global random generator.*use msda_bench.api.Dropout": {"more": lambda self: [nn.Dropout(0.5)]},
        "Python's global random generator": more(drawing),
    },
    "stacked_runs_equal_each_alone": {
        "use msda_bench.api.Dropout in place of torch.nn.Dropout": {"more": lambda self: [nn.Dropout(0.5)]},
        "cannot be stacked": more(lambda x: x if x.sum() > 0 else -x, InTraining),
        "cannot be stacked.*setup_context.*asks for msda_bench.functional.reverse_gradient": more(Reversed.apply),
    },
    "input_is_not_changed": {"changed its input, the batch, in place": in_place},
}
OF_EMBEDDINGS = {
    "embeddings_are_vectors_of_one_example_each": {
        r"of the embedding is \(5, 3\); the contract asks for \(5, 4\)": {"width": 4},
        "depends on the rest of the batch": embeds(lambda features: features - features.mean()),
        "a second call changes the embedding": embeds(lambda features: features + next(COUNTER)),
    },
    "embeddings_are_named": {
        "the identity is b'thirds', not text": {"name_it": lambda self: b"thirds"},
        "the same parameters give another identity": {"name_it": lambda self: f"at {id(self)}"},
        "building the embedding again changes it": {"more": lambda self: [nn.Linear(3, 3)]},
    },
}


@component
class Spoiled(Dataset):
    """Shifted copies of one line, correct except for what a sin changes."""

    name = "spoiled"
    domains = ("near", "middle", "far")
    task = Task("regression")
    input = InputSpec((1,))

    def load(self, domain, files):
        x = np.linspace(0, 1, 1200, dtype=np.float32) + self.domains.index(domain)
        return self.spoil(DomainData(x[:, None], 2 * x), len(x))

    def spoil(self, good, n):
        return good


class Pixels(Spoiled):
    """Bytes that are passed to the network unchanged."""

    @property
    def input(self):
        return InputSpec((2, 3), bytes=True)

    def spoil(self, good, n):
        return dataclasses.replace(good, x=np.zeros((n, 2, 3), np.uint8))


def fields(**made):
    """Fields of the data, made from the good data and their number."""
    return lambda good, n: dataclasses.replace(good, **{name: make(good, n) for name, make in made.items()})


def secret(self, domain, files):
    good = Spoiled.load(self, domain, files)
    return good if domain == "near" else dataclasses.replace(good, groups=np.arange(len(good.y)))


OF_DATASETS = {
    "domains_are_named": {
        "has 1 domains; the contract asks for at least 2": {"domains": ("only",)},
        "names a domain twice": {"domains": ("near", "near")},
        r"the targets \['nowhere'\] are not among its": {"sources": lambda self: {"nowhere": self.domains}},
        r"\['near'\] cannot be sources of 'near'": {"sources": lambda self: {"near": self.domains}},
        "has no source; the contract asks for at least one": {"sources": lambda self: {"near": ()}},
    },
    "fingerprint_is_stable": {
        "equal parameters differ in fingerprint": {"fingerprint": lambda self: f"{next(COUNTER):064x}"},
        "the contract asks for 64 hexadecimal digits": {"fingerprint": lambda self: "abc"},
    },
    "examples_are_well_formed": {
        r"has 1200 examples, but labels of shape \(1199,\)": fields(y=lambda good, _: good.y[1:]),
        "'middle' has identity 'mine'; the contract asks for text unique": fields(identity=lambda *_: "mine"),
        "have dtype float64; the contract asks for float32": fields(x=lambda good, _: good.x.astype(np.float64)),
        "examples of 'near' are not all finite": fields(
            x=lambda good, _: np.where(good.x == good.x[0], np.float32("nan"), good.x)
        ),
        "have dtype int64; the contract asks for float32": fields(y=lambda good, _: good.y.astype(np.int64)),
        r"`sizes` declares 7 examples of 'far', which has 1200": {"sizes": lambda self, files=None: {"far": 7}},
    },
    "every_target_can_be_split": {
        "has 500 examples to train on, fewer than train = 1000": fields(
            x=lambda good, _: good.x[:500], y=lambda good, _: good.y[:500]
        ),
        "some of its groups are in several domains, but its `shared_groups` is False": {
            # The first target's run has only one of the domains that share groups.
            "sources": lambda self: {"near": ("middle",), "middle": ("far",), "far": ("middle",)},
            "load": secret,
        },
    },
    "loading_again_gives_the_same": {
        "changes its groups": fields(groups=lambda _, n: np.arange(n) + 1200 * next(COUNTER)),
        "changes its identity": fields(identity=lambda *_: f"{next(COUNTER)}"),
        "changes its examples": fields(x=lambda good, _: np.roll(good.x, next(COUNTER))),
        "changes its labels": fields(y=lambda good, _: np.roll(good.y, next(COUNTER))),
        "changes its test marks": fields(test=lambda _, n: np.roll(np.arange(n) >= 1100, next(COUNTER))),
    },
    "fit_gives_the_stated_input": {
        r"to shape \(7, 2\); input says \(7, 1\)": fields(x=lambda good, _: np.repeat(good.x, 2, axis=1)),
        "maps 'middle' to a ndarray; input.sparse is True": {"input": InputSpec((1,), sparse=True)},
    },
    "leaves_the_process_alone": {
        r"Python's global random generator((?!key of).)*numpy\.random\.Philox": drawing,
    },
}
OF_PIXELS = {
    "augmented_batches_are_of_the_stated_shape": {
        r"gives torch.float32 of \(4, 2, 2\); input says \(2, 3\)": {"augment": lambda self, x, key: x[..., :2]},
        "augment changed its batch in place": {"augment": lambda self, x, key: x.add_(1)},
        "asks `augmentation` for the parameters": {"augment": lambda self, x, key: x if key is None else 1 - x},
    },
    "fit_gives_the_stated_input": {
        "bytes must stay as they are, so it needs no fit": {"fit": lambda self, train: lambda _, x: x + 1},
    },
}
SINS = [
    *sins(SpoiledNetwork, OF_BACKBONES),
    *sins(Embedded, OF_EMBEDDINGS),
    *sins(Spoiled, OF_DATASETS),
    *sins(Pixels, OF_PIXELS),
]
