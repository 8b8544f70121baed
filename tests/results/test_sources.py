"""The effect of each source: found from cells, tested like any pair, with one table per method and target."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.api import Dataset, DomainData, InputSpec, Task, component
from msda_bench.plugins import Entry, Registry
from msda_bench.results.sources import SourceTransferability, final_weights, sources, sources_tables
from msda_bench.results.tables import csv_text, render
from msda_bench.store.record import Curves, Outcome
from msda_bench.suite.plan import Search
from tests.results.conftest import planned, with_cells, write_folder

WEIGHTS = {"a": 0.6, "b": 0.3, "c": 0.1}
WORTH = {"a": 90.0, "b": 50.0, "c": 20.0}
ALL_BUT_ONE = {"all": "abc", "all-without-a": "bc", "all-without-b": "ac", "all-without-c": "ab"}


@component
class Known(Dataset):
    """A dataset that knows the relatedness of its sources."""

    name = "known"
    domains = ("a", "b", "c", "t")
    task = Task("classification", 2)
    input = InputSpec((1,))

    def load(self, domain, files):
        return DomainData(files, files)

    def relatedness(self, target):
        return WORTH


def worth(*datasets):
    return SourceTransferability(Registry([Entry("dataset", dataset, "tests", "0") for dataset in datasets]))


def text_of(rows):
    return "\n\n".join(f"{table.title}\n\n{render(table)}\n\n{' '.join(table.notes)}" for table in sources_tables(rows))


@pytest.fixture
def make(tmp_path):
    """`make(correct, experiments)`: `correct(sources, seed)` of 100, None for a missing run; sources such as "abc"."""

    def build(correct, experiments=ALL_BUT_ONE, pooled=False, search=None):
        """With `search` the last of two candidates is selected with all sources, the first without one."""
        dataset = {"kind": "dataset", "name": "known", "version": 1, "params": {"train": 9}}
        parts = []
        for name, own in experiments.items():
            _, _, without = name.partition("all-without-")
            runs = [hits if hits is None else Outcome(100, hits) for hits in (correct(own, seed) for seed in range(8))]
            if search:
                runs = [[(run, {"v": 0}), (run, {"v": -1 if without else 1})] for run in runs]
            part = planned({"DARN": {"t": runs}}, name, "known", search=search, without=without or None)
            groups = [list(own)] if pooled else [[source] for source in own]
            weights = [1.0] if len(groups) == 1 else [WEIGHTS[source] for source in own]
            for key, record in part[2].items():
                part[2][key] = replace(record, curves=Curves(groups, *[[weights]] * 3))
            about = {"dataset": dataset, "target": "t", "sources": list(own)}
            parts.append(with_cells(part, lambda at, about=about: about | {"seed": at.seed, "mu": at.candidate or 0}))
        folder = write_folder(tmp_path / f"made{len(list(tmp_path.iterdir()))}", *parts)
        return sources(mb.load_results(folder), worth(Known))

    return build


def scored(own, seed):
    """Leaving out a costs 10, b nothing, and c gains 5; noise differs by experiment."""
    level, step = {"abc": (60, 1), "bc": (50, 2), "ac": (60, 3), "ab": (65, 4), "a": (40, 1)}[own]
    return level + step * seed % 5


@pytest.mark.parametrize(
    ("experiments", "options", "expected"),
    [
        pytest.param(ALL_BUT_ONE, {"search": Search("v", ({"mu": 0.0}, {"mu": 1.0}))}, "abc", id="other candidates"),
        pytest.param({"all": "abc", "all-without-c": "ab", "other": "c"}, {}, "c", id="of one source"),
    ],
)
def test_each_source_has_the_experiment_without_it(make, experiments, options, expected):
    rows = make(lambda *_: 50, experiments, **options)
    assert set(rows["experiment"]) == {"all"}
    assert "".join(rows.loc[rows["without"].notna(), "source"]) == expected
    assert set(rows["n_paired"].dropna()) == {8}


def test_a_pooling_method_has_changes_but_no_weights(make):
    rows = make(scored, pooled=True)
    assert rows["weight"].isna().all()
    assert rows["outcome"].iloc[2] == "better"
    assert make(scored, {"all": "abc"}, pooled=True).empty


def test_few_equal_or_missing_pairs_show_nothing(make):
    few = make(lambda own, seed: scored(own, seed) if seed < 3 else None)
    assert set(few["reason"]) == {"incomplete"}
    assert few[["n_paired", "n_planned"]].iloc[0].tolist() == [3, 8]
    assert set(make(lambda *_: 50)["outcome"]) == {"same"}
    none = make(lambda own, seed: 50 if (len(own) == 3) == (seed < 4) else None)
    assert none[["mean_without", "mean_difference", "p", "p_holm"]].isna().all(axis=None)
    assert text_of(none).count("0/8") == 3


def test_a_dataset_that_cannot_be_asked_is_noted():
    for version, datasets, why in ((2, [Known], "version 1 is installed"), (1, [], "unknown dataset")):
        asked = worth(*datasets)
        assert asked.of({"name": "known", "version": version, "params": {}}, "t") == {}
        (note,) = asked.notes
        assert note.startswith("the worth of the sources of known is unknown: ")
        assert why in note


def test_tables_match_the_golden_file(make, golden):
    rows = make(scored)
    golden("sources.txt", f"{text_of(rows)}\n\n{text_of(make(scored, {'all': 'abc'}))}\n\n{csv_text(rows)}")


CURVES = ["experiment", "target", "method", "seed", "status", "epoch", "source", "part_of", "pooled", "weight"]


def weights(*runs):
    """Of two epochs of runs of target, method, seed, status and the last one's weights; `a/0` is a part of `a`."""
    rows = [
        ("toy", target, method, seed, status, epoch, source, source.split("/")[0], "+" in source, weight * (epoch == 2))
        for target, method, seed, status, by_source in runs
        for epoch in (1, 2)
        for source, weight in by_source.items()
    ]
    curves = pd.DataFrame(rows, columns=CURVES).astype({"method": "category", "target": "category"})
    found = final_weights(curves)
    assert list(found) == ["experiment", "method", "target", "source", "weight"]
    return found.drop(columns="experiment").round(9).values.tolist()


def test_final_weights_are_means_over_the_seeds_that_are_ok():
    assert weights(
        ("t", "SRC", 0, "ok", {"a + b": 1.0}),
        ("t", "DARN", 0, "ok", {"b": 0.8, "a": 0.2}),
        ("t", "DARN", 1, "ok", {"a": 0.4, "b": 0.6}),
        ("t", "DARN", 2, "diverged", {"a": 1.0, "b": 0.0}),
        ("u", "DARN", 0, "ok", {"c": 0.1, "b": 0.9}),
        ("u", "ONE", 0, "ok", {"c": 1.0}),
    ) == [["DARN", *place] for place in (("t", "b", 0.7), ("t", "a", 0.3), ("u", "c", 0.1), ("u", "b", 0.9))]
    assert weights(("t", "SRC", 0, "ok", {"a + b": 1.0})) == []


def test_parts_of_a_domain_are_summed():
    parts = ("t", "DARN", 0, "ok", {"a/0": 0.2, "a/1": 0.3, "b": 0.5})
    (_, _, a, half), (_, _, b, rest) = weights(parts)
    assert (a, half, b, rest) == ("a", 0.5, "b", 0.5)
    uneven = weights(parts, ("t", "DARN", 1, "ok", {"a/0": 0.5, "b": 0.5}))
    assert [np.isnan(weight) for *_, weight in uneven] == [True, False]
