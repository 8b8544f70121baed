"""The effect of each source: found from cells, tested like any pair, with one table per method and target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import msda_bench as mb
from msda_bench.api import Dataset, DomainData, InputSpec, Task, component
from msda_bench.plugins import Entry, Registry
from msda_bench.results.frame import load_results
from msda_bench.results.report import Report, Section
from msda_bench.results.serialize import document
from msda_bench.results.sources import COLUMNS, Worth, final_weights, sources, sources_summary, sources_tables
from msda_bench.results.tables import render
from msda_bench.store import Store
from msda_bench.store.record import Curves, Outcome, Record
from msda_bench.suite.plan import Experiment, Measure, Method, Plan, PlannedCell, Search
from tests.results.conftest import holm

WEIGHTS = {"a": 0.6, "b": 0.3, "c": 0.1}
WORTH = {"a": 90.0, "b": 50.0, "c": 20.0}
SEEDS = tuple(range(8))
ALL_BUT_ONE = {"all": "abc", "no-a": "bc", "no-b": "ac", "no-c": "ab"}
GOLDEN = Path(__file__).parent / "golden" / "sources.txt"


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


def worth(*datasets: type[Dataset]) -> Worth:
    return Worth(Registry([Entry("dataset", one, "tests", "0") for one in datasets]))


def key(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()


@dataclass
class Made:
    """The runs of a folder written by the store."""

    runs: pd.DataFrame

    def sources(self) -> pd.DataFrame:
        return sources(self.runs, worth(Known))

    def text(self) -> str:
        return "\n\n".join(
            f"{table.title}\n\n{render(table)}\n\n{' '.join(table.notes)}" for table in sources_tables(self.sources())
        )


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    """`make(correct, experiments)`: `correct(sources, seed)` of 100, None for a missing run; sources such as "abc"."""

    def build(
        correct: Callable[[str, int], int | None],
        experiments: Mapping[str, str],
        change: Callable[[dict[str, Any], str], dict[str, Any]] = lambda cell, _: cell,
        pooled: bool = False,
        base: Callable[[str, int], int] | None = None,
        search: Search | None = None,
    ) -> Made:
        """`base` gives the scores of the baseline SRC, which has no weights; `search` adds a second candidate."""
        store, cells, tables = Store.create(tmp_path / f"made{len(list(tmp_path.iterdir()))}"), [], []
        for name, own in experiments.items():
            methods = ("DARN",) if base is None else ("DARN", "SRC")
            rows = tuple(Method(method, False, "", (), search if method == "DARN" else None) for method in methods)
            options = {"baseline": "SRC"} if base else {}
            tables.append(Experiment(name, "known", "classification", ("t",), rows, SEEDS, **options))
            for row, seed in product(rows, SEEDS):
                tried = [None] if row.search is None else [0, 1]
                found = (correct if row.name == "DARN" else base)(own, seed)
                dataset = {"kind": "dataset", "name": "known", "version": 1, "params": {"train": 9}}
                cell = {
                    "dataset": dataset,
                    "target": "t",
                    "sources": list(own),
                    "seed": seed,
                    "scheme": {"kind": "scheme", "name": row.name},
                }
                groups = [list(own)] if pooled or row.name == "SRC" else [[source] for source in own]
                weights = [1.0] if len(groups) == 1 else [WEIGHTS[source] for source in own]
                curves = Curves(groups, [weights], [weights], [weights])
                for candidate in tried:
                    here = key(name, row.name, seed, candidate)
                    cells.append(PlannedCell(name, row.name, "t", seed, here, candidate))
                    if found is not None:
                        # The last candidate is selected with all sources, the first without one.
                        score = {"v": (candidate or 0) * (1 if name == "all" else -1.0)}
                        settings = change(cell, name) | ({} if candidate is None else {"mu": float(candidate)})
                        outcome = Outcome(100, found)
                        store.publish(Record(here, settings, "ok", outcome, curves, validation=score))
        store.write_plan(Plan("made", tuple(tables), tuple(cells)))
        return Made(load_results(store.folder))

    return build


def scored(own: str, seed: int) -> int:
    """Leaving out a costs 10, b nothing, and c gains 5; noise differs by experiment."""
    level, step = {"abc": (60, 1), "bc": (50, 2), "ac": (60, 3), "ab": (65, 4), "a": (40, 1)}[own]
    return level + step * seed % 5


def test_leaving_out_each_source_is_tested(make) -> None:
    found = make(scored, ALL_BUT_ONE).sources()
    assert tuple(found) == COLUMNS
    assert set(zip(found["experiment"], found["method"], found["target"], strict=True)) == {("all", "DARN", "t")}
    assert dict(zip(found["source"], found["weight"], strict=True)) == pytest.approx(WEIGHTS)
    assert dict(zip(found["source"], found["worth"], strict=True)) == WORTH
    assert found["without"].tolist() == ["no-a", "no-b", "no-c"]
    changes = [[scored(less, seed) - scored("abc", seed) for seed in SEEDS] for less in ("bc", "ac", "ab")]
    assert found["mean_difference"].tolist() == [sum(differences) / 8 for differences in changes]
    assert found["mean_without"].tolist() == [
        sum(scored(less, seed) for seed in SEEDS) / 8 for less in ("bc", "ac", "ab")
    ]
    p_values = [mb.signed_rank(differences, "two-sided").p for differences in changes]
    assert found["p_two_sided"].tolist() == p_values
    assert found["p_holm"].tolist() == list(holm(p_values))
    assert found["outcome"].tolist() == ["worse", "unknown", "better"]
    assert found["reason"].tolist()[1] == "not significant"
    assert found["rank_correlation"].tolist() == [pytest.approx(spearmanr([0.6, 0.3, 0.1], [90, 50, 20]).statistic)] * 3


def test_weights_are_correlated_with_the_losses_of_the_method_and_the_baseline(make) -> None:
    worst_first = {"abc": 60, "bc": 60, "ac": 55, "ab": 50, "a": 50}
    made = make(scored, ALL_BUT_ONE, base=lambda own, _: worst_first[own])
    found = made.sources()
    darn = found[found["method"] == "DARN"]
    assert darn["loss_correlation"].tolist() == [pytest.approx(1)] * 3  # scored() is worse without a, better without c
    assert darn["baseline_loss_correlation"].tolist() == [pytest.approx(-1)] * 3
    (table,) = sources_summary(found)
    assert table.cells.to_dict("records") == [
        {
            "method": "DARN",
            "experiment": "all",
            "worth": "+1.00 (1)",
            "own loss": "+1.00 (1)",
            "baseline's loss": "-1.00 (1)",
        }
    ]
    assert make(scored, ALL_BUT_ONE).sources()["baseline_loss_correlation"].isna().all()
    assert not list(sources_summary(make(scored, ALL_BUT_ONE, pooled=True).sources()))


def test_a_run_without_a_source_is_found_whichever_candidates_are_selected(make) -> None:
    search = Search("v", ({"mu": 0.0}, {"mu": 1.0}))
    found = make(scored, ALL_BUT_ONE, search=search).sources()
    assert found["without"].tolist() == ["no-a", "no-b", "no-c"]
    assert found["n_paired"].tolist() == [8, 8, 8]


def test_an_experiment_with_more_differences_is_not_a_run_without_a_source(make) -> None:
    def change(cell: dict[str, Any], name: str) -> dict[str, Any]:
        return cell | {"mu": 0.5 if name == "no-b" else 0.1}

    found = make(scored, ALL_BUT_ONE | {"two": "a"}, change).sources()
    whole = found[found["experiment"] == "all"]
    assert whole["without"].isna().tolist() == [False, True, False]
    assert "no-b" in set(found["experiment"])  # no experiment has one source more, so it has rows itself
    # Sources match by name, not by number: neither "c" nor "ba" is "ab" without one source.
    assert make(lambda *_: 50, {"all": "ab", "other": "c", "twin": "ba"}).sources()["without"].isna().all()


def test_an_experiment_with_another_metric_is_not_a_run_without_a_source(make) -> None:
    made = make(scored, ALL_BUT_ONE)
    plan, other = made.runs.attrs["plan"], Measure("macro_f1", "macro F1", higher_is_better=True, percent=True)
    tables = [replace(table, metric=other) if table.name == "no-a" else table for table in plan.experiments]
    made.runs.attrs["plan"] = replace(plan, experiments=tuple(tables))
    found = made.sources()
    assert found.loc[found["experiment"] == "all", "without"].fillna("").tolist() == ["", "no-b", "no-c"]


def test_a_pooling_method_has_changes_but_no_weights(make) -> None:
    found = make(scored, ALL_BUT_ONE, pooled=True).sources()
    assert found["weight"].isna().all()
    assert found["outcome"].iloc[2] == "better"
    assert found["rank_correlation"].isna().all()
    assert make(scored, {"all": "abc"}, pooled=True).sources().empty


def test_few_equal_or_missing_pairs_show_nothing(make) -> None:
    few = make(lambda own, seed: scored(own, seed) if seed < 3 else None, ALL_BUT_ONE).sources()
    assert set(few["reason"]) == {"incomplete"}
    assert few[["n_paired", "n_planned"]].iloc[0].tolist() == [3, 8]
    assert set(make(lambda *_: 50, ALL_BUT_ONE).sources()["outcome"]) == {"same"}
    none = make(lambda own, seed: 50 if (len(own) == 3) == (seed < 4) else None, ALL_BUT_ONE)
    assert none.sources()[["mean_without", "mean_difference", "p_two_sided", "p_holm"]].isna().all(axis=None)
    assert none.text().count("0/8  incomplete") == 3


def test_a_dataset_that_cannot_be_asked_is_noted() -> None:
    for version, datasets, why in ((2, [Known], "version 1 is installed"), (1, [], "unknown dataset")):
        asked = worth(*datasets)
        assert asked.of({"name": "known", "version": version, "params": {}}, "t") == {}
        (note,) = asked.notes
        assert note.startswith("the worth of the sources of known is unknown: ")
        assert why in note


def test_tables_match_the_golden_files(make) -> None:
    text = make(scored, ALL_BUT_ONE).text() + "\n\n" + make(scored, {"all": "abc"}).text() + "\n"
    if not GOLDEN.exists():
        GOLDEN.write_text(text, encoding="utf-8", newline="\n")
        pytest.fail(f"{GOLDEN} was missing and is written now: read it, and keep it if it is right")
    assert text == GOLDEN.read_bytes().decode()


def test_json_has_all_rows(make) -> None:
    made = make(scored, ALL_BUT_ONE)
    (table,) = document(Report("sources", (Section(tuple(sources_tables(made.sources()))),)))["tables"]
    last = table["rows"][2]
    assert (last["rank_correlation"], last["n_ok"]) == (pytest.approx(1), 8)
    assert [last[name] for name in ("source", "weight", "worth", "without", "n_paired")] == ["c", 0.1, 20, "no-c", 8]


CURVES = ["experiment", "target", "method", "seed", "status", "epoch", "source", "part_of", "pooled", "weight"]


def curves(*runs: tuple[str, str, int, str, dict[str, float]]) -> pd.DataFrame:
    """Two epochs of runs of target, method, seed, status and the last epoch's weights; `a/0` is a part of `a`."""
    rows = [
        ("toy", target, method, seed, status, epoch, source, source.split("/")[0], "+" in source, weight * (epoch == 2))
        for target, method, seed, status, weights in runs
        for epoch in (1, 2)
        for source, weight in weights.items()
    ]
    return pd.DataFrame(rows, columns=CURVES).astype({"method": "category", "target": "category"})


