"""One model a source, and the mean of their answers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from msda_bench.api import (
    Batch,
    Carried,
    Discrepancy,
    Examples,
    Network,
    Parts,
    Phase,
    Scheme,
    Sizes,
    Stage,
    Step,
    component,
    fresh_copy,
)
from msda_bench_builtin.schemes.several import mean_answer


def answers(parts: Parts, model: int, x: Examples) -> tuple[Tensor, Tensor]:
    """Features and outputs of one model: the network for the first source, a part of the critic for each other."""
    features = parts.features(x) if model == 0 else parts.critic(f"{model - 1}.features", x)
    return features, predicted(parts, model, features)


def predicted(parts: Parts, model: int, features: Tensor) -> Tensor:
    """Outputs of one model for its features."""
    return parts.predictor(features) if model == 0 else parts.critic(f"{model - 1}.predictor", features)


def all_answers(parts: Parts, x: Examples, k: int) -> tuple[Tensor, Tensor]:
    """Features (k, n, d) and outputs (k, n, outputs) of all models."""
    features, outputs = zip(*(answers(parts, i, x) for i in range(k)), strict=True)
    return torch.stack(features), torch.stack(outputs)


@component
class Ensemble(Scheme):
    """One model a source, each trained only on that source; the test uses the mean of their probabilities.

    The baseline without adaptation besides `pooled`: it shows the gain from training on the sources together. Every
    model, features and predictor, takes a step on its own source's batch in each step, at the learning rate of a single
    model. For regression the test uses the mean of the predicted numbers. Features, for validators, are those of all
    models side by side. No target example is seen. The first source's model is the run's network, the others are parts
    of the critic, so a learning rate factor of the critic should be that of the rest.
    """

    name = "ensemble"
    uses_discrepancy = False
    uses_mu = False
    needs_target = False

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The models of all sources but the first, whose model is the network.

        Raises:
            PluginError: the network has a module whose initial weights cannot be redrawn.
        """
        parts = {"features": network.features, "predictor": network.predictor}
        return nn.ModuleList(
            [nn.ModuleDict({name: fresh_copy(part) for name, part in parts.items()}) for _ in range(k - 1)]
        )

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """The models' shares in the answer."""
        k = len(sizes.groups)
        return {"shares": torch.full((k,), 1 / k)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The sum of the models' risks, each on its own source."""
        k, size = batch.y.shape
        own = [answers(parts, i, batch.x[i * size : (i + 1) * size])[1] for i in range(k)]
        risks = torch.stack([parts.loss(outputs, batch.y[i]).mean() for i, outputs in enumerate(own)])
        return Step(risks.sum(), risks, weights=batch.carried["shares"])

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """The features of all models, and the logarithm of their mean probabilities, or their mean number."""
        features, outputs = all_answers(parts, x, len(carried["shares"]))
        side_by_side = torch.cat(features.unbind(), dim=-1)
        if outputs.shape[-1] == 1:
            return side_by_side, outputs.mean(0)
        return side_by_side, mean_answer(outputs)
