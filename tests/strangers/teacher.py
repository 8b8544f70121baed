"""A mean teacher: predictions of averaged weights on weak views of the target label its strong views."""

import torch

from msda_bench.api import Positive, Rate, Scheme, Step, component, hookimpl
from msda_bench.functional import split_key


@component
class Teacher(Scheme):
    """Mean teacher (Tarvainen and Valpola 2017): averaged weights predict, in training and in the test."""

    name = "teacher"
    uses_discrepancy = False
    uses_mu = False
    tasks = ("classification",)
    stacked = ("weight",)

    decay: Rate = 0.9
    weight: Positive = 1.0

    def carry(self, parts, sizes, stage):
        return parts.weights

    def step(self, parts, batch, state, phase):
        risks = parts.forward(batch).risks
        weak, strong, noise = split_key(batch.key, torch.arange(3, dtype=torch.int32, device=batch.key.device)).unbind()
        teacher = parts.with_weights(batch.carried).with_key(noise)
        answers = teacher.predictor(teacher.features(parts.view(batch.target, "weak", weak))).softmax(-1)
        own = parts.predictor(parts.features(parts.view(batch.target, "strong", strong))).softmax(-1)
        differ = (own - answers).square().sum(-1).mean()
        objective = risks.mean() + self.weight * batch.progress * differ
        return Step(objective, risks, differ.expand(len(risks)))

    def after_step(self, parts, batch, phase):
        mean = batch.carried
        return {name: self.decay * mean[name] + (1 - self.decay) * now for name, now in parts.weights.items()}

    def predict(self, parts, x, carried):
        return super().predict(parts.with_weights(carried), x, carried)


@hookimpl
def msda_schemes():
    return [Teacher]
