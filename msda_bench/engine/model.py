"""The modules of one run, and the plain functions that a scheme sees of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from msda_bench.api import (
    Aggregate,
    Aggregator,
    Backbone,
    Batch,
    DataError,
    Dataset,
    Discrepancy,
    EachDomain,
    Examples,
    Files,
    InputSpec,
    Metric,
    Parts,
    PluginError,
    Scheme,
    SchemeBase,
    Validator,
)
from msda_bench.component.backbone import network_input
from msda_bench.component.domain_data import Strength
from msda_bench.component.parts import Modules, same_view
from msda_bench.engine.settings import seeded
from msda_bench.plugin_errors import line_of
from msda_bench.plugins import Registry
from msda_bench.suite.choice import make_planned
from msda_bench.suite.run_spec import ComponentSpec, RunSpec

_M = TypeVar("_M", bound=nn.Module)


@dataclass(frozen=True)
class Components:
    """The live components of one cell."""

    dataset: Dataset
    backbone: Backbone
    scheme: SchemeBase
    discrepancy: Discrepancy | None
    aggregator: Aggregator | None
    validators: tuple[Validator, ...]
    metrics: tuple[Metric, ...] = ()

    @classmethod
    def of(cls, cell: RunSpec, registry: Registry) -> Components:
        """New components for a cell.

        Raises:
            PluginError: one is not installed, or in another version than the cell's.
            DataError: the user's file of the dataset has changed since the cell was planned.
        """
        make: Callable[[ComponentSpec], Any] = partial(make_planned, registry)
        dataset: Dataset = make(cell.dataset)
        if cell.dataset.file_paths and dataset.fingerprint() != cell.fingerprint:
            files = ", ".join(cell.dataset.file_paths.values())
            raise DataError(f"{files}: has changed since this run was planned; run the suite again")
        return cls(
            dataset=dataset,
            backbone=make(cell.backbone),
            scheme=make(cell.scheme),
            discrepancy=make(cell.discrepancy) if cell.discrepancy else None,
            aggregator=make(cell.aggregator) if cell.aggregator else None,
            validators=tuple(map(make, cell.validators)),
            metrics=tuple(map(make, cell.metrics or ())),
        )

    @cached_property
    def frozen(self) -> bool:
        """Whether the network gets frozen features instead of examples; the two may have the same shape."""
        return self.backbone.embedding(self.dataset.input) is not None

    @cached_property
    def input(self) -> InputSpec:
        """The network's input: the dataset's, or vectors if the backbone has frozen features."""
        return network_input(self.backbone, self.dataset.input)

    @cached_property
    def view(self) -> Callable[[Examples, Strength, Tensor], Examples]:
        """The dataset's views of its examples; frozen features have only one."""
        return same_view if self.frozen else self.dataset.view

    @property
    def draws_target(self) -> bool:
        """Whether a batch of the target is drawn in each step."""
        return self.scheme.draws_target(self.discrepancy)


def modules_of(modules: nn.Module, kind: type[_M]) -> dict[str, _M]:
    """The modules of a kind by name, such as those that get a key in every phase of a step; the critic's last."""
    return {name: module for name, module in modules.named_modules() if isinstance(module, kind)}


def batch_norms(modules: nn.Module) -> list[nn.modules.batchnorm._BatchNorm]:
    """All batch normalisations."""
    return [module for module in modules.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]  # noqa: SLF001 - as in `Trunk`


@contextlib.contextmanager
def restored_momenta(norms: Sequence[nn.modules.batchnorm._BatchNorm]) -> Iterator[None]:
    """Restores the momenta of batch normalisations after the block."""
    momenta = [norm.momentum for norm in norms]
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


@contextlib.contextmanager
def fixed_statistics(modules: nn.Module) -> Iterator[None]:
    """Batch normalisation uses the statistics of its batches, but none reaches the running ones."""
    norms = batch_norms(modules)
    with restored_momenta(norms):
        for norm in norms:
            norm.momentum = 0.0
        yield


def set_row_layout(norms: Sequence[EachDomain], batch: Batch) -> None:
    """Passes the row layout of a step, of one run or of a stack, to domain-specific normalisation."""
    groups, size = batch.y.shape[-2:]
    for norm in norms:
        norm.labelled = (size,) * groups
        norm.unlabelled = batch.rows.shape[-1] - groups * size


