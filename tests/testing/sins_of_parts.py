"""Sins against the contracts of aggregators, discrepancies, metrics and validators."""

from __future__ import annotations

import random

import torch
from torch import nn

from msda_bench.api import Aggregate, Aggregator, Discrepancy, Metric, Validator, component
from tests.testing.sins import Split, after, batched, drawing, sins

CHANCE = random.SystemRandom().random


def weighted(weights, risks, state):
    return Aggregate((weights * risks).sum(-1), weights, state)


class Honest(Aggregator):
    name = "spoiled"

    def __call__(self, risks, gaps, mu, state):
        found = weighted(torch.full_like(risks, 1 / len(risks)), risks + mu * gaps, state)
        return self.spoil(found, risks + mu * gaps)

    def spoil(self, found, risks):
        return found


def objective(make):
    return lambda found, risks: found._replace(objective=make(risks))


def weights(make):
    """Reports other weights than those of the objective."""
    return lambda found, risks: found._replace(weights=make(found.weights, len(risks)))


def weigh(make):
    """Weighs the risks in another way."""
    return lambda found, risks: weighted(make(risks.detach()), risks, found.state)


OF_AGGREGATORS = {
    "weights_lie_on_the_simplex": {
        "the sum of the weights of 1 sources is 0.5": weights(lambda w, k: w / (1 + (k == 1))),
        "negative entry in the weights of 2 sources": weights(lambda w, k: w + torch.linspace(-1, 1, k) * (k > 1)),
        "returned 2 values; the contract asks for Aggregate": lambda found, risks: found[:2],
    },
    "order_of_the_sources_does_not_matter": {
        "permuting the sources changes their weights": weigh(lambda risks: torch.arange(float(len(risks))).softmax(0)),
    },
    "objective_is_a_scalar_that_trains": {
        "no gradient flows from the objective": objective(lambda risks: risks.detach().mean()),
        "gradient is zero, so nothing would be trained": objective(lambda risks: (0 * risks).sum()),
    },
    "gradient_is_the_objectives_own": {
        "but the objective's slope is": objective(lambda risks: 2 * risks.mean() - risks.mean().detach()),
    },
    "extreme_values_stay_finite": {
        "infinity in the objective for 1e30 risks and gaps": objective(lambda risks: risks.square().mean()),
        "infinity in the weights for zero risks and gaps": weigh(lambda risks: 1 / risks / (1 / risks).sum()),
    },
    "infinite_source_leaves_the_weights_finite": {
        "infinity in the weights when a source's risk is infinite": weigh(lambda risks: risks.softmax(0)),
    },
    "state_keeps_its_shape": {
        r"the shape of the state after a step is \(8,\)": lambda found, risks: found._replace(state=risks.detach()),
    },
    "stacked_runs_equal_each_alone": {
        "cannot be stacked.*`stackable = False`": objective(lambda r: r.mean() if r[0] > 0 else r.sum()),
        "stacking changes a run's objective": objective(lambda risks: risks.mean() * (2 if batched(risks) else 1)),
    },
    "leaves_the_process_alone": {"Python's global random generator": drawing},
    "is_deterministic": {
        "second call with the same input changes the weights": weights(
            lambda w, k: w if k != 7 else (CHANCE() * torch.arange(7.0)).softmax(0)
        ),
    },
    "input_is_not_changed": {
        "changed its input, the risks, in place": {
            "__call__": lambda self, r, *given: Honest.__call__(self, r.add_(1) if len(r) == 7 else r, *given)
        },
    },
}


class Made(nn.Module):
    """A module with a function and optionally one parameter."""

    def __init__(self, function, parameter=None):
        super().__init__()
        self.function = function
        self.p = None if parameter is None else nn.Parameter(parameter)

    def forward(self, source, target):
        return self.function(source, target) if self.p is None else self.function(source, target, self.p)


def means(source, target):
    return (source.mean(1) - target.mean(0)).square().sum(-1)


class Spoiled(Discrepancy):
    name = "spoiled"
    symmetric = True

    def build(self, feature_dim, k):
        return Made(lambda source, target: self.spoil(means(source, target), source, target))


def drawn(feature_dim):
    return torch.rand(feature_dim, generator=torch.Generator().manual_seed(torch.seed()))


def raised(source):
    with torch.no_grad():
        source += 1


