"""A plan: the tables and cells of a suite, without the details of training.

It is kept in the result folder as plan.json, so that tables can be made, with their gaps, without the suite file and
without the plugins that trained the cells. It is validated when it is read, since anyone may have written it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from msda_bench.component.task import TASK_KINDS
from msda_bench.errors import StoreError
from msda_bench.suite.issues import PLAIN_NAME, dotted, issues_of, shown
from msda_bench.suite.protocol import Share
from msda_bench.suite.published import PublishedNumbers
from msda_bench.suite.run_spec import refuse_overflow

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
    """The criteria whose standardised scores a criterion such as `source_accuracy+infomax` adds; others are alone."""
    return criterion.split("+")


# Limits on plan.json, which may come from anyone.
Text: TypeAlias = Annotated[str, Field(max_length=10_000)]
Name: TypeAlias = Annotated[str, Field(pattern=PLAIN_NAME)]
"""Names become parts of file names."""
Whole: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)]
_SOME = Field(min_length=1, max_length=100_000)
_MANY = Field(max_length=100_000)
_STRICT = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True)
class MetricInfo:
    """The metric of an experiment, described for tables that do without its plugin.

    `params` are plain JSON values. `stored` is whether records hold its value, since it needs outputs; any other is
    computed from their counts.
    """

    name: Name
    label: Annotated[str, Field(min_length=1, max_length=80)]
    higher_is_better: bool
    percent: bool
    stored: bool = False
    params: dict[Text, Any] = field(default_factory=dict)

    @property
    def column(self) -> str:
        """Its name in csv files, such as accuracy_percent."""
        return f"{self.name}_percent" if self.percent else self.name

    @property
    def unit(self) -> str:
        """Its name in captions, and which direction is better, except for accuracy."""
        label = f"{self.label} in percent" if self.percent else self.label
        way = "higher" if self.higher_is_better else "lower"
        return label if self.name == "accuracy" else f"{label}, {way} is better"

    @property
    def sign(self) -> int:
        """1 if a higher score is better, -1 if a lower one is."""
        return 1 if self.higher_is_better else -1


DEFAULT_METRICS = {
    kind.name: MetricInfo(
        kind.metric.name,
        kind.metric.label,
        higher_is_better=kind.metric.higher_is_better,
        percent=kind.metric.percent,
    )
    for kind in TASK_KINDS.values()
}
"""The default metric of tables, by task."""


@dataclass(frozen=True)
class Search:
    """The selection of a method's settings, for each target and seed.

    `by` is the validator whose best score decides, or `ORACLE`; each candidate sets paths to plain JSON
    values.
    """

    by: Text
    candidates: Annotated[tuple[dict[Text, Any], ...], _SOME]


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
    distributions: Annotated[tuple[Text, ...], _MANY]
    search: Search | None = None
    sees_target: bool | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Tuning:
    """The seeds on which settings are chosen, once for each method and target; the other seeds train the choices.

    `tracks` are the criteria whose choices train, first the one whose choices the tables show. A criterion such as
    `source_accuracy+infomax` adds standardised scores. `oracles` are the methods that see labels of the target: in
    every track but `FIRST` their own criterion chooses, `Search.by`.
    """

    seeds: Annotated[tuple[Whole, ...], _SOME]
    tracks: Annotated[tuple[Text, ...], _SOME]
    oracles: Annotated[tuple[Name, ...], _MANY] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How the methods of an experiment are compared: the `compare` of a suite, kept in the plan.

    `baseline` is the method on which the others should improve; by default the only method that pools without adapting.
    `pairs: all` compares all pairs of methods, `pairs: baseline` each method with the baseline and with the best one;
    by default all pairs of up to six methods are compared. `headroom` is a reference; where it is not shown to gain
    over the baseline, an experiment leaves comparisons across data sets.
    """

    __pydantic_config__ = _STRICT
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
    targets: Annotated[tuple[Text, ...], _SOME]
    methods: Annotated[tuple[Method, ...], _SOME]
    seeds: Annotated[tuple[Whole, ...], Field(min_length=1, max_length=10_000_000)]
    notes: Annotated[tuple[Text, ...], _MANY] = ()
    published: PublishedNumbers | None = None
    criteria: Annotated[tuple[Text, ...], _MANY] = ()
    metric: MetricInfo | None = None
    corrupted: Text | None = None
    without: Text | None = None
    label_shift: Text | None = None
    tuning: Tuning | None = None

    @property
    def is_altered(self) -> bool:
        """Whether its domains are not those of its dataset, to see what one of them does."""
        return not self.corrupted == self.without == self.label_shift is None

    @property
    def every_seed(self) -> tuple[int, ...]:
        """The seeds of its cells: those on which settings are chosen, then those of its tables."""
        return (*(self.tuning.seeds if self.tuning else ()), *self.seeds)

    @property
    def measure(self) -> MetricInfo:
        """The metric that tables show: the suite's, or the task's default."""
        return self.metric or DEFAULT_METRICS[self.task]

    @property
    def references(self) -> frozenset[str]:
        """The methods that are shown but not ranked or tested."""
        return frozenset(method.name for method in self.methods if method.reference)