def build_model(
    cell: RunSpec,
    components: Components,
    k: int,
    files: Files,
    device: torch.device,
) -> tuple[nn.ModuleDict, int]:
    """Features, predictor and critic for k groups, with initial weights from the cell's own streams.

    The network's stream is the same for every method; the critic has a separate one.

    Returns:
        The modules by name, and the width of the features.
    """
    dataset = components.dataset
    with seeded(cell, "init network"):
        network = components.backbone.build(dataset.task, components.input, files)
    with seeded(cell, "init critic"):
        critic = cast("Scheme", components.scheme).build(network, k, components.discrepancy)
    modules = nn.ModuleDict(
        {
            "features": network.features,
            "predictor": network.predictor,
            "critic": critic,
        }
    )
    # Convolutions are faster with the channels last; other modules do not change.
    modules.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return modules, network.feature_dim


def make_parts(
    cell: RunSpec,
    components: Components,
    k: int,
    feature_dim: int,
    modules: Modules,
    mu: float | Tensor,
    aggregator: Aggregator | None,
) -> Parts:
    """What a scheme sees: the modules as functions that check each component's contract."""
    task = components.dataset.task
    functions = modules.functions()
    return Parts(
        features=_checked(functions["features"], cell, "features", feature_dim),
        predictor=_checked(functions["predictor"], cell, "outputs", task.outputs),
        critic=_checked_critic(functions["critic"], cell, k),
        loss=task.rules.losses,
        aggregate=_checked_aggregate(aggregator, cell, mu),
        mu=mu,
        view=components.view,
        modules=modules,
    )


def _checked(
    module: Callable[..., Tensor],
    cell: RunSpec,
    what: str,
    width: int,
) -> Callable[..., Tensor]:
    def call(x: Examples) -> Tensor:
        outputs = module(x)
        if outputs.shape != (len(x), width):
            ref = cell.backbone
            raise PluginError(
                f"backbone {ref.name!r} of {ref.distribution} gave {what} of shape {tuple(outputs.shape)} for {len(x)} "
                f"examples; the contract asks for ({len(x)}, {width})"
            )
        return outputs

    return call


def _checked_critic(critic: Callable[..., Any], cell: RunSpec, k: int) -> Callable[..., Any]:
    ref = cell.discrepancy
    if ref is None:
        return critic

    def gaps(*features: Any) -> Any:
        distances = critic(*features)
        if distances.shape != (k,) and not isinstance(features[0], str):  # a named submodule is the scheme's own
            raise PluginError(
                f"discrepancy {ref.name!r} of {ref.distribution} gave gaps of shape {tuple(distances.shape)}; "
                f"with {k} sources the contract asks for ({k},)"
            )
        return distances

    return gaps


def _checked_aggregate(
    aggregator: Aggregator | None, cell: RunSpec, mu: float | Tensor
) -> Callable[[Tensor, Tensor, Tensor], Aggregate]:
    ref = cell.aggregator
    who = "" if ref is None else f"aggregator {ref.name!r} of {ref.distribution}"

    def aggregate(risks: Tensor, gaps: Tensor, state: Tensor) -> Aggregate:
        if aggregator is None:
            raise PluginError(f"scheme {cell.scheme.name!r} takes no aggregator, so it must not call one")
        given = aggregator(risks, gaps, mu, state)
        are_tensors = isinstance(given, tuple) and all(isinstance(part, Tensor) for part in given)
        if not are_tensors or len(given) != len(Aggregate._fields):
            raise PluginError(
                f"{who} gave a {type(given).__name__}; the contract asks for an Aggregate of three tensors"
            )
        objective, weights, _ = given
        if objective.shape != () or weights.shape != risks.shape:
            raise PluginError(
                f"{who} gave an objective of shape {tuple(objective.shape)} and weights of shape "
                f"{tuple(weights.shape)}; with {len(risks)} sources the contract asks for () and ({len(risks)},)"
            )
        if risks.requires_grad and not objective.requires_grad:
            where = line_of(type(aggregator).__call__)
            raise PluginError(
                f"{who} ({where}) gave an objective without gradient, so nothing would be trained; "
                "do not detach the risks in it"
            )
        return Aggregate(*given)

    return aggregate
