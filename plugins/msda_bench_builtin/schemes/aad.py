"""AaD: neighbours in the target answer alike, other examples differ."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from msda_bench.api import (
    Batch,
    Carried,
    Count,
    Group,
    NonNegative,
    Parts,
    Phase,
    Positive,
    Rate,
    Sizes,
    Stage,
    Step,
    TargetPass,
    component,
)
from msda_bench_builtin.schemes.source_free import SourceFree


@component
class Aad(SourceFree):
    """AaD, without the sources in its second stage: an example's neighbours attract its prediction, others disperse it.

    Yang et al. 2022 ("Attracting and Dispersing: A Simple Approach for Source-free Domain Adaptation"), as in their
    released code. The first stage is SHOT's. The second sees only the unlabelled target and trains the whole network on
    the mean over the batch of

        - sum over j in C_i of p_i q_j  +  (1 + 10 t)^-beta  sum over m != i of p_i p_m

    with probabilities p, and t the share of the stage that is done. C_i are the `neighbours` of i that are nearest by
    cosine of the features, among all target examples but i. A memory has the features and the probabilities q of each
    as they were when it was last drawn, at first those of the network of the sources; no gradient passes through it.
    Their code adds the entropy of each q_j, which has no gradient. The second sum is over the batch, so it grows with
    it.

    Parameters:
        neighbours: how many attract; in their code 3 for Office-31, 4 and then 2 for Office-Home, 5 for VisDA. All
            others, if the target has fewer.
        beta: how fast dispersion fades; 0.75 in their code for Office-31, 5 for VisDA; 0 keeps it, as for Office-Home.
        smoothing: share of a label that is spread over all classes, in the first stage.
        adapt: steps of the second stage for each of the first.
    """

    name = "aad"
    target_phase = Phase("target", ("features", "predictor"))

    neighbours: Count = 3
    beta: NonNegative = 0.75
    smoothing: Rate = 0.1
    adapt: Positive = 0.5

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources."""
        return (sources,)

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """In the second stage the memory: features of unit length and probabilities of each target example."""
        if stage.name == "start":
            return {}
        first = next(iter(parts.weights.values()))
        widths = {"features": sizes.features, "answers": sizes.outputs}
        return {name: first.new_zeros(sizes.target, width) for name, width in widths.items()}

    def at_epoch(
        self,
        parts: Parts,
        target: TargetPass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """The memory at the stage's start; later epochs keep what they have."""
        begins = torch.as_tensor(target.progress) == 0
        seen = _seen(target.features, target.outputs)
        return {name: torch.where(begins, value, carried[name]) for name, value in seen.items()}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The stage's objective; the second stage has no values for the sources."""
        features = parts.features(batch.x)
        outputs = parts.predictor(features)
        if phase.name == "sources":
            return self.of_sources(parts, outputs, batch)
        places = batch.target_rows
        answers = outputs.softmax(-1)
        with torch.no_grad():
            last = _last_of_each(places)
            seen: dict[str, Tensor] = {}
            memory: dict[str, Tensor] = {}
            for name, value in _seen(features, outputs).items():
                before = batch.carried[name]
                seen[name] = value.to(before)
                memory[name] = before.index_copy(0, places, seen[name][last])
            close = seen["features"] @ memory["features"].T
            others = close.scatter(1, places.unsqueeze(1), -torch.inf)
            nearest = others.topk(min(self.neighbours, others.shape[1] - 1)).indices
            attracting = memory["answers"][nearest].sum(1)
        together = (answers * attracting).sum(-1).mean()
        apart = (answers.sum(0).square().sum() - answers.square().sum()) / len(answers)
        fading = (1 + 10 * batch.progress) ** -self.beta
        return Step(fading * apart - together, carried=memory)


def _seen(features: Tensor, outputs: Tensor) -> dict[str, Tensor]:
    """What the memory keeps of examples."""
    return {"features": functional.normalize(features, dim=-1), "answers": outputs.softmax(-1)}


def _last_of_each(places: Tensor) -> Tensor:
    """(b,) where each place is drawn last: of an example drawn twice a GPU would keep now this, now that."""
    order = torch.arange(len(places), device=places.device)
    return torch.where(places.unsqueeze(1) == places, order, -1).amax(1)
