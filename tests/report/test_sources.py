"""What each source does: found by what cells say, tested like any pair, told in one table a method."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from msda_bench.api import Dataset, DomainData, InputSpec, Task, component
from msda_bench.plugins import Entry, Registry
from msda_bench.report.problems import problems_of
from msda_bench.report.rounding import json_text
from msda_bench.report.sources import Source, SourceTable, Without, source_tables
from msda_bench.report.sources_json import sources_json
from msda_bench.report.sources_left_out import Run, left_out, settings
from msda_bench.report.sources_text import print_sources
from msda_bench.report.sources_worth import Worth
from msda_bench.stats.holm import holm
from msda_bench.stats.scores import collect_scores
from msda_bench.stats.wilcoxon import signed_rank
from msda_bench.store.record import Curves, Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

WEIGHTS = {"a": 0.6, "b": 0.3, "c": 0.1}
WORTH = {"a": 90.0, "b": 50.0, "c": 20.0}
SEEDS = tuple(range(8))


@component
class Known(Dataset):
    """Knows what its sources are worth."""

    name = "known"
    domains = ("a", "b", "c", "t")
    task = Task("classification", 2)
    input = InputSpec((1,))

    def load(self, domain, files):
        return DomainData(files, files)

    def relatedness(self, target):
        return WORTH


@dataclass
class Made:
    """A plan of one experiment for each set of sources, and its records."""

    plan: Plan
    records: dict[str, Record]

    def tables(self, *datasets: type[Dataset]) -> tuple[SourceTable, ...]:
        return source_tables(self.plan, self.records, Worth(registry(*datasets)))


def registry(*datasets: type[Dataset]) -> Registry:
    return Registry([Entry("dataset", one, "tests", "0") for one in datasets])


def make(
    correct: Callable[[str, int], int | None],
    experiments: Mapping[str, str],
    methods: tuple[str, ...] = ("DARN",),
    change: Callable[[dict[str, Any], str], dict[str, Any]] = lambda cell, _: cell,
    pooled: bool = False,
) -> Made:
    """`correct(sources, seed)` of 100 test examples, None for a missing run; experiments have sources such as "abc"."""
    cells, records, tables = [], {}, []
    for name, sources in experiments.items():
        rows = tuple(Method(method, False, "", ()) for method in methods)
        tables.append(Experiment(name, "known", "classification", ("t",), rows, SEEDS))
        for method in methods:
            for seed in SEEDS:
                key = f"{name} {method} {seed}"
                cells.append(PlannedCell(name, method, "t", seed, key))
                found = correct(sources, seed)
                if found is None:
                    continue
                dataset = {"kind": "dataset", "name": "known", "version": 1, "params": {"train": 9}}
                cell = {"dataset": dataset, "target": "t", "sources": list(sources), "seed": seed, "scheme": method}
                groups = [list(sources)] if pooled else [[source] for source in sources]
                weights = [1.0] if pooled else [WEIGHTS[source] for source in sources]
                curves = Curves(groups, [weights], [weights], [weights])
                records[key] = Record(key, change(cell, name), "ok", Outcome(100, n_correct=found), curves)
    return Made(Plan("made", tuple(tables), tuple(cells)), records)


ALL_BUT_ONE = {"all": "abc", "no-a": "bc", "no-b": "ac", "no-c": "ab"}


def scored(sources: str, seed: int) -> int:
    """Without a 10 less, without b as good, without c 5 more; noise differs by experiment."""
    level, step = {"abc": (60, 1), "bc": (50, 2), "ac": (60, 3), "ab": (65, 4), "a": (40, 1)}[sources]
    return level + step * seed % 5


def test_each_source_is_left_out_and_tested():
    (table,) = make(scored, ALL_BUT_ONE).tables(Known)
    assert (table.scores.experiment.name, table.method, table.target) == ("all", "DARN", "t")
    assert [one.name for one in table.sources] == ["a", "b", "c"]
    assert {one.name: one.weight for one in table.sources} == WEIGHTS
    assert {one.name: one.worth for one in table.sources} == WORTH
    assert [without(one).experiment for one in table.sources] == ["no-a", "no-b", "no-c"]
    lacking = [[scored(less, seed) - scored("abc", seed) for seed in SEEDS] for less in ("bc", "ac", "ab")]
    found = [without(one).change for one in table.sources]
    assert [one.effect and one.effect.mean for one in found] == [sum(differences) / 8 for differences in lacking]
    p_values = [signed_rank(differences, "two-sided").p for differences in lacking]
    assert [one.test.p for one in found] == p_values
    assert tuple(one.p_holm for one in found) == holm(p_values)
    assert [without(one).transfer for one in table.sources] == ["positive", "not told", "negative"]


def without(source: Source) -> Without:
    assert source.without is not None
    return source.without


def test_rank_correlation_is_scipys():
    (table,) = make(scored, {"all": "abc"}).tables(Known)
    assert table.rank_correlation == pytest.approx(spearmanr([0.6, 0.3, 0.1], [90, 50, 20]).statistic) == 1
    turned = replace(table, sources=tuple(replace(one, worth=-(one.worth or 0)) for one in table.sources))
    assert turned.rank_correlation == pytest.approx(-1)
    equal = replace(table, sources=tuple(replace(one, weight=0.5) for one in table.sources))
    assert equal.rank_correlation is None
    assert replace(table, sources=table.sources[:2]).rank_correlation is None


def test_an_experiment_that_differs_in_more_is_no_leave_one_out():
    def change(cell: dict[str, Any], name: str) -> dict[str, Any]:
        return cell | {"mu": 0.5 if name == "no-b" else 0.1}

    made = make(scored, ALL_BUT_ONE | {"two": "a"}, change=change)
    found = settings(made.plan, made.records)
    run = Run("all", "DARN", "t")
    assert set(left_out(run, found)) == {"a", "c"}
    tables = {table.scores.experiment.name: table for table in made.tables(Known)}
    assert tables["all"].sources[1].without is None
    assert "no-b" in tables  # nobody's smaller sibling, so it is shown for itself


def test_sources_are_known_by_name_and_not_by_their_number():
    made = make(lambda *_: 50, {"all": "ab", "other": "c", "twin": "ba"})
    assert left_out(Run("all", "DARN", "t"), settings(made.plan, made.records)) == {}


def test_a_method_that_pools_has_changes_and_no_weights():
    (table,) = make(scored, ALL_BUT_ONE, pooled=True).tables(Known)
    assert {one.weight for one in table.sources} == {None}
    assert without(table.sources[2]).transfer == "negative"
    assert table.rank_correlation is None
    assert make(scored, {"all": "abc"}, pooled=True).tables(Known) == ()


def test_few_pairs_and_equal_ones_tell_nothing():
    few = make(lambda sources, seed: scored(sources, seed) if seed < 3 else None, ALL_BUT_ONE)
    (table,) = few.tables(Known)
    assert {without(one).transfer for one in table.sources} == {"too few pairs"}
    assert (without(table.sources[0]).change.n_paired, without(table.sources[0]).change.n_planned) == (3, 8)
    (table,) = make(lambda *_: 50, ALL_BUT_ONE).tables(Known)
    assert {without(one).transfer for one in table.sources} == {"no differences"}


def test_without_any_pair_there_is_no_number(printed):
    made = make(lambda sources, seed: 50 if (len(sources) == 3) == (seed < 4) else None, ALL_BUT_ONE)
    (table,) = made.tables(Known)
    assert without(table.sources[0]).change.effect is None
    text = show(printed, made)
    assert "0/8  too few pairs" in text
    document = sources_json_of(made)
    assert document["tables"][0]["sources"][0]["without"]["p_holm"] is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_dataset_that_cannot_be_asked_is_told_of(version: int):
    worth = Worth(registry(Known) if version == 2 else registry())
    assert worth.of({"name": "known", "version": version, "params": {}}, "t") == {}
    (note,) = worth.notes
    assert note.startswith("what the sources of known are worth cannot be asked: ")
    assert ("is of version 1 here" if version == 2 else "unknown dataset") in note


def show(printed: Callable[..., str], made: Made, *, explain: bool = False, notes: tuple[str, ...] = ()) -> str:
    tables, scores = made.tables(Known), collect_scores(made.plan, made.records)

    def run(console: Any) -> None:
        print_sources(console, tables, scores, notes, explain=explain)

    return printed(run)


def sources_json_of(made: Made) -> dict[str, Any]:
    tables, scores = made.tables(Known), collect_scores(made.plan, made.records)
    text = json_text(sources_json(Path("here"), tables, scores, ["a note"], ["a fault"]))
    return json.loads(text)


def test_it_is_printed(printed):
    text = show(printed, make(scored, ALL_BUT_ONE), explain=True, notes=("a note",))
    lines = text.splitlines()
    assert lines[0] == "all (known), DARN, target t"
    assert lines[1].startswith("accuracy in percent: 61.62")
    (row,) = [line for line in lines if line.startswith("c ")]
    assert row.split()[:3] == ["c", "0.100", "20.0"]
    assert row.endswith("negative")
    assert "rank correlation of weight and worth (Spearman): +1.00" in lines
    assert "note: a note" in lines
    assert "weight: alpha" in text


def test_without_leave_outs_there_are_weights_alone(printed):
    text = show(printed, make(scored, {"all": "abc"}))
    assert "transfer" not in text
    assert "0.600" in text


def test_nothing_to_show_is_said(printed):
    made = make(lambda *_: None, {"all": "abc"})
    assert "none has been run yet" in show(printed, made)
    assert all(problems_of(one) for one in collect_scores(made.plan, made.records))


def test_json_has_all_of_it():
    document = sources_json_of(make(scored, ALL_BUT_ONE))
    assert (document["schema"], document["command"], document["notes"], document["faults"]) == (
        1,
        "sources",
        ["a note"],
        ["a fault"],
    )
    (table,) = document["tables"]
    assert table["rank_correlation"] == 1
    found = table["sources"][2]
    assert (found["source"], found["weight"], found["worth"]) == ("c", 0.1, 20)
    assert found["without"]["transfer"] == "negative"
    assert found["without"]["n_paired"] == 8
