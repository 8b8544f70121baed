"""Sins against the contract of aggregators."""

from __future__ import annotations

import random

import torch

from msda_bench.api import Aggregate, Aggregator
from tests.testing.sins import after, sins


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


def batched(tensor):
    return torch._C._functorch.is_batchedtensor(tensor)


BROKEN = {
    "weights_lie_on_the_simplex": {
        "the sum of the weights of 1 sources is 0.5": weights(lambda w, k: w / (1 + (k == 1))),
        "negative entry in the weights of 2 sources": weights(lambda w, k: w + torch.linspace(-1, 1, k) * (k > 1)),
        "the sum of the weights of 2 sources is 2; the contract asks": weights(lambda w, k: w * (1 + (k == 2))),
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
        "changed torch's global random generator": weigh(lambda risks: torch.rand(len(risks)).softmax(0)),
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
SINS = sins(Honest, BROKEN)
