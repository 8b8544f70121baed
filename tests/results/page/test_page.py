"""The whole page: its content, its safety, and equal pages for equal records."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product

import pandas as pd
import pytest
import vl_convert

from msda_bench.errors import StoreError
from msda_bench.results.files import result_files
from msda_bench.results.frame import load_curves, load_results
from msda_bench.results.leaderboard import analyse
from msda_bench.store import Curves, Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from msda_bench_report import page as pages
from msda_bench_report.assets import download, library
from msda_bench_report.figures import shown_rows
from msda_bench_report.page import write_page
from msda_bench_report.sections import sections
from tests.results.conftest import gaining, write_folder

HOSTILE = (
    *("<script>alert(1)</script>", '=HYPERLINK("http://x.invalid")', "a|b_{", "$x_{"),
    *("</style>" + "n" * 200, "</script><!--\u2028\x1b]0;own\x07"),
)
EMPTY = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """Collects elements in order, text by element, and whether every element was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.specs: list[dict] = []
        self.style = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            data_only = "json" in self.elements[-1][1].get("type", "")
            (self.specs.append(json.loads(data)) if data_only else self.scripts.append(data))
        elif self.open and self.open[-1] == "style":
            self.style = data
        else:
            self.text.append(data)

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())

    @property
    def shown(self) -> list[list[str]]:
        """The methods that each chart shows at first."""
        return [one["value"] for spec in self.specs for one in spec.get("params", ()) if one["name"] == "shown"]


@pytest.fixture
def folder(tmp_path):
    """`folder(methods, make)`: a result folder with curves; `make(method, target, seed)` is an outcome or status."""

    def build(make, methods=("SRC", "DARN", "TAR"), targets=("x", "y"), seeds=8, suite="suite", order=1, **options):
        rows = tuple(Method(name, name == "TAR", f"recipe of {name}", ("d 1",)) for name in methods)
        options.setdefault("baseline", "SRC" if "SRC" in methods else None)
        table = Experiment(suite, "data", "classification", tuple(targets), rows, tuple(range(seeds)), **options)
        runs = list(product(methods, targets, range(seeds)))[::order]
        keys = {run: hashlib.sha256(repr(run).encode()).hexdigest() for run in runs}
        store = Store.create(tmp_path / f"results{order}")
        store.write_plan(Plan(suite, (table,), tuple(PlannedCell(suite, *run, keys[run]) for run in runs)))
        for run in runs:
            if (found := make(*run)) is not None:
                store.publish(_record(keys[run], found, targets))
        return store.folder

    return build


def _record(key, found, targets):
    if isinstance(found, str):
        return Record(key, {}, "failed", message=found)
    curves = Curves([[targets[0]], [f"{targets[-1]} 2"]], [[0.5, 0.4]] * 3, [[0.1, 0.2]] * 3, [[0.7, 0.3]] * 3)
    made, outcome = {"torch": "2.13", "python": "3.11"}, found if isinstance(found, Outcome) else Outcome(200, found)
    return Record(key, {}, "ok", outcome, curves, timing={"train": 2.5, "steps": 9}, provenance=made)


def render_page(runs, commands=()):
    return pages.render_page(runs, sections()[0], commands)


def names(runs):
    return list(dict.fromkeys(runs["method"]))


def usual(method, target, seed):
    return {"SRC": 160, "DARN": 175, "TAR": 190}[method] + seed % 4 + (target == "y")


@pytest.fixture
def page(folder):
    where = folder(usual)
    return Page(write_page(where, load_results(where), sections()[0]).read_text())


def test_the_libraries_of_charts_are_bundled_once_for_a_version(tmp_path, monkeypatch):
    bundled = []
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: bundled.append(1) or "draw('</Script>')")
    assert library() == library() == "(() => {draw('<\\/Script>')})();"
    (path,) = (tmp_path / "cache").rglob("*.js")
    path.write_bytes(path.read_bytes().replace(b"draw", b"drop"))  # damages the cache
    assert library() == library() == "(() => {draw('<\\/Script>')})();"
    assert len(bundled) == 2
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(path))  # a file, so no folder can be created there
    assert library() == "(() => {draw('<\\/Script>')})();"


def test_the_page_is_complete(page):
    assert page.open == []
    identifiers = page.values("id")
    assert len(identifiers) == len(set(identifiers))
    wanted = [link[1:] for link in page.values("href") if link.startswith("#")]
    named = [name for value in page.values("aria-controls") + page.values("aria-labelledby") for name in value.split()]
    assert {*wanted, *named} <= set(identifiers)
    parts = ("runs", "pairs", "beyond", "weights", "course", "curves", "time", "origin")
    assert {f"suite-{part}" for part in parts} <= set(identifiers)


