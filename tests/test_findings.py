"""Every number of README, docs/findings.md and the registered study's tables and figure is one of the records.

A number has a name, as `numbers` gives it, and may stand where the methods, tasks and targets in its name are
mentioned: in the row and the head of a table, or in a paragraph and its heading. How it is said is free.
"""

import io
import re
from contextlib import redirect_stdout

import pandas as pd
import pytest

import msda_bench as mb
from cost_figure import FIGURE as COSTS
from cost_figure import gain_and_cost
from figure import FIGURE, gains
from msda_bench.cli.main import main
from reading import MARKS, RESULTS, numbers, read, shared
from second_reading import NEW
from second_reading import read as read_second
from task_gains import overlaps_of
from tests.reader import ROOT, text_of, words_of
from third_reading import read as read_third

PLAN = text_of("studies/registered/README.md")
PROTOCOL = PLAN.split("\n## Power\n")[0] + PLAN.split("\n## Deviations\n")[1]
NUMERAL = re.compile(r"\d{4}-\d\d-\d\d|(?<![\w.])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?: %)?(?: \[[-+\d., ]+\])?")
EXAMPLE = ROOT / "plugins" / "example-aggregator" / "src" / "msda_bench_example_aggregator.py"
P_VALUES = ("shared p beyond", "shared p")
THIRD = ("Q1", "Q2", "Q2, beside", "Q3", "Q4", "by task", "seconds")
pytestmark = pytest.mark.slow


def front():
    """What README and the site's first page open with, and README's section of findings."""
    readme, index = (text_of(page) for page in ("README.md", "docs/index.md"))
    section = readme.split("\n## What we found\n")[1].split("\n## ")[0]
    return "\n\n".join([readme.split("\n- ")[0], section, index.split("\n## ")[0]])


PAGES = {
    "the front": front(),
    "docs/findings.md": text_of("docs/findings.md"),
    "targets": text_of("studies/registered/targets.md"),
    "the plan": PLAN.split("\nSo it was on ")[1].split("\n## Deviations\n")[0],
}


def poisoned():
    """What shuffled labels of one source cost, with the settings that accuracy on the sources selects."""
    runs = mb.load_results(RESULTS / "poisoned")
    merit = runs["validator:source_accuracy"].where(~runs["reference"].astype(bool), runs["score"])
    run = [runs[name].astype(str) for name in ("experiment", "target", "method", "seed")]
    chosen = runs.loc[merit.groupby(run).idxmax()].astype({"experiment": str, "method": str})
    scores = chosen.pivot(index="seed", columns=["experiment", "method"], values="score")
    clean, after = scores["fonts-clean"], scores["fonts-poisoned"]
    curves = mb.load_curves(chosen[chosen["experiment"] == "fonts-poisoned"])
    last = curves[(curves["epoch"] == curves["epoch"].max()) & (curves["source"] == "mono")]
    weights = last[~last["pooled"].astype(bool)].astype({"method": str}).groupby("method")["weight"].mean()
    table = {"clean": clean.mean(), "poisoned": after.mean(), "change": (after - clean).mean(), "weight": weights}
    forms = {"change": "{:+.1f}", "weight": "{:.2f}"}
    texts = {name: column.map(forms.get(name, "{:.1f}").format, na_action="ignore") for name, column in table.items()}
    overlap = overlaps_of(chosen)["fonts-poisoned"]
    for name, by in (("at", after), ("change", after - clean)):
        texts[f"{name} over SRC"] = by.drop(columns="SRC").sub(by["SRC"], axis=0).apply(shared, overlap=overlap)
    return {"poisoned source": pd.DataFrame(texts).fillna("")}


def sources():
    """What each source is worth, and what weight it gets."""
    folder = RESULTS / "leaderboard-sources"
    with redirect_stdout(io.StringIO()) as shown:
        assert main(["sources", str(folder), "--format", "csv"]) == 0
    rows = pd.read_csv(io.StringIO(shown.getvalue())).replace(
        {"experiment": {"opinions-sources": "opinions", "pacs-features-sources": "pacs", "music-sources": "music"}}
    )
    place = ["experiment", "target", "source"]
    lost = -rows[rows["method"] == "SRC"].set_index(place)["mean_difference"]
    weighed = rows.join(lost.rename("lost"), on=place).groupby(["experiment", "method", "target"])
    ranks = weighed[["weight", "lost"]].apply(lambda of: of["weight"].corr(of["lost"], method="spearman"))
    follows = ranks.groupby(level=[0, 1]).mean().unstack(0).dropna().map("{:+.2f}".format)
    each = rows.set_index(["method", "target", "source"])[["mean_difference", "weight"]].dropna(how="all")
    each = each.assign(lost=each.pop("mean_difference").abs().map("{:.1f}".format)).astype({"weight": object})
    each["weight"] = each["weight"].map("{:.2f}".format, na_action="ignore")
    of_src = rows.loc[rows["method"] == "SRC", "outcome"]
    whole = {"runs": f"{len(mb.load_results(folder)):,}", "all": len(of_src), "helpful": (of_src == "worse").sum()}
    return {
        "weights": follows,
        "sources": each.fillna(""),
        "sources, whole": pd.DataFrame({"value": whole}).astype(str),
    }


@pytest.fixture(scope="module")
def measured():
    names = ("registered", "sensitivity", "registered-2", "registered-3")
    first, longer, second, third = (mb.load_results(RESULTS / name) for name in names)
    return {"first": read(first, longer), "second": read_second(first, second), "third": read_third(third)}


