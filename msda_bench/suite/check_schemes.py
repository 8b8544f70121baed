"""Tries each method's scheme with its network and its discrepancy before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from msda_bench.api import (
    Aggregate,
    Aggregator,
    Batch,
    InputSpec,
    Network,
    Parts,
    PluginError,
    Scheme,
    Sizes,
)
from msda_bench.blame import blaming, package_of
from msda_bench.component.dataset import same_view
from msda_bench.component.parts import Modules, task_loss
from msda_bench.errors import BenchError, message_of
from msda_bench.functional import SparseRows
from msda_bench.plugins.process_state import restored
from msda_bench.suite.facts import Facts
from msda_bench.suite.mistakes import Fault
from msda_bench.suite.sources import batches_of, labelled_groups
from msda_bench.suite.spec import MethodSpec

_ROWS = 2
"""Examples of each group in the trial step."""


def check_schemes(facts: Facts, network: Network) -> Iterator[Fault]:
    """Methods whose scheme cannot be built, or cannot take a step without the target that its discrepancy ignores."""
    target = next(filter(facts.kept_sources, facts.targets), None)
    for name, method in facts.file.methods.items() if target is not None else ():
        if facts.task.kind in method.scheme.component.tasks:
            with restored():
                what = _fault(facts, method, network, target or "")
            if what is not None:
                yield Fault(("methods", name, "scheme"), what)


def _fault(facts: Facts, method: MethodSpec, network: Network, target: str) -> str | None:
    scheme, entry = method.scheme.component, method.scheme.entry
    sources, labels = facts.kept_sources(target), facts.labelled_target(method)
    try:
        with blaming(()):
            groups = labelled_groups(scheme, sources, target, facts.splitting(method), labels)
    except BenchError:  # reported in training
        return None
    if facts.training is not None and facts.training.epoch == "equal" and facts.training.batch != "all":
        try:
            batches_of(groups, len(sources))
        except ValueError as error:
            return f"scheme {entry.name!r}: {error}"
    discrepancy = method.discrepancy.component if method.discrepancy else None
    try:
        with entry.blamed(f"cannot be built for {facts.name}"):
            critic = scheme.build(network, len(groups), discrepancy)
    except BenchError as error:
        return message_of(error, 1000)
    if discrepancy is None or scheme.draws_target(discrepancy):
        return None
    return _needs_target(facts, method, network, critic, len(groups))


def _needs_target(facts: Facts, method: MethodSpec, network: Network, critic: nn.Module, k: int) -> str | None:
    """The fault of a scheme that takes a step with a batch of the target but not without it."""
    aggregator = method.aggregator.component if method.aggregator else None
    parts = _parts(facts, network, critic, aggregator, method.mu)
    sizes = Sizes((_ROWS,) * k, _ROWS, network.feature_dim, facts.task.outputs)
    tried = (_batch(facts, k, drawn=drawn) for drawn in (False, True))
    without, beside = (_step(method.scheme.component, parts, batch, sizes, aggregator) for batch in tried)
    if without is None or beside is not None:  # a step that fails either way may fail because the trial has few rows
        return None
    scheme, discrepancy = method.scheme.name, method.discrepancy.name if method.discrepancy else ""
    return (
        f"scheme {scheme!r} needs the target, but no batch of it is drawn with discrepancy {discrepancy!r}: "
        f"{without}; name another discrepancy, or let the scheme set needs_target = True"
    )


def _step(scheme: Scheme, parts: Parts, batch: Batch, sizes: Sizes, aggregator: Aggregator | None) -> str | None:
    """The line of what the scheme raises."""
    k, stage = len(batch.y), scheme.stages[0]
    try:
        with blaming({package_of(type(scheme))}):
            state = aggregator.start(torch.full((k,), float(_ROWS))) if aggregator else torch.zeros(0)
            batch = batch._replace(carried=scheme.carry(parts, sizes, stage))
            for phase in stage.phases:
                scheme.step(parts, batch, state, phase)
    except BenchError as error:
        return message_of(error)
    return None


def _parts(facts: Facts, network: Network, critic: nn.Module, aggregator: Aggregator | None, mu: float) -> Parts:
    def aggregate(risks: Tensor, gaps: Tensor, state: Tensor) -> Aggregate:
        if aggregator is None:
            raise PluginError("takes no aggregator, so it must not call one")
        return aggregator(risks, gaps, mu, state)

    modules = Modules({"features": network.features, "predictor": network.predictor, "critic": critic})
    functions = modules.functions()
    view = same_view if facts.frozen else facts.data.view
    return Parts(**functions, loss=task_loss(facts.task), aggregate=aggregate, mu=mu, view=view, modules=modules)


def _batch(facts: Facts, k: int, *, drawn: bool) -> Batch:
    """Examples of ones, or bags of one word, of the k groups and, if drawn, the target."""
    rows = (k + drawn) * _ROWS
    y: Any = torch.int64 if facts.task.kind == "classification" else torch.float32
    examples, places = _examples(facts.network_input, rows), torch.arange(_ROWS).repeat(k + drawn)
    return Batch(examples, torch.zeros(k, _ROWS, dtype=y), torch.zeros(2, dtype=torch.int32), rows=places)


def _examples(input: InputSpec, rows: int) -> Tensor | SparseRows:
    """Examples of ones, or bags of one word."""
    if not input.sparse:
        return torch.ones(rows, *input.shape)
    columns = torch.zeros(rows, dtype=torch.int64)
    return SparseRows(columns, torch.ones(rows), torch.arange(rows + 1), input.shape[0])
