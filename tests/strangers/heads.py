"""One classifier per source, averaged in the test."""

import torch
from torch import nn

from msda_bench.api import Scheme, Step, component, fresh_copy, hookimpl


@component
class Heads(Scheme):
    """One head per source on shared features; the test averages the heads, weighted by their latest risks."""

    name = "heads"
    uses_discrepancy = False
    uses_mu = False
    tasks = ("classification",)

    def build(self, network, k, discrepancy):
        return nn.ModuleDict({"heads": nn.ModuleList([fresh_copy(network.predictor) for _ in range(k)])})

    def carry(self, parts, sizes, stage):
        return {"weights": torch.full((len(sizes.groups),), 1 / len(sizes.groups))}

    def step(self, parts, batch, state, phase):
        k = len(batch.y)
        seen = parts.forward(batch)
        risks = torch.stack(
            [parts.loss(parts.critic(f"heads.{i}", seen.source[i]), batch.y[i]).mean() for i in range(k)]
        )
        on_target = torch.stack([parts.critic(f"heads.{i}", seen.target).softmax(-1) for i in range(k)])
        gaps = (on_target - on_target.mean(0)).abs().mean((1, 2))
        weights = 0.9 * batch.carried["weights"] + 0.1 * torch.softmax(-risks.detach(), 0)
        objective = seen.risks.mean() + risks.mean() + gaps.mean()
        return Step(objective, risks, gaps, weights, state, {"weights": weights})

    def predict(self, parts, x, carried):
        features = parts.features(x)
        heads = [parts.critic(f"heads.{i}", features).log_softmax(-1) for i in range(len(carried["weights"]))]
        return features, torch.einsum("k,knc->nc", carried["weights"], torch.stack(heads))


@hookimpl
def msda_schemes():
    return [Heads]