@dataclass(frozen=True)
class PlannedRun:
    """The place of a cell in the tables; methods with the same settings share a key.

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
    """All tables of a suite, and the cells that fill them, experiment by experiment, in table order."""

    # Also that of the dataclasses in it, which have none of their own.
    __pydantic_config__ = _STRICT

    suite: Name
    experiments: Annotated[tuple[Experiment, ...], _MANY]
    cells: tuple[PlannedRun, ...]

    @property
    def most(self) -> tuple[PlannedRun, ...]:
        """Its cells, of those whose settings are chosen on tuning seeds as many as the tracks can choose at most."""
        tables = {table.name: table.tuning for table in self.experiments if table.tuning is not None}

        def counts(cell: PlannedRun) -> bool:
            tuning = tables.get(cell.experiment)
            return tuning is None or cell.seed in tuning.seeds or (cell.candidate or 0) < len(tuning.tracks)

        return tuple(filter(counts, self.cells))


PLAN_SCHEMA = 1
"""Version of the layout."""
PLAN_LIMIT = 1 << 29
"""The maximum size of a plan.json in bytes, enough for two million cells."""
MOST_RUNS = 5_000_000
"""The maximum number of runs in a plan, each a row of every frame of results."""
_FEW = 10_000
_MOST_A_CELL = 10
"""The maximum number of runs for each cell of a plan, unless they are few; a plan from a suite has one."""


class NewerPlanError(StoreError):
    """A plan in a layout of a newer msda-bench."""


def _of_this_layout(schema: object) -> object:
    if isinstance(schema, int) and schema > PLAN_SCHEMA:
        raise NewerPlanError(
            f"plan.json: is of layout {shown(schema)}, but this msda-bench reads {PLAN_SCHEMA}; install a newer one"
        )
    if type(schema) is not int or schema != PLAN_SCHEMA:
        raise _no_plan(f"schema must be {PLAN_SCHEMA}, not {shown(schema)}")
    return schema


@dataclass(frozen=True)
class _RecordedExperiment(Experiment):
    """An experiment with the former options of plans that were recorded before these were removed."""

    against: Name | None = None
    margin: float | None = None
    primary: tuple[Name, ...] = ()

    @property
    def current(self) -> Experiment:
        """The experiment without former options and the former criterion EnsV."""
        values = {column.name: getattr(self, column.name) for column in fields(Experiment)}
        values["criteria"] = tuple(by for by in self.criteria if by != "ensv")
        if self.against is not None:
            values["pairs"] = "baseline"
        return Experiment(**values)


@dataclass(frozen=True)
class _File(Plan):
    experiments: Annotated[tuple[_RecordedExperiment, ...], _MANY]
    schema: Annotated[Any, AfterValidator(_of_this_layout), Field(validate_default=True)] = None


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON values, without those at their default, which must therefore never change."""
    return {"schema": PLAN_SCHEMA, **_adapter(Plan).dump_python(plan, mode="json", exclude_defaults=True)}