@pytest.fixture(scope="module")
def tables(measured):
    paper = mb.load_results(RESULTS / "paper-amazon").groupby("method", observed=True)["score"].mean()
    return {
        **measured["first"],
        **{f"second, {name}": table for name, table in measured["second"].items()},
        **{f"third, {name}": measured["third"][name] for name in THIRD},
        **poisoned(),
        **sources(),
        "paper": paper.map("{:.1f}".format).to_frame("accuracy"),
        "protocol": pd.DataFrame({"text": [*NUMERAL.findall(PROTOCOL)]}).astype(str).rename(index=str),
    }


def forms(text):
    """The ways to write a number: as it is, without plus, a loss as its size, and without marks."""
    for numeral in (text, *NUMERAL.findall(text)):
        yield from (numeral, numeral.replace("+", ""))
        if numeral.startswith("-"):
            size, *ends = re.findall(r"[-+]?[\d.]+", numeral)
            low, high = (str(-float(end)) for end in reversed(ends)) if ends else ("", "")
            yield size[1:] + f" [{low}, {high}]" * bool(ends)


def places(page):
    """Each cell of a table and each paragraph with what is mentioned beside it, and the numbers there."""
    heading = ""
    for block in re.split(r"\n\s*\n|\n(?=- )|(?<=\n)(?=#)", page):
        if block.startswith("#"):
            heading = block
        elif block.startswith("|"):
            head, _, *rows = ([cell.strip() for cell in row.split(" | ")] for row in block.splitlines())
            for row in rows:
                cells = zip(head, (cell.strip("| ") for cell in row), strict=True)
                yield from (
                    (" ".join([heading, name, *row]), [cell])
                    for name, cell in cells
                    if cell in MARKS or NUMERAL.search(cell)
                )
        elif not block.startswith(("    ", "![")):
            prose = " ".join(re.sub(r"`[^`]*`|\]\([^)]*\)", "", block).split())
            yield f"{heading} {block}", NUMERAL.findall(prose)


@pytest.mark.parametrize("page", PAGES)
def test_every_number_is_one_of_the_records(page, tables):
    labels = {"detectable", "longer", "poisoned", *tables["poisoned source"].index, *tables["task by task"].columns}
    labels = labels.union(tables["task by task"].index, NEW, *tables["targets"].index, *tables["sources"].index)
    longest = "|".join(sorted((label for label in labels if len(label) > 1), key=len, reverse=True))
    name = re.compile(rf"(?<![\w-])(?:{longest})(?![\w-])")
    known = [({*name.findall(of)}, {*forms(text)}) for of, text in numbers(tables).items()]
    wrong, checked = [], 0
    for beside, written in places(PAGES[page]):
        mentioned = {*name.findall(beside)} if written else set()
        there = set().union(*(texts for of, texts in known if of <= mentioned))
        wrong += [(text, beside) for text in written if text not in there]
        checked += len(written)
    assert not wrong
    assert checked > 10


def test_the_figures_have_the_numbers_of_the_records(measured, tmp_path):
    drawn = mb.plots.save(gains(measured["first"], measured["second"]), tmp_path / "gains.svg")
    assert words_of(drawn) == words_of(FIGURE)
    drawn = mb.plots.save(gain_and_cost(measured["third"]), tmp_path / "costs.svg")
    assert drawn.read_text() == COSTS.read_text()


def test_readme_says_what_the_reading_and_the_command_say_of_the_same_runs(tables):
    over_tasks, stood = tables["over tasks"], mb.across(RESULTS / "registered").set_index("method")
    assert (
        stood.loc[over_tasks.index, ["mean_gain", "mean_gain_low", "mean_gain_high"]]
        .apply(lambda sizes: "{:+.1f} [{:+.1f}, {:+.1f}]".format(*sizes), axis=1)
        .equals(over_tasks["shared"])
    )
    is_more, is_better = (over_tasks[name].str.removeprefix("< ").astype(float) <= 0.05 for name in P_VALUES)
    readme = " ".join(text_of("README.md").split())
    more, rest = readme.split("Three methods help by more than the margin")[1].split(" help; whether")
    first, some = more.split("]. ")
    texts = (f"{first}]", is_more), (some, is_better & ~is_more), (rest.split(" are undecided")[0], ~is_better)
    for methods, are in texts:
        named = re.findall(r"([A-Z]+) ([-+][\d.]+ \[[-+\d., ]+\])", methods)
        assert dict(named) == over_tasks.loc[are, "shared"].to_dict()


def test_readme_says_where_its_own_example_stands_on_the_poisoned_task(capsys):
    readme = text_of("README.md")
    rule = readme.split("def __call__(self, risks, gaps, mu, state):")[1].split("@hookimpl")[0]
    assert rule in EXAMPLE.read_text()
    own, recorded = (mb.leaderboard(RESULTS / name) for name in ("fonts-poisoned-ranked", "poisoned"))
    (mean,) = own.loc[own["target"] == "cm_maths", "mean"]
    there = recorded[(recorded["experiment"] == "fonts-poisoned") & (recorded["target"] == "cm_maths")]
    others = there[~there["reference"].astype(bool)].set_index("method")["mean"]
    assert mean > others.max()
    assert main(["leaderboard", str(RESULTS / "fonts-poisoned-ranked"), "--against", "reference"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    (gain, p) = re.search(r"uniform weights: ([-+][\d.]+) .*?\(exact p = ([\d.]+)\)", said).groups()
    (sentence,) = re.findall(r"On the poisoned task .*", readme)
    assert f"number 1 of {1 + len(others)} by the mean, {mean:.1f} % against DARN's {others['DARN']:.1f} %" in sentence
    assert f"it gains {float(gain):+.1f} points (exact p = {p})" in sentence
