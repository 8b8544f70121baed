"""The hooks: one for each kind of component, and one for executors.

A distribution names its module in the entry-point group `msda_bench`:

    [project.entry-points.msda_bench]
    mine = "my_package"

A module with executors is in the group `msda_bench.executors`, which is loaded only when something is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msda_bench.marker import hookspec

if TYPE_CHECKING:
    from msda_bench.api import Aggregator, Backbone, Component, Dataset, Discrepancy, Metric, SchemeBase, Validator


@hookspec
def msda_datasets() -> list[type[Dataset]]:
    """Dataset classes.

    Example:
        >>> from msda_bench.api import Dataset, DomainData, InputSpec, Task, component, hookimpl
        >>> import numpy as np
        >>> @component
        ... class Shifted(Dataset):
        ...     '''Two shifted copies of one line.'''
        ...     name = "shifted"
        ...     domains = ("near", "far")
        ...     task = Task("regression")
        ...     input = InputSpec((1,))
        ...     def load(self, domain, files):
        ...         x = np.linspace(0, 1, 2000, dtype=np.float32) + self.domains.index(domain)
        ...         return DomainData(x[:, None], 2 * x)
        >>> @hookimpl
        ... def msda_datasets():
        ...     return [Shifted]
    """


@hookspec
def msda_backbones() -> list[type[Backbone]]:
    """Backbone classes.

    Example:
        >>> from torch import nn
        >>> from msda_bench.api import Backbone, Count, Network, PluginError, component, hookimpl
        >>> @component
        ... class OneLayer(Backbone):
        ...     '''A single hidden layer.'''
        ...     name = "one_layer"
        ...     width: Count = 32
        ...     def build(self, task, input, files=None):
        ...         if input.sparse or len(input.shape) != 1:
        ...             raise PluginError("backbone one_layer needs dense vectors")
        ...         features = nn.Sequential(nn.Linear(input.shape[0], self.width), nn.ReLU())
        ...         return Network(features, nn.Linear(self.width, task.outputs), self.width)
        >>> @hookimpl
        ... def msda_backbones():
        ...     return [OneLayer]
    """


@hookspec
def msda_discrepancies() -> list[type[Discrepancy]]:
    """Discrepancy classes.

    Example:
        >>> from torch import nn
        >>> from msda_bench.api import Discrepancy, component, hookimpl
        >>> class MeanGap(nn.Module):
        ...     def forward(self, source, target):
        ...         return (source.mean(1) - target.mean(0)).square().sum(-1)
        >>> @component
        ... class Means(Discrepancy):
        ...     '''Squared distance between the mean features.'''
        ...     name = "means"
        ...     def build(self, feature_dim, k):
        ...         return MeanGap()
        >>> @hookimpl
        ... def msda_discrepancies():
        ...     return [Means]
    """


@hookspec
def msda_aggregators() -> list[type[Aggregator]]:
    """Aggregator classes.

    Example:
        >>> import torch
        >>> from msda_bench.api import Aggregate, Aggregator, Positive, component, hookimpl
        >>> @component
        ... class Softmin(Aggregator):
        ...     '''Softmax of minus the bound terms: the best sources count most.'''
        ...     name = "softmin"
        ...     gamma: Positive = 1.0
        ...     def __call__(self, risks, gaps, mu, state):
        ...         g = risks + mu * gaps
        ...         weights = torch.softmax(-self.gamma * g.detach(), dim=-1)
        ...         return Aggregate(weights @ g, weights, state)
        >>> @hookimpl
        ... def msda_aggregators():
        ...     return [Softmin]
    """


@hookspec
def msda_schemes() -> list[type[SchemeBase]]:
    """Classes of schemes and predictors.

    Example:
        >>> from msda_bench.api import Scheme, Step, component, hookimpl
        >>> @component
        ... class MeanRisk(Scheme):
        ...     '''The mean of the sources' risks, without adaptation.'''
        ...     name = "mean_risk"
        ...     uses_discrepancy = False
        ...     needs_target = False
        ...     def step(self, parts, batch, state, phase):
        ...         risks = parts.forward(batch).risks
        ...         return Step(risks.mean(), risks)
        >>> @hookimpl
        ... def msda_schemes():
        ...     return [MeanRisk]
    """


@hookspec
def msda_validators() -> list[type[Validator]]:
    """Validator classes.

    Example:
        >>> from msda_bench.api import Validator, component, hookimpl
        >>> @component
        ... class Confidence(Validator):
        ...     '''Mean largest probability on the target.'''
        ...     name = "confidence"
        ...     tasks = ("classification",)
        ...     needs_sources = False
        ...     def score(self, view):
        ...         return view.target_outputs.softmax(-1).amax(-1).mean().item()
        >>> @hookimpl
        ... def msda_validators():
        ...     return [Confidence]
    """


@hookspec
def msda_metrics() -> list[type[Metric]]:
    """Metric classes.

    Example:
        >>> from msda_bench.api import Metric, component, hookimpl
        >>> @component
        ... class Within(Metric):
        ...     '''The share of the test whose predicted class is at most one off.'''
        ...     name = "within_one"
        ...     label = "within one"
        ...     percent = True
        ...     def value(self, tested):
        ...         true, predicted, count = tested.confusion.unbind(-1)
        ...         return count[(true - predicted).abs() <= 1].sum().item() / tested.n
        >>> @hookimpl
        ... def msda_metrics():
        ...     return [Within]
    """


@hookspec
def msda_executors() -> list[type[Component]]:
    """Executor classes, in a module of the entry-point group `msda_bench.executors`.

    Example:
        >>> from msda_bench.executors import Executor, JobRunner, component, hookimpl
        >>> @component
        ... class Backwards(Executor):
        ...     '''This process, the last job first.'''
        ...     name = "backwards"
        ...     has_processes = False
        ...     def run(self, jobs, store, interrupt):
        ...         trainer = JobRunner(self.setup.load(), store)
        ...         for job in reversed(list(jobs)):
        ...             if not interrupt.requested:
        ...                 yield from trainer.run(job)
        >>> @hookimpl
        ... def msda_executors():
        ...     return [Backwards]
    """
