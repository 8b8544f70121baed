"""KD3A: knowledge votes of the sources' models, and their average."""

from __future__ import annotations

import math

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
    PluginError,
    Rate,
    Scheme,
    Sizes,
    Stage,
    Step,
    TargetPass,
    component,
    fresh_copy,
)
from msda_bench.functional import SparseRows, split_key, uniform
from msda_bench_builtin.schemes.batches import examples_of


def vote(knowledge: Tensor, gate: float | Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The consensus of k models, and that of each subset of them.

    Args:
        knowledge: (k, b, classes) probabilities.
        gate: the threshold for the highest probability of a model.

    Returns:
        The consensus (b, classes), one-hot; (b,) 1 if a model passes the gate; the quality (2^k, b) of each subset's
        consensus, 0 if none of its models passes. Subsets are in the order of `itertools.product`.
    """
    top, classes = knowledge.max(-1)
    votes = nn.functional.one_hot(classes, knowledge.shape[-1]).to(knowledge)
    members = _subsets(len(knowledge), knowledge.device).to(knowledge.dtype).unsqueeze(-1)
    passing = members * (top > gate)
    some = passing.amax(1, keepdim=True)
    heard = some * passing + (1 - some) * members
    sums = torch.einsum("skb,kbc->sbc", heard * top, votes)
    consensus = nn.functional.one_hot(sums[-1].argmax(-1), knowledge.shape[-1]).to(knowledge)
    return consensus, some[-1, 0], sums.amax(-1) * some.squeeze(1)


def shapley(values: Tensor, k: int) -> Tensor:
    """Each player's mean contribution (k,) over all orders, from the values (2^k,) of the subsets (Shapley 1953)."""
    # Filled one by one on the device: a copy from the host would make it wait in every step.
    chances = []
    for size in range(k):
        share = 1 / (k * math.comb(k - 1, size))
        chances.append(torch.full((1,), share, device=values.device))
    chance = torch.cat(chances).to(values.dtype)
    members = _subsets(k, values.device)
    sizes = members.sum(1)
    joins = chance[(sizes - 1).clamp(min=0)]
    before = chance[sizes.clamp(max=k - 1)]
    matrix = torch.where(members.T > 0, joins, -before)
    return matrix @ values


def _subsets(k: int, device: torch.device) -> Tensor:
    """All subsets of k, one a row of 0 and 1, from none to all, in the order of `itertools.product`."""
    places = torch.arange(k - 1, -1, -1, device=device)
    return (torch.arange(2**k, device=device).unsqueeze(1) >> places) & 1


_MOST = 12
"""The maximum number of sources, since a step evaluates all subsets of them."""


@component
class Kd3a(Scheme):
    """KD3A: a model for each source, which vote on the target's labels; all are averaged at each epoch.

    Feng et al. 2021, "KD3A: Unsupervised multi-source decentralized domain adaptation via knowledge distillation", as
    in their released code. Each source's model learns only from its source. On a batch of the target the models vote:
    those whose highest probability passes the gate, or all if none does, each give it to their class; the class with
    the largest sum is the consensus, and the sum its quality. The target's model, the network, learns by cross-entropy
    from the consensus on examples for which some model passed, mixed in pairs by a Beta(2, 2) share.

    At each epoch's end all extractors become their average with weights alpha; classifiers stay separate. If n of the
    epoch's N target examples pass the gate, the target's own alpha is n / N / (k + 1); the rest is shared by consensus
    focus, each source's Shapley value in the summed quality of these examples. alpha is averaged with `momentum`. The
    test uses the averaged extractor and the target's classifier.

    In the paper's text the label is the voters' mean probability, and their number weighs the example. Its batch-norm
    MMD, which averages the layers' statistics, is omitted, since our networks, like the authors' for reviews, have no
    such layers. Their sources finish an epoch before the target's begins; here all learn in each step. Weight decay
    acts on the models' weights, as theirs does. An average of weights over steps (`training: {average: ...}`) is
    refused: these are replaced at each epoch.

    Parameters:
        gate: the gate at the start; 0.9 in the authors' settings for reviews and for digits.
        gate_end: its final value, reached in proportion to the steps; 0.95 for both.
        momentum: of alpha, after the first epoch; 0.9 in their code.
        mixup: whether target examples are mixed; bags of words become dense for it.
    """

    name = "kd3a"
    uses_discrepancy = False
    uses_mu = False
    needs_target = True
    offsets_weights = True
    tasks = ("classification",)
    stacked = ("gate", "gate_end", "momentum")

    gate: Rate = 0.9
    gate_end: Rate = 0.95
    momentum: Rate = 0.9
    mixup: bool = True

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The sources' models.

        Raises:
            PluginError: there are too many sources.
        """
        if k > _MOST:
            raise PluginError(f"scheme 'kd3a' asks all subsets of the sources, so it takes at most {_MOST}, not {k}")
        features = nn.ModuleList([fresh_copy(network.features) for _ in range(k)])
        predictors = nn.ModuleList([fresh_copy(network.predictor) for _ in range(k)])
        return nn.ModuleDict({"features": features, "predictor": predictors})

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """Equal alphas, the target's last; offsets by which all extractors start as the target's; an epoch's sums."""
        k = len(sizes.groups)
        weights = parts.weights
        first = next(iter(weights.values()))
        nothing = first.new_zeros(())
        target_alone = torch.eye(k + 1, dtype=first.dtype, device=first.device)[k]
        return {
            "alpha": first.new_full((k + 1,), 1 / (k + 1)),
            "epochs": nothing,
            "focus": first.new_zeros(k),
            "passed": nothing,
            "seen": nothing,
            **_offsets(weights, k, target_alone),
        }

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The sum of all models' losses, each on its own parameters.

        The record's gaps are the mean probability that each source's model denies the consensus; its weights are the
        sources' shares of alpha.
        """
        k = len(batch.y)
        target = batch.target
        carried = batch.carried
        moved = parts.with_offsets(carried)
        outputs = [_local(moved, i, examples_of(batch, i)) for i in range(k)]
        risks = torch.stack([parts.loss(outputs[i], batch.y[i]).mean() for i in range(k)])
        with torch.no_grad():
            knowledge = torch.stack([torch.softmax(_local(moved, i, target), -1) for i in range(k)])
            gate = self.gate + (self.gate_end - self.gate) * batch.progress
            consensus, passed, qualities = vote(knowledge, gate)
            focus = shapley(qualities.sum(-1), k)
            gaps = 1 - (knowledge * consensus).sum(-1).mean(1)
        x, labels = self._mixed(target, consensus, batch.key)
        logs = torch.log_softmax(moved.predictor(moved.features(x)), -1)
        losses = -(labels * logs).sum(-1)
        more = {"focus": focus, "passed": passed.sum(), "seen": torch.ones_like(passed).sum()}
        sums = {name: carried[name] + value.to(carried[name]) for name, value in more.items()}
        of_sources = carried["alpha"][:k]
        objective = risks.sum() + (passed * losses).mean()
        return Step(objective, risks, gaps, of_sources / of_sources.sum(), carried=sums)

    def at_epoch(
        self,
        parts: Parts,
        target: TargetPass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """The average after an epoch, with new sums; before the first epoch nothing changes."""
        k = len(carried["focus"])
        alpha = self._alpha(carried)
        sums = {name: torch.zeros_like(carried[name]) for name in ("focus", "passed", "seen")}
        epochs = carried["epochs"] + (carried["seen"] > 0)
        more = _offsets(_with_offsets(parts, carried), k, alpha)
        offsets = {name: carried[name] + value for name, value in more.items()}
        return {"alpha": alpha, "epochs": epochs, **sums, **offsets}

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """The outputs of the averaged extractor and the target's classifier."""
        k = len(carried["focus"])
        mean = parts.with_weights(_averages(_with_offsets(parts, carried), k, self._alpha(carried)))
        features = mean.features(x)
        return features, parts.predictor(features)

    def _alpha(self, carried: Carried) -> Tensor:
        """The models' weights at the end of an epoch, the target's last; unchanged if it saw nothing."""
        before = carried["alpha"]
        focus = carried["focus"].clamp(min=0)
        seen = carried["seen"]
        k = len(focus)
        total = focus.sum()
        own = carried["passed"] / seen.clamp(min=1) / (k + 1)
        shares = torch.where(total > 0, focus / torch.where(total > 0, total, 1), 1 / k)
        now = torch.cat([(1 - own) * shares, own.reshape(1)])
        after = torch.where(carried["epochs"] == 0, now, self.momentum * before + (1 - self.momentum) * now)
        return torch.where(seen > 0, after, before)

    def _mixed(self, x: Examples, labels: Tensor, key: Tensor) -> tuple[Examples, Tensor]:
        """Examples and labels (b, classes), mixed with a random partner's by one share for the batch."""
        if not self.mixup:
            return x, labels
        dense = x.to_dense() if isinstance(x, SparseRows) else x
        both = torch.arange(2, dtype=torch.int32, device=key.device)
        first, second = split_key(key, both).unbind()
        share = uniform(first, (3,)).sort().values[1]  # the median of three uniform numbers is Beta(2, 2)
        order = uniform(second, (len(labels),)).argsort()
        mixed = share * dense + (1 - share) * dense[order]
        return mixed, share * labels + (1 - share) * labels[order]


def _local(parts: Parts, i: int, x: Examples) -> Tensor:
    """Outputs of a source's model."""
    outputs: Tensor = parts.critic(f"predictor.{i}", parts.critic(f"features.{i}", x))
    return outputs


def _with_offsets(parts: Parts, carried: Carried) -> dict[str, Tensor]:
    """All weights with the carried offsets added."""
    return {name: value + carried.get(name, 0) for name, value in parts.weights.items()}


def _models(weights: Carried, k: int) -> dict[str, list[str]]:
    """For each weight of the target's extractor its names in all models, the target's last."""
    models: dict[str, list[str]] = {}
    for own in weights:
        if own.startswith("features."):
            models[own] = [*(own.replace("features", f"critic.features.{i}", 1) for i in range(k)), own]
    return models


def _averages(weights: Carried, k: int, alpha: Tensor) -> dict[str, Tensor]:
    """The extractor's weights, averaged over the models."""
    averages: dict[str, Tensor] = {}
    for own, names in _models(weights, k).items():
        shares = [share * weights[name] for share, name in zip(alpha, names, strict=True)]
        averages[own] = sum(shares, alpha.new_zeros(()))
    return averages


def _offsets(weights: Carried, k: int, alpha: Tensor) -> dict[str, Tensor]:
    """The difference between the average and each model's extractor."""
    mean = _averages(weights, k, alpha)
    offsets: dict[str, Tensor] = {}
    for own, names in _models(weights, k).items():
        for name in names:
            offsets[name] = mean[own] - weights[name]
    return offsets
