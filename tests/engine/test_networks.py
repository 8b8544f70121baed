"""Normalised networks train under every scheme, alone as in a stack, and batch-norm sees the rows that it should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from msda_bench.engine.fit import fit
from msda_bench.engine.settings import CPU
from msda_bench.engine.single import Single
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, Ref
from tests.engine.conftest import NoFiles
from tests.engine.test_draws import run_of
from tests.engine.test_stacked import close, short

MakeCell = Callable[..., Cell]
SCHEMES = {
    "pooled": "d_A",
    "adapt": "coral",
    "alternate": "wasserstein",
    "cdan": "d_A",
    **dict.fromkeys(("mdmn", "m3sda", "mcd", "mfsan", "simpal", "shot", "decision", "mdd", "kd3a", "wjdot")),
    **dict.fromkeys(("ensemble", "best_single", "target_only")),
    "regularised": "none",
}


@pytest.fixture
def cell(registry: Registry, make_cell: MakeCell) -> Callable[..., Cell]:
    def make(scheme: str, seed: int, steps: int = 12, **network: Any) -> Cell:
        plain = make_cell("DARN", seed=seed, mu=0.05, dataset={"sparse": False})
        refs = [("scheme", scheme), ("discrepancy", SCHEMES[scheme])]
        refs.append(("aggregator", "uniform" if SCHEMES[scheme] else None))
        given = {kind: _ref(registry, kind, name, {}) for kind, name in refs}
        params = {"hidden": (16, 8), "dropout": 0.3, **network}
        return short(replace(plain, **given, backbone=_ref(registry, "backbone", "mlp", params)), steps)

    return make


def _ref(registry: Registry, kind: str, name: str | None, params: dict[str, Any]) -> Ref | None:
    if name is None:
        return None
    made = registry.entry(kind, name).create(params)
    return Ref(kind, name, made.version, registry.entry(kind, name).distribution, made.identity())


@pytest.mark.parametrize("norm", ["batch", "domain"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_normalised_network_trains_in_a_stack_as_alone(
    registry: Registry, cell: Callable[..., Cell], scheme: str, norm: str
) -> None:
    cells = [cell(scheme, seed, norm=norm, bottleneck=6, weight_norm=True) for seed in (0, 1)]
    alone, together = (
        {record.key: record for record in Trainer(registry, NoFiles(), "cpu", stack).train(cells)} for stack in (1, 2)
    )
    for key, record in together.items():
        close(record, alone[key])
        assert record.outcome is not None
        assert record.provenance["stack"] == 2, record.provenance.get("stack_note")
        assert record.outcome == alone[key].outcome


@pytest.mark.parametrize(("norm", "passes"), [("batch", 1), ("domain", 3)])
def test_running_statistics_count_one_pass_of_all_rows_or_one_of_each_domain(
    registry: Registry, cell: Callable[..., Cell], norm: str, passes: int
) -> None:
    buffers = _buffers(registry, cell("adapt", 0, steps=4, norm=norm))
    counts = {int(value) for name, value in buffers.items() if name.endswith("batches_tracked")}
    assert counts == {4 * passes}


def test_what_a_scheme_looks_at_after_a_step_reaches_no_running_statistics(
    registry: Registry, cell: Callable[..., Cell]
) -> None:
    """best_single trains as ensemble does, and then looks at the other sources."""
    plain, looking = (_buffers(registry, cell(scheme, 0, norm="batch")) for scheme in ("ensemble", "best_single"))
    means = [name for name in plain if name.endswith("running_mean")]
    assert means
    for name in means:
        assert torch.equal(plain[name], looking[name]), name


def _buffers(registry: Registry, cell: Cell) -> dict[str, Tensor]:
    run = run_of(registry, cell)
    program = Single(run, CPU)
    fit([run], program)
    return dict(program.modules.named_buffers())