def parse_plan(data: bytes) -> Plan:
    """The plan in the bytes of a plan.json; a StoreError if it is invalid or too large."""
    try:
        refuse_overflow(data)
        # From JSON, because strict Python mode would refuse the list that JSON holds for a tuple.
        file = _adapter(_File).validate_json(data, strict=True)
    except ValidationError as error:
        first = next(issues_of(error))
        raise _no_plan(": ".join(filter(None, (dotted(first.loc), first.what)))) from None
    except (ValueError, RecursionError) as error:
        raise _no_plan(str(error)) from None
    plan = Plan(file.suite, tuple(table.current for table in file.experiments), file.cells)
    for wrong in _wrong(plan):
        raise _no_plan(wrong)
    return plan


def _no_plan(why: str) -> StoreError:
    return StoreError(f"plan.json: not a plan: {why}")


@functools.cache  # building one takes longer than reading most plans
def _adapter(of: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(of)


def _wrong(plan: Plan) -> Iterator[str]:
    if len({experiment.name for experiment in plan.experiments}) != len(plan.experiments):
        yield "two experiments have the same name"
    for table in plan.experiments:
        yield from _inconsistent(table)
    runs = sum(len(table.methods) * len(table.targets) * len(table.seeds) for table in plan.experiments)
    if runs > MOST_RUNS or runs > max(_FEW, _MOST_A_CELL * len(plan.cells)):
        yield f"its experiments name {runs} runs, and its `cells` {len(plan.cells)}; at most {MOST_RUNS} can be shown"
    yield from _misplaced(plan)


def _inconsistent(table: Experiment) -> Iterator[str]:
    names = [method.name for method in table.methods]
    for what, values in (("methods", names), ("targets", table.targets), ("seeds", table.every_seed)):
        if len(set(values)) != len(values):
            yield f"two {what} of {table.name} are the same"
    for key, name in table.named_methods.items():
        if name not in names:
            yield f"the {key} of {table.name} is none of its methods"
    if table.tuning and not set(table.tuning.tracks) <= set(table.criteria):
        yield f"a track of {table.name} is none of its criteria"
    if table.criteria and not any(method.search for method in table.methods):
        yield f"{table.name} has criteria to select settings by, but no method with settings to select"


def _misplaced(plan: Plan) -> Iterator[str]:
    """Cells that belong to no run, or occur twice, and runs with only some of their method's candidates."""
    places = {table.name: (frozenset(table.targets), frozenset(table.every_seed)) for table in plan.experiments}
    sizes = {
        (table.name, method.name): len(method.search.candidates) if method.search else 0
        for table in plan.experiments
        for method in table.methods
    }
    seen: set[tuple[object, ...]] = set()
    tried: Counter[tuple[str, str, str, int]] = Counter()
    for index, cell in enumerate(plan.cells):
        targets, seeds = places.get(cell.experiment, (frozenset(), frozenset()))
        size, candidate = sizes.get((cell.experiment, cell.method)), cell.candidate
        if size is None or cell.target not in targets or cell.seed not in seeds:
            yield f"cells[{index}] belongs to none of its experiments"
        elif (candidate is None) != (size == 0) or (candidate or 0) >= max(size, 1):
            yield f"cells[{index}].candidate must be one of its method's, not {shown(candidate)}"
        run = cell.experiment, cell.method, cell.target, cell.seed
        tried[run] += 1
        seen.add((*run, candidate))
        if len(seen) <= index:
            yield f"cells[{index}] is the same run as another"
    for run, count in tried.items():
        if count != (sizes.get(run[:2]) or count):
            yield f"the run of {run[1]} at target {run[2]}, seed {run[3]} is missing candidates"