def test_final_weights_are_means_over_the_seeds_that_are_ok() -> None:
    found = final_weights(
        curves(
            ("t", "SRC", 0, "ok", {"a + b": 1.0}),
            ("t", "DARN", 0, "ok", {"b": 0.8, "a": 0.2}),
            ("t", "DARN", 1, "ok", {"a": 0.4, "b": 0.6}),
            ("t", "DARN", 2, "diverged", {"a": 1.0, "b": 0.0}),
            ("u", "DARN", 0, "ok", {"c": 0.1, "b": 0.9}),
            ("u", "ONE", 0, "ok", {"c": 1.0}),
        )
    )
    assert list(found) == ["experiment", "method", "target", "source", "weight"]
    assert found["weight"].tolist() == pytest.approx([0.7, 0.3, 0.1, 0.9])
    expected = [("t", "b"), ("t", "a"), ("u", "c"), ("u", "b")]
    assert found[["method", "target", "source"]].values.tolist() == [["DARN", *place] for place in expected]
    assert final_weights(curves(("t", "SRC", 0, "ok", {"a + b": 1.0}))).empty


def test_parts_of_a_domain_are_summed() -> None:
    parts = ("t", "DARN", 0, "ok", {"a/0": 0.2, "a/1": 0.3, "b": 0.5})
    found = final_weights(curves(parts, ("u", "DARN", 0, "ok", {"b": 0.4, "c": 0.6})))
    assert found[["target", "source"]].values.tolist() == [["t", "a"], ["t", "b"], ["u", "b"], ["u", "c"]]
    assert found["weight"].tolist() == [0.5, 0.5, 0.4, 0.6]
    uneven = final_weights(curves(parts, ("t", "DARN", 1, "ok", {"a/0": 0.5, "b": 0.5})))
    assert np.isnan(uneven["weight"]).tolist() == [True, False]
