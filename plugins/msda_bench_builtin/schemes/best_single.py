"""The model of one source, chosen on the others."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Batch, Carried, Examples, Parts, Phase, Rate, Sizes, Stage, Step, component
from msda_bench_builtin.schemes.ensemble import Ensemble, all_answers


@component
class BestSingle(Ensemble):
    """The best single source: of one model a source, the test uses the one that is best on the *other* sources.

    Models train as in `ensemble`. A model never trains on the other sources, so their training examples are held out
    from it: its mean loss on them estimates, without a label of the target, its performance on an unseen domain
    (leave-one-domain-out validation, Gulrajani and Lopez-Paz 2021, "In Search of Lost Domain Generalization", reversed:
    one domain to train on, the others to validate). After each step every model's mean loss on the other sources'
    batches enters a moving average; the model with the lowest is chosen at the end. A model's own source is ignored,
    because that would favour the easiest source. With one source there is nothing to choose.

    The record's gaps are these averages, not corrected for their start at 0, and its weights are 1 for the choice.
    Dropout is on in these losses, for all models alike.

    Parameters:
        decay: of the moving average; our choice. 0.99 averages about the last hundred steps.
    """

    name = "best_single"

    decay: Rate = 0.99

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """The models' losses on the other sources, and 1 for the chosen one."""
        return {"elsewhere": torch.zeros(len(sizes.groups)), **super().carry(parts, sizes, stage)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The sum of the models' risks, each on its own source."""
        return super().step(parts, batch, state, phase)._replace(gaps=batch.carried["elsewhere"])

    def after_step(self, parts: Parts, batch: Batch, phase: Phase) -> Carried:
        """The choice after one more batch of each source."""
        k, size = batch.y.shape
        labels = batch.y.reshape(-1)
        _, outputs = all_answers(parts, batch.x[: k * size], k)
        risks = torch.stack([parts.loss(own, labels) for own in outputs]).view(k, k, size).mean(-1)
        others = (risks.sum(1) - risks.diagonal()) / max(1, k - 1)
        elsewhere = self.decay * batch.carried["elsewhere"] + (1 - self.decay) * others
        chosen = torch.arange(k, device=elsewhere.device) == elsewhere.argmin()
        return {"elsewhere": elsewhere, "shares": chosen.to(elsewhere)}

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """The chosen model's features and outputs."""
        features, outputs = all_answers(parts, x, len(carried["shares"]))
        chosen = carried["shares"].argmax().reshape(1)
        return features.index_select(0, chosen).squeeze(0), outputs.index_select(0, chosen).squeeze(0)
