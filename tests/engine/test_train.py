"""What a record of the engine may and may not depend on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import (
    Aggregate,
    Aggregator,
    Backbone,
    BagLinear,
    BenchError,
    Discrepancy,
    InputSpec,
    Network,
    Task,
    ValidationView,
    Validator,
    component,
)
from msda_bench.engine import machine, optim, prepare
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell, Ref
from tests.engine.conftest import METHODS, NoFiles, train_with_weights

MakeCell = Callable[..., Cell]


def result(record: Record) -> tuple[Any, ...]:
    """The parts of a record that are results."""
    return record.key, record.status, record.outcome, record.curves, record.bound, record.validation


@pytest.fixture
def trainer(registry: Registry, files: NoFiles) -> Trainer:
    return Trainer(registry, files, "cpu")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(trainer: Trainer, make_cell: MakeCell, method: str) -> None:
    (record,) = trainer.train([make_cell(method, epochs=8)])
    assert record.status == "ok"
    assert record.outcome is not None
    assert record.outcome.n_test == 90
    assert record.outcome.n_correct is not None
    assert record.outcome.n_correct > 55
    assert record.curves is not None
    k = len(record.curves.groups)
    assert k == (1 if METHODS[method][0] in {"pooled", "target_only"} else 2)
    assert [len(row) for row in record.curves.weights] == [k] * 8
    assert sum(record.curves.weights[-1]) == pytest.approx(1, abs=1e-5)
    assert record.curves.risks[-1][0] < record.curves.risks[0][0]
    assert record.target_labels == (method == "TAR")
    assert 0.5 < record.validation["source_accuracy"] <= 1


@pytest.mark.parametrize("method", ["DARN", "MDMN", "SRC"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_every_optimizer_trains(trainer: Trainer, make_cell: MakeCell, method: str, optimizer: str) -> None:
    params = {
        "adam": {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
        "sgd": {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.0},
    }[optimizer]
    (record,) = trainer.train([make_cell(method, epochs=8, optimizer=(optimizer, params))])
    assert record.outcome is not None
    assert record.outcome.n_correct is not None
    assert record.outcome.n_correct > 55


def test_regression_trains(trainer: Trainer, make_cell: MakeCell) -> None:
    (record,) = trainer.train([make_cell("SPECTRAL", dataset={"regression": True}, mu=0.001, epochs=8)])
    assert record.outcome is not None
    assert record.outcome.n_correct is None
    assert record.outcome.sum_squared_error is not None
    assert record.outcome.sum_squared_error > 0
    assert record.validation["source_risk"] < 0


@pytest.mark.parametrize("method", ["DARN", "MDMN", "DANN"])
def test_a_record_does_not_depend_on_order_other_cells_or_the_global_generator(
    registry: Registry, files: NoFiles, make_cell: MakeCell, method: str
) -> None:
    cells = [make_cell(method, seed=seed) for seed in (0, 1)] + [make_cell("TAR"), make_cell("SRC", target="a")]
    together = list(Trainer(registry, files, "cpu").train(cells))
    torch.manual_seed(99)
    torch.rand(7)
    backwards = list(Trainer(registry, files, "cpu").train(cells[::-1]))[::-1]
    alone = [next(Trainer(registry, files, "cpu").train([cell])) for cell in cells]
    assert list(map(result, together)) == list(map(result, backwards)) == list(map(result, alone))


def test_different_seeds_give_different_results(trainer: Trainer, make_cell: MakeCell) -> None:
    one, two = trainer.train([make_cell(seed=0), make_cell(seed=1)])
    assert one.curves != two.curves


def test_methods_of_a_seed_share_split_network_and_first_batch(trainer: Trainer, make_cell: MakeCell) -> None:
    """With mu = 0 and equal weights, two aggregators agree in a first epoch of one step."""
    darn, mdan = (replace(make_cell(m, mu=0.0, epochs=1), training=_one_step(make_cell())) for m in ("DARN", "MDAN"))
    first, second = trainer.train([darn, mdan])
    assert first.curves is not None
    assert second.curves is not None
    assert first.curves.risks == second.curves.risks


def _one_step(cell: Cell) -> Any:
    return cell.training.model_copy(update={"epochs": 1, "steps": 1})


@pytest.mark.parametrize("method", [name for name in METHODS if name != "TAR"])
@pytest.mark.parametrize("regression", [False, True])
def test_target_labels_affect_only_the_test_result(
    registry: Registry, files: NoFiles, make_cell: MakeCell, method: str, regression: bool
) -> None:
    mu = 0.001
    clean = make_cell(method, dataset={"regression": regression}, mu=mu)
    poisoned = make_cell(method, dataset={"regression": regression, "poison": "c"}, mu=mu)
    one, other = (train_with_weights(registry, files, cell) for cell in (clean, poisoned))
    assert one["outcome"] != other["outcome"]
    for seen in ("weights", "curves", "bound", "validation"):
        assert one[seen] == other[seen], seen


def test_target_labels_affect_the_oracle(registry: Registry, files: NoFiles, make_cell: MakeCell) -> None:
    cells = make_cell("TAR"), make_cell("TAR", dataset={"poison": "c"})
    one, other = (train_with_weights(registry, files, cell) for cell in cells)
    assert one["weights"] != other["weights"]


@pytest.mark.parametrize("compiled", [True, False])
def test_sparse_bags_with_lazy_updates_train_like_dense_ones(
    registry: Registry, files: NoFiles, make_cell: MakeCell, monkeypatch: pytest.MonkeyPatch, *, compiled: bool
) -> None:
    for module in (machine, optim):
        monkeypatch.setattr(module, "can_compile", lambda: compiled)
    (sparse,) = Trainer(registry, files, "cpu").train([make_cell(epochs=5)])
    monkeypatch.setattr(prepare, "as_examples", lambda inputs, _: torch.from_numpy(inputs.toarray()))
    (dense,) = Trainer(registry, files, "cpu").train([make_cell(epochs=5)])
    assert sparse.curves is not None
    assert dense.curves is not None
    for one, other in zip(sparse.curves.risks, dense.curves.risks, strict=True):
        assert one == pytest.approx(other, rel=2e-3)


@component
class NanAfterOne(Aggregator):
    """Returns NaN."""

    name = "nan"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        return Aggregate((risks + mu * gaps).sum() * float("nan"), risks.detach() * float("nan"), state)


@component
class WrongShape(Aggregator):
    """Returns an objective that is not reduced to a scalar."""

    name = "wrong_shape"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        return Aggregate(risks, risks.detach(), state)


class _Square(nn.Module):
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return source.mean(1) @ target.mean(0).outer(target.mean(0))


@component
class WrongGap(Discrepancy):
    """Returns a matrix of gaps."""

    name = "wrong_gap"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        return _Square()


def _with(registry: Registry, *classes: type[Any]) -> Registry:
    return Registry([*registry.entries, *(Entry(cls.kind, cls, "stranger", "1.2") for cls in classes)])


def _swap(cell: Cell, kind: str, name: str) -> Cell:
    ref = replace(getattr(cell, kind), name=name, distribution="stranger", version=1, params={})
    return replace(cell, **{kind: ref})


def test_a_nan_is_recorded_as_diverged(registry: Registry, files: NoFiles, make_cell: MakeCell) -> None:
    trainer = Trainer(_with(registry, NanAfterOne), files, "cpu")
    (record,) = trainer.train([_swap(make_cell(), "aggregator", "nan")])
    assert record.status == "diverged"
    assert record.outcome is None
    assert record.message == "a risk, gap or weight was not finite in epoch 1"
    assert record.curves is not None
    assert record.curves.risks == []


def test_exploding_regression_is_recorded_as_diverged(trainer: Trainer, make_cell: MakeCell) -> None:
    params = {"lr": 1e6, "momentum": 0.0, "weight_decay": 0.0}
    cell = make_cell("SRC", dataset={"regression": True}, mu=0.0, optimizer=("sgd", params), epochs=5)
    (record,) = trainer.train([cell])
    assert record.status == "diverged"


def test_wrong_shapes_are_blamed_on_the_component_and_its_distribution(
    registry: Registry, files: NoFiles, make_cell: MakeCell
) -> None:
    trainer = Trainer(_with(registry, WrongShape, WrongGap), files, "cpu")
    with pytest.raises(BenchError, match=r"aggregator 'wrong_shape' of stranger .* shape \(2,\) .* asks for \(\) and"):
        next(trainer.train([_swap(make_cell(), "aggregator", "wrong_shape")]))
    with pytest.raises(BenchError, match=r"discrepancy 'wrong_gap' of stranger .*\(2, 8\).* asks for \(2,\)"):
        next(trainer.train([_swap(make_cell(), "discrepancy", "wrong_gap")]))


def test_training_restores_process_settings(trainer: Trainer, make_cell: MakeCell) -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    next(trainer.train([make_cell()]))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.tensor(1e-40) * 1 != 0  # denormals are back


@component
class NanLast(Aggregator):
    """An objective of NaN with finite risks and weights."""

    name = "nan_last"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        return Aggregate(risks.sum() * float("nan"), torch.full_like(risks, 0.5).detach(), state)


@component
class OffSimplex(Aggregator):
    """Weights that do not sum to 1."""

    name = "off_simplex"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        return Aggregate(risks.mean(), torch.full_like(risks, -5.0), state)


@component
class NoAggregate(Aggregator):
    """Returns only the objective."""

    name = "no_aggregate"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        return risks.mean()  # type: ignore[return-value]


def test_non_finite_outputs_give_no_accuracy(registry: Registry, files: NoFiles, make_cell: MakeCell) -> None:
    cell = _swap(make_cell(epochs=1), "aggregator", "nan_last")
    cell = replace(cell, training=cell.training.model_copy(update={"steps": 1}))
    (record,) = Trainer(_with(registry, NanLast), files, "cpu").train([cell])
    assert record.status == "diverged"
    assert record.outcome is None
    assert record.message == "an output on the target's test examples was not finite"


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (OffSimplex, r"aggregator 'off_simplex' of stranger left the simplex: weights from -5 to -5, sums -10 to -10"),
        (NoAggregate, r"aggregator 'no_aggregate' of stranger gave a Tensor; .* an Aggregate of three tensors"),
    ],
)
def test_an_aggregator_that_breaks_its_contract_is_named(
    registry: Registry, files: NoFiles, make_cell: MakeCell, cls: type[Aggregator], told: str
) -> None:
    with pytest.raises(BenchError, match=told):
        next(Trainer(_with(registry, cls), files, "cpu").train([_swap(make_cell(), "aggregator", cls.name)]))


@component
class WrongWidth(Backbone):
    """Declares one feature more than it has."""

    name = "wrong_width"

    def build(self, task: Task, input: InputSpec, files: Any = None) -> Network:
        features = nn.Sequential(BagLinear(input.shape[0], 4), nn.ReLU())
        return Network(features, nn.Linear(4, task.outputs), 5)


@component
class Slanted(Backbone):
    """A parameter with non-contiguous memory, like channels_last convolutions."""

    name = "slanted"

    def build(self, task: Task, input: InputSpec, files: Any = None) -> Network:
        head = nn.Linear(4, task.outputs)
        head.weight = nn.Parameter(0.1 * torch.randn(4, task.outputs).t())
        return Network(nn.Sequential(BagLinear(input.shape[0], 4), nn.ReLU()), head, 4)


def test_a_backbone_of_the_wrong_width_is_named(registry: Registry, files: NoFiles, make_cell: MakeCell) -> None:
    told = r"backbone 'wrong_width' of stranger gave features of shape \(30, 4\) for 30 examples; .*\(30, 5\)"
    with pytest.raises(BenchError, match=told):
        next(Trainer(_with(registry, WrongWidth), files, "cpu").train([_swap(make_cell(), "backbone", "wrong_width")]))


def test_torch_trains_parameters_that_no_kernel_supports(
    registry: Registry, files: NoFiles, make_cell: MakeCell
) -> None:
    cell = _swap(make_cell("SRC", mu=0.0, epochs=20), "backbone", "slanted")
    (record,) = Trainer(_with(registry, Slanted), files, "cpu").train([cell])
    assert record.curves is not None
    assert record.curves.risks[-1][0] < record.curves.risks[0][0]


@component
class Raises(Validator):
    """Raises."""

    name = "raises"

    def score(self, view: ValidationView) -> float:
        raise RuntimeError("boom")


@component
class Nan(Validator):
    """Knows nothing."""

    name = "nan"

    def score(self, view: ValidationView) -> float:
        return float("nan")


@component
class Mixing(Validator):
    """Expects of mixtures what the outputs of a linear model say of them."""

    name = "mixing"

    def score(self, view: ValidationView) -> float:
        outputs = view.target_outputs
        first = torch.arange(len(outputs)).repeat(6)
        second = first.flip(0)
        for share in (1.0, 0.25, 0.0):
            expected = share * outputs[first] + (1 - share) * outputs[second]
            torch.testing.assert_close(view.mix(first, second, share), expected, rtol=1e-4, atol=1e-5)
        return float(outputs.std())


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("stack", [1, 2])
def test_a_validator_sees_its_own_run_predict_mixtures(
    registry: Registry, files: NoFiles, make_cell: MakeCell, stack: int, *, sparse: bool
) -> None:
    mixing = (Ref("validator", "mixing", 1, "stranger", {}),)
    cells = [
        replace(make_cell(seed=seed, dataset={"sparse": sparse}, backbone=("linear", {})), validators=mixing)
        for seed in (0, 1)
    ]
    records = list(Trainer(_with(registry, Mixing), files, "cpu", stack).train(cells))
    assert [record.message for record in records] == [None, None]
    assert len({record.validation["mixing"] for record in records} - {0.0}) == 2


def test_a_failing_validator_loses_only_its_score(registry: Registry, files: NoFiles, make_cell: MakeCell) -> None:
    cell = make_cell()
    strangers = [Ref("validator", name, 1, "stranger", {}) for name in ("raises", "nan")]
    cell = replace(cell, validators=(*cell.validators, *strangers))
    (record,) = Trainer(_with(registry, Raises, Nan), files, "cpu").train([cell])
    assert record.status == "ok"
    assert list(record.validation) == ["source_accuracy"]
    raised, gave = str(record.message).split("; ")
    assert re.fullmatch(r"validator 'raises' at .*test_train\.py:[0-9]+ raised RuntimeError: boom", raised)
    assert gave == "validator 'nan' gave nan"
    assert record.provenance["distributions"]["stranger"] == "1.2"