OF_DISCREPANCIES = {
    "gaps_are_one_finite_number_a_source": {
        r"shape of the gaps of 1 sources is \(\); the contract asks for \(1,\)": lambda gaps, s, t: gaps.mean(),
        "NaN or infinity in the gaps of 1 sources: .inf.": lambda gaps, s, t: 1 / gaps,
    },
    "gradient_reaches_the_features": {
        "no gradient reaches the target's features": lambda gaps, s, t: s.mean(1).square().sum(-1),
        "reaches the features of the target is zero, so nothing": lambda gaps, s, t: 0 * gaps,
        "no gradient reaches the sources' features": lambda gaps, s, t: means(s.detach(), t),
    },
    "is_symmetric_if_declared": {
        "exchanging source and target changes the gap": lambda gaps, s, t: means(s, 2 * t),
    },
    "identical_samples_are_near_the_floor": {
        "asks for smaller gaps for identical samples": lambda gaps, s, t: 1 / (1 + gaps),
    },
    "is_deterministic": {
        "a second call with the same input changes the gaps": lambda gaps, s, t: gaps + CHANCE() * (len(s) == 7),
    },
    "leaves_the_process_alone": {"Python's global random generator": drawing},
    "input_is_not_changed": {
        "changed its input, the sources' features, in place": lambda gaps, s, t: (
            after(raised(s), gaps) if len(s) == 7 else gaps
        ),
    },
    "stacked_runs_equal_each_alone": {
        "cannot be stacked": lambda gaps, s, t: gaps * (2 if s.sum() + t.sum() > 0 else 1),
        "cannot be stacked.*vmap support.*asks for msda_bench.functional.reverse_gradient.*`generate_vmap_rule": (
            lambda gaps, s, t: means(Split.apply(s), Split.apply(t))
        ),
    },
    "gradient_reaches_every_parameter": {
        "no gradient reaches parameter p": {
            "build": lambda self, feature_dim, k: Made(lambda s, t, p: means(s, t), torch.zeros(2))
        },
    },
    "same_seed_same_module": {
        "built twice with one seed, p differs": {
            "build": lambda self, feature_dim, k: Made(lambda s, t, p: means(s * p, t * p), drawn(feature_dim))
        },
    },
}


@component
class Right(Metric):
    """The share of correct test examples."""

    name = "right"
    label = "right"
    percent = True

    def value(self, tested):
        true, predicted, count = tested.confusion.unbind(-1)
        return self.spoil(count[true == predicted].sum().item() / tested.n, tested)

    def spoil(self, right, tested):
        return right


OF_METRICS = {
    "says_what_it_is": {"label is ''; the contract asks for text for tables": {"label": ""}},
    "perfect_runs_are_best": {"check higher_is_better": {"higher_is_better": False}},
    "value_is_a_finite_float": {
        "the value is a int; the contract asks for a float": lambda right, tested: 1,
        "in percent returns a share in": lambda right, tested: 100 * right,
    },
    "one_label_alone_is_measured_or_undefined": {
        "infinite; return math.nan": lambda right, tested: (
            right if len(tested.confusion[:, 0].unique()) > 1 else float("inf")
        ),
    },
    "input_is_not_changed": {
        "it changed its input, the confusion": lambda right, tested: after(tested.confusion.zero_(), right),
    },
    "is_deterministic": {
        "call with the same input changes the value": lambda right, tested: right if right == 1 else right * CHANCE(),
    },
    "leaves_the_process_alone": {"it changed Python's global random generator": drawing},
}


@component
class Confidence(Validator):
    """Mean largest output on the target."""

    name = "confidence"
    width: int = 1

    def score(self, view):
        return self.spoil(view.target_outputs.amax(-1).mean().item(), view)

    def spoil(self, score, view):
        return score


def entropy(_, view):
    p = view.target_outputs.softmax(-1)
    return (p * p.log()).sum(-1).mean().item()


OF_VALIDATORS = {
    "is_described": {
        "no docstring; its first line is what `msda-bench plugins` shows": {"__doc__": None},
        "needs a `name` of letters, digits, .* not 'bad name'": {"name": "bad name"},
    },
    "parameters_round_trip": {
        r"made from its own params\(\) .* it differs": {"params": lambda self: {"width": self.width + 1}},
    },
    "pickles": {"pickling changes it": {"__reduce__": lambda self: (Confidence, ())}},
    "score_is_a_finite_float": {
        "for classification is a Tensor; the contract asks for a float": lambda score, _: torch.tensor(score),
        "the score for classification is nan": lambda _, view: 0.0 if len(view.source_outputs) > 1 else float("nan"),
    },
    "is_deterministic": {"a second call with the same input changes the score": lambda *_: CHANCE()},
    "sure_and_unsure_models_are_scored": {
        "model that is certain of every example for classification is nan": {
            "spoil": staticmethod(entropy),
            "tasks": ("classification",),
        },
    },
    "leaves_the_process_alone": {"random generator.*from a fixed key": drawing},
    "input_is_not_changed": {
        "its input, the target_features": lambda score, view: after(view.target_features.add_(1), score),
    },
}
SINS = [
    *sins(Honest, OF_AGGREGATORS),
    *sins(Spoiled, OF_DISCREPANCIES),
    *sins(Right, OF_METRICS),
    *sins(Confidence, OF_VALIDATORS),
]
