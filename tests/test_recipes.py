"""Methods as their authors run them: the page has the suite's recipes, and says which rows lose to SRC, and why."""

import re

import pytest
import yaml

import msda_bench as mb
from reading import student
from tests.builtin.suites import SUITES, loaded, trained
from tests.reader import ROOT, table, text_of

PAGE = text_of("studies/recipes/README.md")
RECORDED = ROOT / "results" / "recipes"
PARTS = ("adam", "sgd")  # have the recipes; the others leave something out of them
POINTS = 1.0


def methods_of(part):
    return yaml.safe_load((SUITES / "recipes" / f"{part}.yaml").read_text())["methods"]


def explained():
    """The rows below SRC that the page explains, by part and method."""
    section = PAGE.split("\n## Below SRC\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([\w-]+) \| \S", section, re.MULTILINE)
    return {(f"recipes-{part}", method) for part, method in rows}


def test_the_page_has_every_recipe_as_the_suite_has_it():
    written = {(name, text) for name, text in re.findall(r"^    ([\w-]+): +(\{.*\})$", PAGE, re.MULTILINE)}
    shown = {(name, repr(yaml.safe_load(text))) for name, text in written}
    assert shown == {(name, repr(method)) for part in PARTS for name, method in methods_of(part).items()}


def test_the_other_parts_change_the_network_or_the_steps_alone():
    recipes = methods_of("adam")
    for path in (SUITES / "recipes").glob("*.yaml"):
        if path.stem not in PARTS:
            assert methods_of(path.stem).items() <= recipes.items(), path.stem


def test_every_recipe_is_level_with_all_sources_pooled_or_the_page_says_why_not():
    runs = mb.load_results(RECORDED)
    scores = runs.groupby(["experiment", "method"])["score"].mean()
    rows = {(f"recipes-{part}", method) for part in PARTS for method in methods_of(part)}
    low = {(part, method) for part, method in rows if scores[part, method] < scores[part, "SRC"] - POINTS}
    assert low <= explained() <= rows


def gain(scores, method):
    return student(scores[method] - scores["SRC"])


def test_the_gains_on_the_page_are_those_of_the_records():
    runs = mb.load_results(RECORDED)
    scores = runs.groupby(["experiment", "seed", "method"], observed=True)["score"].mean().unstack()
    rows = re.findall(r"^\| (\w+) \| ([^|]+) \(`([\w-]+)`\) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 7
    for method, gained, part, plain in rows:
        assert gained == gain(scores.loc[part], method)
        assert plain == gain(scores.loc["recipes-short-plain"], method)
    assert gain(scores.loc["recipes-adam"], "DARN-digits") in PAGE
    head, *rows = table(PAGE.split("\n## The recorded numbers\n")[1], "| ")
    shown = {
        (part, method): text for method, *cells in rows for part, text in zip(head[1:], cells, strict=True) if text
    }
    assert shown == {
        (part, method): f"{scores.loc[part, 'SRC'].mean():.1f}" if method == "SRC" else gain(scores.loc[part], method)
        for part, method in runs[["experiment", "method"]].drop_duplicates().itertuples(index=False)
    }


@pytest.mark.nightly
@pytest.mark.parametrize(("part", "method"), [("adam", "MDD"), ("sgd", "SHOT")])
def test_recipes_train_as_written(part, method):
    expansion = loaded(f"recipes/{part}")[1]
    chance = 100 / 26
    records = {
        name: trained(expansion, method=name, target="cm_typewriter", seed=0).outcome for name in ("SRC", method)
    }
    points = {name: 100 * outcome.n_correct / outcome.n_test for name, outcome in records.items()}
    assert points["SRC"] > 10 * chance
    assert points[method] > points["SRC"] - 10


def test_the_small_table_of_digits_is_the_records():
    page = text_of("docs/reproduction.md")
    (_, *targets), *rows = table(page, "| | mnist | ")
    board = mb.leaderboard(ROOT / "results" / "paper-digits-small").set_index(["target", "method"])
    assert len(rows) == 5
    for method, *shown in rows:
        for target, text in zip(targets, shown, strict=True):
            gain, low, high = board.loc[(target, method), ["gain", "gain_low", "gain_high"]]
            assert text == f"{gain:+.2f} [{low:+.2f}, {high:+.2f}]", (method, target)
