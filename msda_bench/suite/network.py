"""Checks that an experiment's network can be built for its data, and passes them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from msda_bench.api import Backbone, InputSpec, Predictor, Pretrained, Task
from msda_bench.component.backbone import network_input
from msda_bench.errors import BenchError, BlamedError, PluginError, message_of
from msda_bench.plugin_errors import package_of, plugin_errors
from msda_bench.plugins.process_state import restored
from msda_bench.suite.choice import Configured, with_param
from msda_bench.suite.issues import Issues, Loc, ValidationIssue
from msda_bench.suite.resolved import ResolvedExperiment

_ROWS = 2


def check_network(experiment: ResolvedExperiment) -> Issues:
    """Reports networks that cannot take the data: the suite's own, and those of a search.

    What a backbone raises for reasons other than its input is reported by training.
    """
    backbone = experiment.backbone
    schemes = [method.scheme.component for method in experiment.methods.values()]
    if backbone is None or all(isinstance(scheme, Predictor) for scheme in schemes):
        return
    why = _refusal(experiment, backbone)
    if why is not None:
        yield ValidationIssue(("backbone",), why)
        return
    for loc, searched in _searched(experiment, backbone):
        why = _refusal(experiment, searched)
        if why is not None:
            yield ValidationIssue(loc, why)


def _searched(
    experiment: ResolvedExperiment, usual: Configured[Backbone]
) -> Iterator[tuple[Loc, Configured[Backbone]]]:
    """The suite's network with each value that is searched for one of its parameters, and the value's place."""
    select = experiment.file.select
    if select is None:
        return
    spaces: list[tuple[Loc, Any]] = [(("select", "space"), select.space)]
    spaces += [(("methods", name, "search"), method.search) for name, method in experiment.methods.items()]
    prefix = f"backbone.{usual.name}."
    for loc, space in spaces:
        for path, values in space.items():
            if not path.startswith(prefix):
                continue
            for index, value in enumerate(values):
                with contextlib.suppress(PluginError, ValueError):  # `check_search` reports what its parameters refuse
                    yield (*loc, path, index), with_param(usual, path.removeprefix(prefix), value)


def _refusal(experiment: ResolvedExperiment, backbone: Configured[Backbone]) -> str | None:
    """Why a network cannot take the data; None if it can."""
    component, task = backbone.component, experiment.task
    try:
        seen = network_input(component, experiment.data.input)
        fault = _fault(component, task, seen)
    except BlamedError:
        return None
    except PluginError as error:
        return message_of(error, 1000)
    except BenchError:
        return None
    if fault is None:
        return None
    return f"backbone {backbone.name} of {backbone.entry.origin} cannot take input of shape {seen.shape}: {fault}"


def _fault(backbone: Backbone, task: Task, input: InputSpec) -> str | None:
    """Builds a network and passes two examples; why they do not pass, or None.

    Parts whose weights are files are left out. Bags of words do not pass, and a network for them, which may be large,
    is built without its numbers. Others are on the CPU, since torch's device "meta" imports its compiler, for a second.

    Raises:
        PluginError: the backbone refuses the input.
        BlamedError: it cannot be built.
    """
    import torch

    device = "meta" if input.sparse else "cpu"
    with warnings.catch_warnings(), restored(), torch.device(device):
        warnings.simplefilter("ignore")
        with plugin_errors(()):
            network = backbone.build(task, input, None)
        if input.sparse or isinstance(backbone, Pretrained) or backbone.files:
            return None
        try:
            with torch.no_grad(), plugin_errors({package_of(type(backbone))}):
                features = network.features.eval()(torch.zeros(_ROWS, *input.shape))
                outputs = network.predictor.eval()(features)
                shapes = tuple(features.shape), tuple(outputs.shape)
        except BenchError as error:
            return message_of(error, 300)
    wanted = (_ROWS, network.feature_dim), (_ROWS, task.outputs)
    return None if shapes == wanted else f"it gives {shapes[0]} and {shapes[1]} instead of {wanted[0]} and {wanted[1]}"
