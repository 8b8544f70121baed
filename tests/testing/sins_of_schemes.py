"""Sins against the contracts of schemes, those that train in steps and those that are fitted at once."""

from __future__ import annotations

import itertools
import random
import sys

import numpy as np
import torch
from torch import nn

from msda_bench.api import Phase, Predictor, Scheme, Stage, Step, component
from tests.testing.sins import Reversed, after, batched, sins


class Spoiled(Scheme):
    """One batch per source, weighted by the aggregator; correct except for what a sin changes."""

    name = "spoiled"

    def step(self, parts, batch, state, phase):
        seen = parts.forward(batch)
        gaps = parts.critic(seen.source, seen.target)
        objective, weights, state = parts.aggregate(seen.risks, gaps, state)
        return self.spoil(Step(objective, seen.risks, gaps, weights, state), parts, batch)

    def spoil(self, step, parts, batch):
        return step


def leaning(step, parts, batch):
    confident = parts.predictor(parts.forward(batch).target).square().mean()
    return step._replace(objective=step.objective + confident)


def objective(function):
    return lambda step, parts, batch: step._replace(objective=function(step.objective))


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
    return Spoiled.step(self, parts, batch._replace(x=batch.x + torch.rand_like(batch.x)), state, phase)


def sharing(self, network, k, discrepancy):
    critic = Spoiled.build(self, network, k, discrepancy)
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
    features, outputs = Spoiled.predict(self, parts, x, carried)
    return features, outputs - outputs.mean(0)


def phases(*trains):
    return (Stage("all", phases=(Phase("all", trains),)),)


OF_SCHEMES = {
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
        "NaN or infinity in the gaps ": lambda step, *_: step._replace(gaps=step.gaps / 0),
        "the sum of the weights .* is 3": (
            lambda step, _, batch: step._replace(weights=step.weights ** (len(batch.y) != 3))
        ),
        "takes no aggregator, so it must not call one": {
            "uses_discrepancy": False,
            "build": lambda self, network, k, discrepancy: nn.Linear(network.feature_dim, k),
            "step": greedy,
        },
    },
    "gradient_reaches_what_a_phase_trains": {
        "no phase gives the features a gradient": {
            "spoil": staticmethod(frozen),
            "stages": phases("predictor"),
        },
        "declares that it trains critic, but gives it no gradient": lambda step, *_: Step(step.risks.mean()),
        "trains 'encoder'; the parts are features, predictor": {"stages": phases("encoder")},
    },
    "leaves_the_process_alone": {
        "changed torch's global random generator": {"step": noisy},
        "changed torch's number of threads": objective(
            lambda value: after(torch.set_num_threads(torch.get_num_threads() + 1), value)
        ),
    },
    "stacked_runs_equal_each_alone": {
        "cannot be stacked.*torch.vmap refuses it.*no Python branch": objective(
            lambda value: value if value.item() > 0 else -value
        ),
        "cannot be stacked.*setup_context.*asks for msda_bench.functional.reverse_gradient": objective(Reversed.apply),
        "cannot be stacked.*random operation.*asks to draw nothing .* from the batch's key": {"step": noisy},
        "stacking changes a run's risks": (
            lambda step, *_: step._replace(risks=step.risks * (2 if batched(step.risks) else 1))
        ),
    },
    "critic_is_its_own": {"the critic's head.weight, head.bias belong to the network": {"build": sharing}},
    "is_deterministic": {
        "call with the same input changes the objective": objective(drifting(itertools.count())),
    },
    "trains_without_a_discrepancy": {"not NoneType. No target batch .* `needs_target": leaning},
    "input_is_not_changed": {
        "changed its input, the batch's key": lambda step, _, batch: after(batch.key.zero_(), step),
    },
    "sees_no_target_label": {"inverting the target's labels .* changes the run's .* asks to train": stealing},
    "predicts_each_example_by_itself": {"outputs depend on the rest of the batch": {"predict": predict_together}},
}


ROWS = 90
"""Examples of the contract's own fits; the engine's have other numbers."""


@component
class Nearest(Predictor):
    """The nearest mean of a class, or least squares."""

    name = "nearest"
    far = -1e6
    """The output of a class without examples."""

    def fit(self, rows, task, seed):
        x = self.dense(rows.x)
        if task.kind == "regression":
            slopes = np.linalg.lstsq(np.c_[x, np.ones(len(x))], rows.y, rcond=None)[0]
            return lambda given: self.spoil(np.c_[self.dense(given), np.ones(given.shape[0])] @ slopes[:, None])
        present = np.unique(rows.y)
        means = np.stack([x[rows.y == place].mean(0) for place in present])

        def predict(given):
            outputs = np.full((given.shape[0], task.classes), self.far)
            outputs[:, present] = -((self.dense(given)[:, None] - means) ** 2).sum(-1)
            return self.spoil(outputs)

        return predict

    def dense(self, x):
        return np.asarray(x if isinstance(x, np.ndarray) else x.toarray(), np.float64)

    def spoil(self, values):
        return values


def before(function):
    """Does something to the training rows before the fit."""
    return {"fit": lambda self, rows, task, seed: after(function(rows), Nearest.fit(self, rows, task, seed))}


def overwrite(rows):
    if isinstance(rows.x, np.ndarray) and rows.x.flags.writeable:
        rows.x[0] += 1e-6


def steal(self, rows, task, seed):
    frame, predict = sys._getframe(), Nearest.fit(self, rows, task, seed)
    while frame and not hasattr(frame.f_locals.get("run"), "prepared"):
        frame = frame.f_back
    if not frame:
        return predict
    stolen = frame.f_locals["run"].prepared._target_labels.float().mean().item()
    return lambda given: predict(given) * (1 + stolen)


def words(_, x):
    return np.asarray(x, np.float64) if isinstance(x, np.ndarray) else (x.toarray() > 0).astype(np.float64)


OF_FITTED = {
    "learns": {
        r"it is right on 0\.\d+ of its examples, a constant on": lambda values: -values,
        "its squared error is .*, a constant's": {
            "tasks": ("regression",),
            "spoil": lambda _, values: 0 * values,
        },
    },
    "a_class_may_have_no_example": {
        "NaN or infinity in the outputs without examples of the last class": {"far": np.nan},
        "its answer is a class without examples": {"far": 1.0},
    },
    "takes_bags_of_words": {"bags of words give other outputs than the same numbers": {"dense": words}},
    "predicts_each_example_by_itself": {
        "outputs depend on the rest of the batch": lambda values: values + 0.1 * values.mean(),
    },
    "sees_no_target_label": {"inverting the target's labels .* changes the run's": {"fit": steal}},
    "is_deterministic": {
        "call with the same input changes the outputs": (
            lambda values: values + (len(values) == ROWS) * 1e-5 * random.SystemRandom().random()
        ),
    },
    "input_is_not_changed": {"changed its input, the x": before(overwrite)},
    "leaves_the_process_alone": {"Python's global random generator": before(lambda rows: random.random())},
    "groups_hold_known_domains": {
        r"draws from \['elsewhere'\]; there are only": {
            "groups": lambda self, sources, target: ((*sources, *["elsewhere"] * ("north/0" in sources)),)
        },
    },
}
SINS = sins(Spoiled, OF_SCHEMES) + sins(Nearest, OF_FITTED)
