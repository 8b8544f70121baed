"""Checks that an experiment's network can be built for its data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from msda_bench.api import FittedScheme, GivenScheme
from msda_bench.blame import blaming
from msda_bench.errors import BenchError, BlamedError, PluginError, message_of
from msda_bench.plugins.process_state import restored
from msda_bench.suite.facts import Facts
from msda_bench.suite.mistakes import Fault


def check_network(facts: Facts) -> Iterator[Fault]:
    """What the backbone says of an input that it does not support; whatever else it raises, training reports.

    The modules are made without memory or weights.
    """
    schemes = [method.scheme.component for method in facts.file.methods.values()]
    if facts.backbone is None or all(isinstance(scheme, FittedScheme | GivenScheme) for scheme in schemes):
        return
    import torch

    try:
        with warnings.catch_warnings(), restored(), torch.device("meta"), blaming(()):
            warnings.simplefilter("ignore")
            facts.backbone.component.build(facts.task, facts.network_input, None)
    except BlamedError:
        return
    except PluginError as error:
        yield Fault(("backbone",), message_of(error, 1000))
    except BenchError:
        return
