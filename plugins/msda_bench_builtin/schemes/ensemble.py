"""A module for each source: their mean answer, and the best one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from msda_bench.api import (
    AddedLater,
    Batch,
    Carried,
    Discrepancy,
    Examples,
    Network,
    Parts,
    Phase,
    Rate,
    Scheme,
    Sizes,
    Stage,
    Step,
    component,
    fresh_copy,
)
from msda_bench_builtin.schemes.batches import examples_of


class Each(nn.Module):
    """k modules of one shape, with separate rows or the same ones.

    Args:
        modules: the k modules.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        super().__init__()
        self.of = nn.ModuleList(modules)

    def forward(self, rows: Tensor) -> Tensor:
        """The outputs for rows (k, n, d), or (n, d) for all k modules: (k, n, width)."""
        given = rows.expand(len(self.of), *rows.shape[-2:]).unbind()
        return torch.stack([module(own) for module, own in zip(self.of, given, strict=True)])


def mean_answer(outputs: Tensor) -> Tensor:
    """Logits (n, classes) of the mean probabilities of k classifiers with these logits (k, n, classes)."""
    return torch.logsumexp(outputs.log_softmax(-1), 0) - math.log(len(outputs))


def answers(parts: Parts, model: int, x: Examples) -> tuple[Tensor, Tensor]:
    """Features and outputs of one model: the network for the first source, a part of the critic for each other."""
    features = parts.features(x) if model == 0 else parts.critic(f"{model - 1}.features", x)
    return features, predicted(parts, model, features)


def predicted(parts: Parts, model: int, features: Tensor) -> Tensor:
    """Outputs of one model for its features."""
    return parts.predictor(features) if model == 0 else parts.critic(f"{model - 1}.predictor", features)


def own_outputs(parts: Parts, batch: Batch) -> list[Tensor]:
    """Outputs of each model on its own source."""
    return [answers(parts, i, examples_of(batch, i))[1] for i in range(len(batch.y))]


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
        """The models of all sources but the first, whose model is the network."""
        models = nn.ModuleList()
        for _ in range(k - 1):
            parts = {"features": fresh_copy(network.features), "predictor": fresh_copy(network.predictor)}
            models.append(nn.ModuleDict(parts))
        return models

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """The models' shares in the answer."""
        k = len(sizes.groups)
        return {"shares": torch.full((k,), 1 / k)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The sum of the models' risks, each on its own source."""
        own = own_outputs(parts, batch)
        risks = torch.stack([parts.loss(outputs, y).mean() for outputs, y in zip(own, batch.y, strict=True)])
        return Step(risks.sum(), risks, weights=batch.carried["shares"])

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """The features of all models, and the logarithm of their mean probabilities, or their mean number."""
        features, outputs = all_answers(parts, x, len(carried["shares"]))
        side_by_side = torch.cat(features.unbind(), dim=-1)
        if outputs.shape[-1] == 1:
            return side_by_side, outputs.mean(0)
        return side_by_side, mean_answer(outputs)


@component
class BestSingle(Ensemble):
    """The best single source: of one model a source, the test uses the one that is best on the *other* sources.

    Models train as in `ensemble`. A model never trains on the other sources, so their training examples are held out
    from it: its accuracy on them estimates, without a label of the target, its performance on an unseen domain
    (leave-one-domain-out validation, Gulrajani and Lopez-Paz 2021, "In Search of Lost Domain Generalization", reversed:
    one domain to train on, the others to validate). After each step every model's errors and mean loss on the other
    sources' batches enter moving averages; the model with the lowest is chosen at the end. A model's own source is
    ignored, because that would favour the easiest source. With one source there is nothing to choose.

    The record's gaps are the averages that choose, not corrected for their start at 0, and its weights are 1 for the
    choice. Dropout is on in them, for all models alike.

    Parameters:
        by: "accuracy", ties by loss; "loss" alone, which for regression is taken in any case. Far from its own source a
            model that learned much is surer of its errors, so that loss favours one that learned little.
        decay: of the moving average; our choice. 0.99 averages about the last hundred steps.
    """

    name = "best_single"

    decay: Rate = 0.99
    by: Annotated[Literal["accuracy", "loss"], AddedLater("loss")] = "accuracy"

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """The models' losses and, if they choose, errors on the other sources, and 1 for the chosen one."""
        nothing = torch.zeros(len(sizes.groups))
        averages = {"elsewhere": nothing}
        if self.by == "accuracy" and sizes.outputs > 1:
            averages["errors"] = nothing
        return {**averages, **super().carry(parts, sizes, stage)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The sum of the models' risks, each on its own source."""
        chosen_by = batch.carried.get("errors", batch.carried["elsewhere"])
        return super().step(parts, batch, state, phase)._replace(gaps=chosen_by)

    def after_step(self, parts: Parts, batch: Batch, phase: Phase) -> Carried:
        """The choice after one more batch of each source."""
        k, size = batch.y.shape
        labels = batch.y.reshape(-1)
        _, outputs = all_answers(parts, batch.x[: k * size], k)
        losses = torch.stack([parts.loss(own, labels) for own in outputs])
        seen = {"elsewhere": losses, "errors": (outputs.argmax(-1) != labels).to(losses)}
        kept: dict[str, Tensor] = {}
        for name, values in seen.items():
            if name in batch.carried:
                now = _elsewhere(values.view(k, k, size).mean(-1))
                kept[name] = self.decay * batch.carried[name] + (1 - self.decay) * now
        elsewhere = kept["elsewhere"]
        if "errors" in kept:  # losses decide between equal ones
            elsewhere = elsewhere.masked_fill(kept["errors"] > kept["errors"].min(), math.inf)
        chosen = torch.arange(k, device=elsewhere.device) == elsewhere.argmin()
        return {**kept, "shares": chosen.to(elsewhere)}

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """The chosen model's features and outputs."""
        features, outputs = all_answers(parts, x, len(carried["shares"]))
        chosen = carried["shares"].argmax().reshape(1)
        return features.index_select(0, chosen).squeeze(0), outputs.index_select(0, chosen).squeeze(0)


def _elsewhere(values: Tensor) -> Tensor:
    """The mean (k,) of each model's values (k, k) on the sources that are not its own."""
    return (values.sum(1) - values.diagonal()) / max(1, len(values) - 1)
