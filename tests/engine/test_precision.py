"""The precision of matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from msda_bench.api import BenchError
from msda_bench.engine.settings import products
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell
from tests.engine.conftest import NoFiles

MakeCell = Callable[..., Cell]


def of_precision(cell: Cell, precision: str) -> Cell:
    return replace(cell, training=cell.training.model_copy(update={"precision": precision}))


def test_only_precisions_other_than_float32_are_part_of_the_key(make_cell: MakeCell) -> None:
    cell = make_cell()
    keys = {name: of_precision(cell, name).key for name in ("float32", "tf32", "bf16")}
    assert keys["float32"] == cell.key
    assert len(set(keys.values())) == 3
    assert "precision" not in cell.to_json()["training"]


@pytest.mark.parametrize("method", ["DARN", "MDMN", "DANN", "SRC"])
@pytest.mark.parametrize("stack", [1, 2])
def test_bf16_learns_with_different_rounding(registry: Registry, make_cell: MakeCell, method: str, stack: int) -> None:
    cells = [make_cell(method, seed=seed, epochs=8) for seed in (0, 1)]
    coarse = list(Trainer(registry, NoFiles(), "cpu", stack).train([of_precision(cell, "bf16") for cell in cells]))
    exact = list(Trainer(registry, NoFiles(), "cpu", stack).train(cells))
    for one, other in zip(coarse, exact, strict=True):
        assert one.provenance["stack"] == stack
        assert one.outcome is not None
        assert one.outcome.n_correct is not None
        assert one.outcome.n_correct > 55
        assert one.curves is not None
        assert other.curves is not None
        assert one.curves.risks != other.curves.risks
        assert one.curves.risks[0] == pytest.approx(other.curves.risks[0], rel=0.1)


def test_tf32_needs_a_gpu(registry: Registry, make_cell: MakeCell) -> None:
    with pytest.raises(BenchError, match="precision tf32 is a GPU's"):
        next(Trainer(registry, NoFiles(), "cpu").train([of_precision(make_cell(), "tf32")]))


def test_torchs_setting_is_restored() -> None:
    former = torch.get_float32_matmul_precision()
    with products("tf32", torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == former
    with products("float32", torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cudnn.allow_tf32
