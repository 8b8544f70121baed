"""Every number of docs/findings.md and of the openings of README and docs/index.md is that of the recorded runs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from tests.reading import TUNING, B, Reading, Selection, holds, over_targets, overview, plain, student, tracks_of

ROOT = Path(__file__).parent.parent
FINDINGS = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
RUN = ["experiment", "target", "method", "seed"]
pytestmark = pytest.mark.slow


def chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that accuracy on the sources selects, the first of equals; references by the target's labels."""
    merit = runs["validator:source_accuracy"].where(~runs["reference"].astype(bool), runs["score"])
    return runs.loc[merit.groupby([runs[name] for name in RUN]).idxmax()]


def section(title: str, text: str = FINDINGS) -> str:
    match = re.search(rf"^##? {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match is not None, title
    return match[1]


def rows(title: str) -> dict[str, list[str]]:
    """The cells of a section's table, by the first of each row."""
    lines = re.findall(r"^\|(.*)\|$", section(title), re.MULTILINE)[2:]
    return {first: rest for first, *rest in ([cell.strip() for cell in line.split("|")] for line in lines)}


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return mb.load_results(ROOT / "results" / "registered")


@pytest.fixture(scope="module")
def selection(runs: pd.DataFrame, reading: Reading) -> Selection:
    return Selection(runs, reading.counted)


@pytest.fixture(scope="module")
def reading(runs: pd.DataFrame) -> Reading:
    return Reading(tracks_of(runs))


def test_the_openings_are_what_the_records_give(reading: Reading) -> None:
    decisions = "\n".join(reading.decision_table())
    facts = ["1 point each (`digits` 1.5)", "eight candidates for each method, four tuning seeds and twenty others"]
    holds(section("What does multi-source adaptation gain?"), reading.opening(), *facts, "once, on 2026-11-26")
    assert decisions in FINDINGS
    sentences = [reading.opening(), reading.without_in_words("spoken-digits"), reading.on_a_new_task()]
    for name, more in {"README.md": [reading.what_survives()], "docs/index.md": []}.items():
        found = section("What we found", (ROOT / name).read_text(encoding="utf-8"))
        holds(found, *sentences, *more)
        assert decisions in found


def test_what_survives_is_what_the_records_give(reading: Reading) -> None:
    holds(section("What survives"), reading.what_survives(), reading.on_a_new_task())


def test_our_favourites_do_as_recorded(reading: Reading, selection: Selection) -> None:
    paper = over_targets(mb.load_results(ROOT / "results" / "paper-amazon")).mean()
    assert paper.drop("TAR").idxmax() == "DARN"
    holds(
        section("Against our own favourites").replace("**", ""),
        reading.of_method("DARN").replace("DARN is", "DARN, the method that this project began with, is"),
        f"({paper['DARN']:.1f} against SRC's {paper['SRC']:.1f})",
        selection.in_words(),
    )


def diverged(runs: pd.DataFrame) -> str:
    """How many runs have no score, and whose they are."""
    without = runs[runs["status"] == "diverged"]
    tuned = without["seed"].isin(TUNING)
    ((method, task),) = {*zip(without.loc[~tuned, "method"], without.loc[~tuned, "experiment"], strict=True)}
    evaluated = f"{(~tuned).sum()} evaluated runs diverged, all of {method} on {task} in track C"
    return f"{evaluated}, and count at chance; {tuned.sum()} more diverged at tuning seeds."


def test_the_tables_are_what_the_records_give(runs: pd.DataFrame, reading: Reading, selection: Selection) -> None:
    main_track = reading.chosen[B]
    tasks = {name: main_track[main_track["experiment"] == name] for name in reading.headroom}
    for title, table in {
        "Task by task": overview(tasks),
        "What else was registered": reading.checks_table(),
        "Single targets": reading.targets(),
        "Without `spoken-digits`": reading.without("spoken-digits"),
        "What selecting costs": selection.table(),
    }.items():
        assert "\n".join(table) in section(title), title
    holds(section("Without `spoken-digits`"), reading.without_in_words("spoken-digits"))
    holds(section("Task by task"), reading.without_headroom(), diverged(runs))
    holds(section("What else was registered"), "a probability of 80 %")
    holds(section("Single targets"), reading.targets_in_words(), "a false discovery rate of 5 %")


@pytest.fixture(scope="module")
def selected() -> pd.DataFrame:
    return chosen(mb.load_results(ROOT / "results" / "poisoned"))


def test_the_poisoned_source_does_what_is_recorded(selected):
    scores = selected.pivot(index=["experiment", "seed"], columns="method", values="score")
    clean, poisoned = scores.loc["fonts-clean"], scores.loc["fonts-poisoned"]
    change, shown = poisoned - clean, rows("A poisoned source")
    for method, (before, after, lost, _) in shown.items():
        expected = clean[method].mean(), poisoned[method].mean()
        assert [before, after] == [f"{mean:.1f}" for mean in expected], method
        assert lost == f"{change[method].mean():+.1f}", method
    more = {method: plain(student(change[method] - change["SRC"])) for method in ("DARN", "MDAN", "GroupDRO")}
    assert student(change["DARN"] - change["SRC"])[1] < 0  # not shown
    holds(
        section("A poisoned source"),
        f"DARN's loss is {more['DARN']} smaller than SRC's",
        f"loses nothing ({change['WJDOT'].mean():+.1f})",
        f"is {plain(student(poisoned['WJDOT'] - poisoned['SRC']))} below the poisoned SRC",
        f"give it {shown['MDAN'][3]} and {shown['GroupDRO'][3]}, and lose",
        f"{more['MDAN']} and {more['GroupDRO']} more than SRC",
    )


def test_the_poisoned_source_weighs_what_is_recorded(selected):
    curves = mb.load_curves(selected[selected["experiment"] == "fonts-poisoned"])
    last = curves[curves["epoch"] == curves["epoch"].max()]
    weights = last[(last["source"] == "mono") & ~last["pooled"].astype(bool)].groupby("method")["weight"].mean()
    for method, (*_, shown) in rows("A poisoned source").items():
        assert shown == (f"{weights[method]:.2f}" if pd.notna(weights.get(method)) else ""), method


def test_weights_go_with_worth_as_recorded(capsys):
    folder = str(ROOT / "results" / "leaderboard-sources")
    assert main(["sources", folder, "--format", "csv"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    by_target = found.drop_duplicates(["experiment", "method", "target"]).groupby(["experiment", "method"])
    correlations = by_target["baseline_loss_correlation"].mean()
    columns = ("opinions", "pacs-features", "music")
    for method, cells in rows("Weights and what sources are worth").items():
        assert cells == [f"{correlations[f'{name}-sources', method]:+.2f}" for name in columns], method
    ours = found.set_index(["method", "target", "source"])
    src, harmful = ours.loc["SRC"], ours[ours["outcome"] == "better"]
    assert sorted(harmful.index) == [("DARN", "tweets", "editorial"), ("GroupDRO", "sketch", "photo")]
    assert set(src["outcome"]) == {"worse", "unknown"}
    lost, weight = -src["mean_difference"], ours["weight"]
    gained = harmful["mean_difference"]
    cartoon, product = ("cartoon", "sketch"), ("product", "tweets")
    holds(
        section("Weights and what sources are worth"),
        "1,300 runs",
        f"loses {lost[cartoon]:.1f} points on",
        f"{weight['DARN', *cartoon]:.2f} (GroupDRO {weight['GroupDRO', *cartoon]:.2f})",
        f"loses {lost[product]:.1f} on",
        f"DARN gives it {weight['DARN', *product]:.2f}, GroupDRO {weight['GroupDRO', *product]:.2f}",
        f"SRC {(src['outcome'] == 'worse').sum()} of these {len(src)} sources",
        f"gains {gained['DARN', 'tweets', 'editorial']:.1f} points",
        f"gives {weight['DARN', 'tweets', 'editorial']:.2f}",
        f"GroupDRO {gained['GroupDRO', 'sketch', 'photo']:.1f} on",
    )


def test_seconds_are_as_recorded(reading: Reading, runs: pd.DataFrame) -> None:
    ratios = ", ".join(f"{method} {ratio:.1f}" for method, ratio in reading.seconds())
    holds(section("Seconds"), ratios)
    holds(section("Repeat it"), f"took {runs['train_seconds'].sum() / 3600:.0f} hours of a core")
