"""Sins against the contracts of aggregators, discrepancies, metrics and validators."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn

from msda_bench.api import Aggregate, Aggregator, Discrepancy, Metric, Validator, component
from tests.testing.sins import after, batched, sins


def weighted(weights, risks, state):
    return Aggregate((weights * risks).sum(-1), weights, state)


class Honest(Aggregator):
    name = "spoiled"

    def __call__(self, risks, gaps, mu, state):
        found = weighted(torch.full_like(risks, 1 / len(risks)), risks + mu * gaps, state)
        return self.spoil(found, risks + mu * gaps, len(risks))

    def spoil(self, found, risks, k):
        return found


def objective(make):
    return {"spoil": lambda _, found, risks, k: found._replace(objective=make(risks, k))}


def weights(make):
    """Reports other weights than those of the objective."""
    return {"spoil": lambda _, found, risks, k: found._replace(weights=make(found.weights, k))}


def weigh(make):
    """Weighs the risks in another way."""
    return {"spoil": lambda _, found, risks, k: weighted(make(risks.detach()), risks, found.state)}


OF_AGGREGATORS = {
    "weights_lie_on_the_simplex": {
        "the sum of the weights of 1 sources is 0.5": weights(lambda w, k: w / (1 + (k == 1))),
        "negative entry in the weights of 2 sources": weights(lambda w, k: w + torch.linspace(-1, 1, k) * (k > 1)),
        "returned 2 values; the contract asks for Aggregate": {"spoil": lambda _, found, *given: found[:2]},
    },
    "order_of_the_sources_does_not_matter": {
        "permuting the sources changes their weights": weigh(lambda risks: torch.arange(float(len(risks))).softmax(0)),
    },
    "objective_is_a_scalar_that_trains": {
        "no gradient flows from the objective": objective(lambda risks, k: risks.detach().mean()),
        "gradient is zero, so nothing would be trained": objective(lambda risks, k: (0 * risks).sum()),
    },
    "gradient_is_the_objectives_own": {
        "but the objective's slope is": objective(lambda risks, k: 2 * risks.mean() - risks.mean().detach()),
    },
    "extreme_values_stay_finite": {
        "infinity in the objective for 1e30 risks and gaps": objective(lambda risks, k: risks.square().mean()),
        "infinity in the weights for zero risks and gaps": weigh(lambda risks: 1 / risks / (1 / risks).sum()),
    },
    "infinite_source_leaves_the_weights_finite": {
        "infinity in the weights when a source's risk is infinite": weigh(lambda risks: risks.softmax(0)),
    },
    "state_keeps_its_shape": {
        r"the shape of the state after a step is \(8,\)": {
            "spoil": lambda _, found, risks, k: found._replace(state=torch.cat([found.state, risks.detach()]))
        },
    },
    "stacked_runs_equal_each_alone": {
        "cannot be stacked.*`stackable = False`": objective(lambda r, k: r.mean() if r[0] > 0 else r.sum()),
        "stacking changes a run's objective": objective(lambda risks, k: risks.mean() * (2 if batched(risks) else 1)),
    },
    "leaves_the_process_alone": {
        "Python's global random generator": weights(lambda w, k: after(random.random(), w)),
    },
    "is_deterministic": {
        "second call with the same input changes the weights": weights(
            lambda w, k: w if k != 7 else (random.SystemRandom().random() * torch.arange(7.0)).softmax(0)
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


def drawn(feature_dim):
    return torch.rand(feature_dim, generator=torch.Generator().manual_seed(torch.seed()))


def gaps(function):
    return {"build": lambda self, feature_dim, k: Made(function)}


def raised(source):
    with torch.no_grad():
        source += 1


OF_DISCREPANCIES = {
    "gaps_are_one_finite_number_a_source": {
        r"shape of the gaps of 1 sources is \(\); the contract asks for \(1,\)": gaps(lambda s, t: means(s, t).mean()),
        "NaN or infinity in the gaps of 1 sources: .inf.": gaps(lambda s, t: 1 / means(s, t)),
    },
    "gradient_reaches_the_features": {
        "no gradient reaches the target's features": gaps(lambda s, t: s.mean(1).square().sum(-1)),
        "reaches the features of the target is zero, so nothing": gaps(lambda s, t: 0 * means(s, t)),
        "no gradient reaches the sources' features": gaps(lambda s, t: means(s.detach(), t)),
    },
    "is_symmetric_if_declared": {
        "exchanging source and target changes the gap": gaps(lambda s, t: means(s, 2 * t)),
    },
    "identical_samples_are_near_the_floor": {
        "asks for smaller gaps for identical samples": gaps(lambda s, t: 1 / (1 + means(s, t))),
    },
    "is_deterministic": {
        "a second call with the same input changes the gaps": gaps(
            lambda s, t: means(s, t) + (random.SystemRandom().random() if len(s) == 7 else 0)
        ),
    },
    "leaves_the_process_alone": {
        "Python's global random generator": gaps(lambda s, t: after(random.random(), means(s, t))),
    },
    "input_is_not_changed": {
        "changed its input, the sources' features, in place": gaps(
            lambda s, t: means(s, t) if len(s) != 7 else after(raised(s), means(s, t))
        ),
    },
    "stacked_runs_equal_each_alone": {
        "cannot be stacked": gaps(lambda s, t: means(s, t) * (2 if s.sum() + t.sum() > 0 else 1)),
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


def value(make):
    return {"spoil": lambda _, right, tested: make(right, tested)}


OF_METRICS = {
    "says_what_it_is": {"label is ''; the contract asks for text for tables": {"label": ""}},
    "perfect_runs_are_best": {"check higher_is_better": {"higher_is_better": False}},
    "value_is_a_finite_float": {
        "the value is a int; the contract asks for a float": value(lambda right, tested: 1),
        "in percent returns a share in": value(lambda right, tested: 100 * right),
    },
    "one_label_alone_is_measured_or_undefined": {
        "infinite; return math.nan": value(
            lambda right, tested: right if len(tested.confusion[:, 0].unique()) > 1 else float("inf")
        ),
    },
    "input_is_not_changed": {
        "it changed its input, the confusion": value(lambda right, tested: after(tested.confusion.zero_(), right)),
    },
    "is_deterministic": {
        "a second call with the same input changes the value": value(
            lambda right, tested: right if right == 1 else right * random.SystemRandom().random()
        ),
    },
    "leaves_the_process_alone": {
        "it changed Python's global random generator": value(lambda right, tested: after(random.random(), right)),
    },
}


@component
class Confidence(Validator):
    """Mean largest output on the target."""

    name = "confidence"

    def score(self, view):
        return self.spoil(view.target_outputs.amax(-1).mean().item(), view)

    def spoil(self, score, view):
        return score


@component
class Forgetful(Confidence):
    """Changes its parameter."""

    width: int = 1

    def params(self) -> dict[str, Any]:
        return {"width": self.width + 1}


@component
class Unpicklable(Confidence):
    """Changes a parameter when pickled."""

    width: int = 1

    def __reduce__(self):
        return Unpicklable._other, ()

    @staticmethod
    def _other():
        return Unpicklable(width=2)


def score(make):
    return {"spoil": lambda _, score, view: make(score, view)}


def entropy(_, view):
    p = view.target_outputs.softmax(-1)
    return (p * p.log()).sum(-1).mean().item()


OF_VALIDATORS = {
    "is_described": {
        "no docstring; its first line is what `msda-bench plugins` shows": {"__doc__": None},
        "needs a `name` of letters, digits, .* not 'bad name'": {"name": "bad name"},
        "needs a whole `version` of at least 1, not '1'": {"version": "1"},
        "needs a whole `version` of at least 1, not 0": {"version": 0},
    },
    "score_is_a_finite_float": {
        "the score for classification is a Tensor; the contract asks for a float": score(
            lambda score, _: torch.tensor(score)
        ),
        "the score for classification is nan": score(
            lambda _, view: 0.0 if len(view.source_outputs) > 1 else float("nan")
        ),
    },
    "is_deterministic": {
        "a second call with the same input changes the score": score(lambda *_: random.SystemRandom().random()),
    },
    "sure_and_unsure_models_are_scored": {
        "model that is certain of every example for classification is nan": {
            **score(entropy),
            "tasks": ("classification",),
        },
    },
    "leaves_the_process_alone": {
        "random generator.*from a fixed key": score(lambda score, _: after(random.random(), score)),
    },
    "input_is_not_changed": {
        "its input, the target_features": score(lambda score, view: after(view.target_features.add_(1), score)),
    },
}
SINS = [
    *sins(Honest, OF_AGGREGATORS),
    *sins(Spoiled, OF_DISCREPANCIES),
    *sins(Right, OF_METRICS),
    *sins(Confidence, OF_VALIDATORS),
    *sins(Forgetful, {"parameters_round_trip": {r"made from its own params\(\) .* it differs": {}}}),
    *sins(Unpicklable, {"pickles": {"pickling changes it": {}}}),
]