def test_the_page_loads_nothing_and_escapes_everything(page):
    links = [*page.values("href"), *page.values("src"), *page.values("xlink:href")]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not {"base", "iframe", "object", "embed", "form", "img"} & {tag for tag, _ in page.elements}
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.elements for name in attributes)
    (policy,) = [attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv")]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in page.scripts]
    assert len(digests) == 2
    assert set(rules["script-src"].split()) == {f"'sha256-{digest}'" for digest in digests}
    assert rules["style-src"] == f"'sha256-{base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()}'"


def test_the_verdict_comes_first_and_states_its_certainty(page):
    verdict = page.said.split("Filter")[0]
    assert "DARN has the best mean on average over 2 targets: 88.50 ± 0.21 % accuracy." in verdict
    assert "Significantly worse than it: SRC -7.50 [-7.50, -7.50]." in verdict
    assert "Significantly better than the baseline SRC: DARN +7.50 [+7.50, +7.50]." in verdict


def test_outliers_and_missing_runs_are_in_the_verdict(folder):
    def make(method, target, seed):
        if method == "DARN" and seed == 7:
            return None
        return 100 if (method, target, seed) == ("SRC", "y", 3) else usual(method, target, seed)

    said = Page(render_page(load_results(folder(make)))).said
    assert "One run is far from the others of the same method and target" in said
    assert "SRC at y, seed 3 (50, median 81)" in said
    assert "2 of 48 runs have no score (2 missing)" in said
    assert "DARN missing 2/16 x , seed 7 no record" in said


def test_an_inconclusive_part_is_one_sentence(folder):
    page = Page(render_page(load_results(folder(usual, seeds=2))))
    assert "That is not certain: with 2 seeds no difference can be significant; that takes 6." in page.said
    assert "Pairs of methods. With 2 paired seeds no test of a pair of methods can be significant" in page.said
    assert "1.0000" not in page.said
    assert not any("differences" in name for name in page.values("id"))


def test_every_figure_has_its_numbers_and_a_name_and_the_main_ones_a_picture(page):
    figures = [attributes["id"] for tag, attributes in page.elements if tag == "figure"]
    assert len(figures) == 16
    count = [tag for tag, _ in page.elements].count
    assert len(figures) == len(page.specs) - 2
    assert page.said.count("Values ") >= len(figures)
    assert count("svg") == len([role for role in page.values("role") if role == "img"]) == 3
    wide = [attributes["id"] for tag, attributes in page.elements if attributes.get("class") == "wide"]
    assert wide == ["suite-forest", "suite-differences", "suite-cost"]


@pytest.mark.parametrize("classes", [3, 41])
def test_single_classes_are_shown_if_records_count_them_and_they_are_few_enough(folder, classes):
    def make(method, target, seed):
        counts = ((0, 0, 90), (0, 1, 10), *((place, place, 10) for place in range(1, classes)))
        return Outcome(90 + 10 * classes, 80 + 10 * classes, confusion=counts)

    page = Page(render_page(load_results(folder(make))))
    figures = [attributes["id"] for tag, attributes in page.elements if tag == "figure"]
    assert ("suite-classes-x" in figures) == (classes == 3)
    assert ("method 0 1 2 SRC 90 100 100" in page.said) == (classes == 3)
    assert ("Single classes. 41 are too many for a chart; msda-bench leaderboard" in page.said) == (classes == 41)


def test_numbers_without_any_value_have_no_column(folder):
    page = Page(render_page(load_results(folder(usual, seeds=2))))
    assert "method rank mean standard error n ok" in page.said
    assert "mean low" in Page(render_page(load_results(folder(usual, seeds=8, order=-1)))).said


def test_numbers_of_a_column_have_equally_many_decimals_and_small_ones_stay_visible():
    columns = {
        ("81.00", "82.92", "-"): [81.0, 82.918, None],
        ("0.0195", "1.0000", "0.3164"): [0.01953, 1.0, 0.3164],
        ("1", "3,000", "-"): [1, 3000.0, float("nan")],
        ("1e-05", "100", "0.5"): [1e-5, 100, 0.5],
        ("yes", "a b", "2.500"): [True, "a\x1bb", 2.5],
    }
    frame = pd.DataFrame({f"c{place}": pd.Series(own, dtype=object) for place, own in enumerate(columns.values())})
    assert [*zip(*shown_rows(frame), strict=True)] == [*columns]


def test_many_methods_are_compared_with_the_baseline_where_all_pairs_cannot_conclude(folder):
    more = {"SRC": 0, "up": 9, "down": -9, **{f"m{place}": 0 for place in range(5)}}

    def make(method, _, seed):
        return 150 + more[method] + (-1) ** (len(method) * seed)

    text = render_page(load_results(folder(make, tuple(more), ("x",), seeds=9)))
    said = Page(text).said
    assert re.findall(r"([\d.]+) ± [\d.]+ [*!] \(significantly (\w+) than SRC\)", said) == [
        ("80.00", "better"),
        ("71.00", "worse"),
    ]
    assert "Differences from SRC" in said
    assert "Pairs of methods. With 9 paired seeds no test of a pair of methods can be significant" in said


def test_means_are_coloured_by_the_tests_of_the_verdict_where_the_control_is_best(folder):
    methods = ("SRC", *(f"m{place}" for place in range(7)))
    runs = load_results(folder(lambda method, _, seed: 150 + seed - methods.index(method), methods, ("x",), seeds=9))
    forest = next(spec for spec in Page(render_page(runs)).specs if "group" in json.dumps(spec))
    groups = {row["method"]: row["group"] for rows in forest["datasets"].values() for row in rows}
    assert groups == {"SRC": "best mean", **dict.fromkeys(methods[1:], "significantly worse than the best")}


def test_downloads_are_the_files_of_the_folder(folder):
    runs = load_results(folder(usual))
    page = Page(render_page(runs))
    files = result_files(analyse(runs))
    links = {a["download"]: a["href"] for tag, a in page.elements if tag == "a" and "download" in a}
    assert set(links) == {
        *("runs.csv", "leaderboard.csv", "tables.md", "suite.tex", "suite-summary.tex", "suite-pairs.tex")
    }
    for name, link in links.items():
        text = base64.b64decode(link.partition("base64,")[2]).decode()
        assert text == files.get(name, files.get(f"tables/{name}"))


def test_a_long_download_is_compressed():
    text = "name,score\n" * 100_000
    name, link = download("runs.csv", text)
    assert (name, link.partition(";")[0]) == ("runs.csv.gz", "data:application/gzip")
    assert gzip.decompress(base64.b64decode(link.partition("base64,")[2])).decode() == text


def test_all_methods_are_in_every_chart_and_the_first_and_fixed_ones_are_shown(folder):
    names = ("SRC", *(f"m{place}" for place in range(20)), "TAR")
    levels = {name: 180 - place for place, name in enumerate(names)} | {"SRC": 100}
    runs = load_results(
        folder(lambda method, _, seed: levels[method] + seed % 3, methods=names, targets=("x",), seeds=3)
    )
    page = Page(render_page(runs))
    assert page.shown
    everywhere = {*(f"m{place}" for place in range(12)), "TAR", "SRC"}
    assert all(set(shown) <= everywhere for shown in page.shown)
    assert set(page.shown[0]) == everywhere
    (forest,) = [spec for spec in page.specs if "text:N" in json.dumps(spec) or "group" in json.dumps(spec)][:1]
    rows = [row for rows in forest["datasets"].values() for row in rows]
    assert {row["method"] for row in rows} == set(names)


def test_long_lists_are_cut_and_marked_as_cut(folder):
    targets = tuple(f"t{place}" for place in range(18))
    runs = load_results(folder(lambda method, target, seed: 150 + seed, methods=("a", "b"), targets=targets, seeds=2))
    page = Page(render_page(runs))
    assert "10 more targets without a figure" in page.said
    assert len([tag for tag, _ in page.elements if tag == "figure"]) <= 60


def test_the_page_does_not_depend_on_the_order(folder):
    pages = [render_page(load_results(folder(usual, order=order))) for order in (1, -1)]
    assert pages[0] == pages[1]


def test_hostile_names_are_harmless(folder):
    def make(method, target, seed):
        return f"{HOSTILE[-1]} failed" if seed == 5 else 150 + seed + len(method) % 7

    where = folder(make, targets=HOSTILE[:3], notes=HOSTILE, seeds=6)
    runs = load_results(where)
    for column in ("method", "experiment", "dataset", "suite"):  # no plan may have such names, but a frame may
        known = list(runs[column].cat.categories)
        runs[column] = runs[column].cat.rename_categories(dict(zip(known, HOSTILE, strict=False)))
    (table,) = runs.attrs["plan"].experiments
    methods = tuple(replace(one, name=name, recipe=name) for one, name in zip(table.methods, names(runs), strict=True))
    table = replace(table, name=HOSTILE[0], dataset=HOSTILE[0], methods=methods, baseline=methods[0].name)
    runs.attrs["plan"] = Plan(HOSTILE[0], (table,), ())
    runs.attrs["fault_lines"] = HOSTILE
    text = render_page(runs, HOSTILE)
    page = Page(text)
    assert page.open == []
    tags = [tag for tag, _ in page.elements]
    assert tags.count("style") == 1
    assert len(page.scripts) == 2
    assert "\x1b" not in text
    assert "\u2028" not in text
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert all(name[:8] in page.said for name in HOSTILE)


def test_a_folder_without_records_has_a_page(folder):
    page = Page(render_page(load_results(folder(lambda *_: None))))
    assert page.open == []
    assert "No method has a result yet." in page.said
    assert "0 of 48 runs ok" in page.said
    assert "There are no records yet." in page.said


def test_the_page_is_written_into_the_folder_with_its_commands(folder):
    where = folder(usual)
    Store(where).add_commands(["msda-bench run <b>.yaml"])
    runs = load_results(where)
    runs.attrs["fault_lines"] = (f"{where}/cells/aa/x.json: is truncated",)
    said = Page(write_page(where, runs, sections()[0]).read_text()).said
    assert "msda-bench run <b>.yaml" in said
    assert "cells/aa/x.json: is truncated" in said
    assert str(where) not in said
    (where / "report.html").unlink()
    (where / "report.html").mkdir()
    with pytest.raises(StoreError, match=r"report\.html: cannot be written"):
        write_page(where, runs, sections()[0])


def test_smaller_squared_errors_are_better(folder):
    where = folder(usual)
    plan = load_results(where).attrs["plan"]
    runs = load_results(where).assign(task=pd.Categorical(["regression"] * 48), sum_squared_error=2.0, score=0.01)
    runs["n_correct"] = pd.array([None] * 48, dtype="Int64")
    runs["sum_squared_error"] += runs["seed"] + runs["method"].map({"SRC": 3.0, "DARN": 1.0, "TAR": 0.0}).astype(float)
    runs["score"] = runs["sum_squared_error"] / 200
    (table,) = plan.experiments
    runs.attrs["plan"] = replace(plan, experiments=(replace(table, task="regression"),))
    said = Page(render_page(runs)).said
    assert "DARN has the best mean on average over 2 targets: 0.0325" in said
    assert "mean squared error, lower is better" in said.lower()


def test_curves_of_many_runs_show_the_first_seeds_with_a_note(folder, monkeypatch):
    runs = load_results(folder(usual))
    assert "of 8 seeds." not in render_page(runs)
    monkeypatch.setattr("msda_bench_report.page.MOST_CURVES", 12)
    assert render_page(runs).count("Curves of 2 of 8 seeds.") == 3
    few, every = load_curves(runs, most=12), load_curves(runs)
    pd.testing.assert_frame_equal(few, every[every["seed"] < 2].reset_index(drop=True))


@pytest.mark.slow
def test_with_six_datasets_the_page_first_names_what_beats_the_baseline(tmp_path):
    text = render_page(load_results(write_folder(tmp_path / "six", *gaining(20, 30, 10, 40, -50, 60))))
    Page(text)
    order = [
        text.index(words)
        for words in ("Of 2 methods, none is significantly better", 'id="across-ranks"', "+2.00*", 'id="e0"')
    ]
    assert order == sorted(order)
    few = render_page(load_results(write_folder(tmp_path / "five", *gaining(20, 30, 10, 40, -50))))
    assert few.index('id="e0"') < few.index('id="across"')
    assert 'id="across-ranks"' not in few


@pytest.mark.parametrize(("first", "coloured"), [(150, ["A"]), (171, [])])
def test_a_loss_is_coloured_only_where_the_corrected_test_finds_it(folder, first, coloured):
    """Seven losses of eight have p 0.016, and 0.09 after the correction over all six pairs."""

    def make(method, target, seed):
        return 170 if method != "A" else first if seed == 0 else 150 + seed

    page = render_page(load_results(folder(make, ("SRC", "A", "B", "C"))))
    assert re.findall(r'data-method="(\w+)"(?:(?!</tr>).)*class="number negative"', page, re.DOTALL) == coloured
