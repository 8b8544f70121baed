"""Batch normalisation's statistics of the target alone, for schemes that ask for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from msda_bench.engine.program import Program
from msda_bench.engine.runs import Run
from msda_bench.engine.tensors import batch_of, chunk, where_rows


@torch.no_grad()
def take_target_statistics(runs: Sequence[Run], program: Program) -> None:
    """Replaces batch normalisation's running statistics by those of the target's training inputs, layer by layer.

    All else is in evaluation mode. The inputs pass in equal parts, whose statistics are averaged; each part is
    normalised by its own. Layers that keep their statistics in training keep them here, and so do all if the target has
    one example, whose variance is not known.

    Args:
        runs: of the program, all with as many examples of the target.
        program: trained.
    """
    modules = program.modules
    batch_norm = nn.modules.batchnorm._BatchNorm  # noqa: SLF001 - as in `fixed_statistics`
    norms = [module for module in modules.modules() if isinstance(module, batch_norm) and module.training]
    targets = [run.target_rows for run in runs]
    rows = (torch.stack(targets) if program.lead else targets[0]) + program.row_offsets[..., None]
    total = rows.shape[-1]
    if not norms or total == 1:
        return
    momenta = [norm.momentum for norm in norms]
    modules.eval()
    seen = 0
    for part in rows.tensor_split(max(1, total // max(2, chunk(program.x))), dim=-1):
        seen += part.shape[-1]
        for norm in norms:
            norm.train()
            norm.momentum = part.shape[-1] / seen
        x = program.augment(batch_of(program.x, where_rows(program.x, part)))
        program.call(lambda scheme, parts, *given: scheme.predict(parts, *given), x, program.carried)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    modules.train()
