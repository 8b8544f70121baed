"""Sins against the contract of schemes."""

from __future__ import annotations

import itertools
import random
import sys

import torch
from torch import nn

from msda_bench.api import Phase, Scheme, Stage, Step, component
from tests.testing.sins import after, sins


@component
class Plain(Scheme):
    """One batch per source, weighted by the aggregator."""

    name = "plain"

    def step(self, parts, batch, state, phase):
        seen = parts.forward(batch)
        gaps = parts.critic(seen.source, seen.target)
        objective, weights, state = parts.aggregate(seen.risks, gaps, state)
        return Step(objective, seen.risks, gaps, weights, state)


class Spoiled(Plain):
    """Correct except for what a sin changes."""

    name = "spoiled"

    def step(self, parts, batch, state, phase):
        return self.spoil(super().step(parts, batch, state, phase), parts, batch)

    def spoil(self, step, parts, batch):
        return step


def leaning(_, step, parts, batch):
    confident = parts.predictor(parts.forward(batch).target).square().mean()
    return step._replace(objective=step.objective + confident)


def spoil(function):
    return {"spoil": lambda _, *given: function(*given)}


def objective(function):
    return spoil(lambda step, parts, batch: step._replace(objective=function(step.objective)))


def drifting(calls):
    """Too little for any other clause, and more than rounding hides, which a random number may be below."""
    return lambda value: value + 2e-6 * (next(calls) % 5)


def frozen(step, parts, batch):
    outputs = parts.predictor(parts.forward(batch).source.detach().flatten(0, 1))
    return Step(parts.loss(outputs, batch.y.reshape(-1)).mean(), step.risks)


def greedy(self, parts, batch, state, phase):
    risks = parts.forward(batch).risks
    return Step(parts.aggregate(risks, risks, state).objective, risks, risks, risks, state)


def noisy(self, parts, batch, state, phase):
    return Plain.step(self, parts, batch._replace(x=batch.x + torch.rand_like(batch.x)), state, phase)


def sharing(self, network, k, discrepancy):
    critic = Plain.build(self, network, k, discrepancy)
    if k == 3:
        critic.head = network.predictor
    return critic


def stealing(step, parts, batch):
    frame = sys._getframe()
    while frame and not (frame.f_code.co_name == "fit" and "runs" in frame.f_locals):
        frame = frame.f_back
    if not frame:
        return step
    stolen = frame.f_locals["runs"][0].prepared._target_labels.float().mean()
    return step._replace(objective=step.objective + stolen * parts.features(batch.x).square().mean())


def predict_together(self, parts, x, carried):
    features, outputs = Plain.predict(self, parts, x, carried)
    return features, outputs - outputs.mean(0)


def batched(tensor):
    return torch._C._functorch.is_batchedtensor(tensor)


def phases(*trains):
    return (Stage("all", phases=(Phase("all", trains),)),)


BROKEN = {
    "groups_hold_known_domains": {
        r"draws from \['elsewhere'\]; there are only": {"groups": lambda self, sources, target: (("elsewhere",),)},
        r"draws from \['north'\]; there are only \('north/0',": {
            "groups": lambda self, sources, target: (("north",), ("east",), ("south",))
        },
        "draws labels of the target; an oracle must set": {
            "groups": lambda self, sources, target: (*((name,) for name in sources), *[(target,)] * (len(sources) == 3))
        },
    },
    "step_gives_what_the_record_holds": {
        "NaN or infinity in the gaps ": spoil(lambda step, *_: step._replace(gaps=step.gaps / 0)),
        "the sum of the weights .* is 3": spoil(
            lambda step, _, batch: step._replace(weights=step.weights ** (len(batch.y) != 3))
        ),
        "takes no aggregator, so it must not call one": {
            "uses_discrepancy": False,
            "build": lambda self, network, k, discrepancy: nn.Linear(network.feature_dim, k),
            "step": greedy,
        },
    },
    "gradient_reaches_what_a_phase_trains": {
        "no phase gives the features a gradient": {**spoil(frozen), "stages": phases("predictor")},
        "declares that it trains critic, but gives it no gradient": spoil(lambda step, *_: Step(step.risks.mean())),
        "trains 'encoder'; the parts are features, predictor": {"stages": phases("encoder")},
    },
    "leaves_the_process_alone": {
        "changed torch's global random generator": {"step": noisy},
        "changed torch's number of threads": objective(
            lambda value: after(torch.set_num_threads(torch.get_num_threads() + 1), value)
        ),
        "Python's global random generator": objective(lambda value: after(random.random(), value)),
    },
    "stacked_runs_equal_each_alone": {
        "cannot be stacked.*torch.vmap refuses it.*no Python branch": objective(
            lambda value: value if value.item() > 0 else -value
        ),
        "stacking changes a run's risks": spoil(
            lambda step, *_: step._replace(risks=step.risks * (2 if batched(step.risks) else 1))
        ),
    },
    "critic_is_its_own": {"the critic's head.weight, head.bias belong to the network": {"build": sharing}},
    "is_deterministic": {
        "call with the same input changes the objective": objective(drifting(itertools.count())),
    },
    "trains_without_a_discrepancy": {"not NoneType. No target batch .* `needs_target": {"spoil": leaning}},
    "input_is_not_changed": {
        "changed its input, the batch's key": spoil(lambda step, _, batch: after(batch.key.zero_(), step)),
    },
    "sees_no_target_label": {"inverting the target's labels .* changes the run's .* asks to train": spoil(stealing)},
    "predicts_each_example_by_itself": {"outputs depend on the rest of the batch": {"predict": predict_together}},
}
SINS = sins(Spoiled, BROKEN)
