"""A plan: the tables and runs of a suite, without the details of training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from msda_bench.component.base import PLAIN_NAME
from msda_bench.component.task import TASK_KINDS, MetricInfo
from msda_bench.suite.protocol import Share
from msda_bench.suite.published import STRICT, PublishedNumbers

ORACLE = "oracle"
"""Selection by the target's test score, which is not available in practice."""
CHANCE = "chance"
"""The expected score of a random choice among the candidates; criteria are compared with it."""
CHANCE_REFERENCE = "chance"
"""The method, of the scheme of this name, that looks at no input; diverged runs count with its score."""
FIRST = "first"
"""The choice of candidate 0, without any selection."""
TARGET_ACCURACY = "target_accuracy"
"""Selection of an oracle by its score on labelled examples of the target that it holds out from training."""
SELECTED_BY = "Settings selected"
"""The beginning of an experiment's note on what selects for each target and seed."""


def parts_of(criterion: str) -> list[str]:
    """The criteria in a sum of standardised scores such as `source_accuracy+infomax`; of any other only itself."""
    return criterion.split("+")


# Limits on plan.json, which may come from anyone.
Text: TypeAlias = Annotated[str, Field(max_length=10_000)]
Name: TypeAlias = Annotated[str, Field(pattern=PLAIN_NAME)]
"""Names become parts of file names."""
Whole: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
SOME = Field(min_length=1, max_length=100_000)
MANY = Field(max_length=100_000)


DEFAULT_METRICS = {kind.name: kind.metric for kind in TASK_KINDS.values()}
"""The default metric of tables, by task."""


@dataclass(frozen=True)
class Search:
    """The selection of a method's settings, for each target and seed.

    `by` is the validator whose best score decides, or `ORACLE`; each candidate sets paths to plain JSON
    values.
    """

    by: Text
    candidates: Annotated[tuple[dict[Text, Any], ...], SOME]


@dataclass(frozen=True)
class Method:
    """A row of the leaderboard.

    A reference is an oracle such as TAR, shown but not ranked or tested. The recipe is one line: scheme, discrepancy,
    aggregator and mu. The distributions, with versions, are those of its components. `sees_target` is whether it is
    trained with the target's inputs, in no comparison of plans; None in plans from before this was kept.
    """

    name: Name
    reference: bool
    recipe: Text
    distributions: Annotated[tuple[Text, ...], MANY]
    search: Search | None = None
    sees_target: bool | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Tuning:
    """The seeds on which settings are chosen, once for each method and target; the other seeds train the choices.

    `tracks` are the criteria whose choices are trained, first the one whose choices the tables show. A criterion such
    as `source_accuracy+infomax` adds standardised scores. `oracles` are the methods that see labels of the target: for
    every criterion but `FIRST` they are selected by their own, `Search.by`.
    """

    seeds: Annotated[tuple[Whole, ...], SOME]
    tracks: Annotated[tuple[Text, ...], SOME]
    oracles: Annotated[tuple[Name, ...], MANY] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How the methods of an experiment are compared: the `compare` of a suite, kept in the plan.

    `baseline` is the method on which the others should improve; by default the only method that pools without adapting.
    `pairs: all` compares all pairs of methods, `pairs: baseline` each method with the baseline and with the best one;
    by default all pairs of up to six methods are compared. `headroom` is a reference; where it is not shown to gain
    over the baseline, an experiment leaves comparisons across data sets.
    """

    __pydantic_config__ = STRICT
    test: Literal["wilcoxon"] = "wilcoxon"
    alpha: Share = 0.05
    baseline: Name | None = None
    pairs: Literal["all", "baseline"] | None = None
    headroom: Name | None = None

    @property
    def named_methods(self) -> dict[str, str]:
        """The methods that it names, by key."""
        named = {"baseline": self.baseline, "headroom": self.headroom}
        return {key: method for key, method in named.items() if method is not None}


@dataclass(frozen=True)
class Experiment(Comparison):
    """One dataset with one training configuration: one table, with targets as columns and methods as rows, in order.

    Attributes:
        notes: lines that a reader must know.
        published: all published numbers of these methods, so that a result folder has what it was compared with.
        criteria: those by which settings may be selected, the oracle last; empty if nothing is selected.
        metric: None for the default of the task.
        corrupted: the source whose labels the suite shuffles.
        without: the source that `leave_out_sources` removed.
        label_shift: whose shares of classes the suite changes, in words.
        tuning: with it, the runs of its seeds have candidates of all methods, too, and those at the other seeds are
            wanted only if a criterion chooses their candidate.
    """

    name: Name
    dataset: Text
    task: Text
    targets: Annotated[tuple[Text, ...], SOME]
    methods: Annotated[tuple[Method, ...], SOME]
    seeds: Annotated[tuple[Whole, ...], Field(min_length=1, max_length=10_000_000)]
    notes: Annotated[tuple[Text, ...], MANY] = ()
    published: PublishedNumbers | None = None
    criteria: Annotated[tuple[Text, ...], MANY] = ()
    metric: MetricInfo | None = None
    corrupted: Text | None = None
    without: Text | None = None
    label_shift: Text | None = None
    tuning: Tuning | None = None

    @property
    def is_altered(self) -> bool:
        """Whether a domain of its dataset is changed or left out, to see the effect."""
        return any(change is not None for change in (self.corrupted, self.without, self.label_shift))

    @property
    def every_seed(self) -> tuple[int, ...]:
        """The seeds of its runs: those on which settings are chosen, then those of its tables."""
        return self.seeds if self.tuning is None else (*self.tuning.seeds, *self.seeds)

    @property
    def measure(self) -> MetricInfo:
        """The metric that tables show: the suite's, or the task's default."""
        return self.metric or DEFAULT_METRICS[self.task]

    @property
    def references(self) -> frozenset[str]:
        """The methods that are shown but not ranked or tested."""
        return frozenset(method.name for method in self.methods if method.reference)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run's place in the tables; methods with the same settings share a key.

    `candidate` is the index among the method's candidates, None if there is nothing to select.
    """

    experiment: Name
    method: Name
    target: Text
    seed: Whole
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    candidate: Whole | None = None


@dataclass(frozen=True)
class Plan:
    """All tables of a suite, and the runs that fill them, experiment by experiment, in table order."""

    # Also that of the dataclasses in it, which have none of their own.
    __pydantic_config__ = STRICT

    suite: Name
    experiments: Annotated[tuple[Experiment, ...], MANY]
    cells: tuple[PlannedRun, ...]

    @property
    def most(self) -> tuple[PlannedRun, ...]:
        """The largest possible set of runs: at tuning seeds all, elsewhere as many candidates as criteria choose."""
        tables = {table.name: table.tuning for table in self.experiments if table.tuning is not None}

        def counts(run: PlannedRun) -> bool:
            tuning = tables.get(run.experiment)
            return tuning is None or run.seed in tuning.seeds or (run.candidate or 0) < len(tuning.tracks)

        return tuple(filter(counts, self.cells))
