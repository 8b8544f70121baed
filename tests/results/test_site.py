"""The site of many result folders: a table, linked pages, CSV files, and faults of folders."""

from __future__ import annotations

import base64
import csv
import hashlib
import random
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

from msda_bench.cli.main import main
from msda_bench.errors import BenchError
from msda_bench.plugins import discover
from msda_bench.results.frame import load_results
from msda_bench.results.leaderboard import leaderboard
from msda_bench.store import Store
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from msda_bench_report.sections import sections
from msda_bench_report.site import _placeless, write_site
from tests.results.conftest import planned, write_folder
from tests.results.page.test_page import Page

HOSTILE = ("<script>alert(1)</script>", "</style><!--\u2028\x1b]0;own\x07", '=HYPERLINK("http://x.invalid")', "n" * 200)
RECORDED = Path(__file__).parents[2] / "results"


@pytest.fixture
def folder(tmp_path):
    """`folder(name, part, ...)`: a result folder of these experiments."""

    return lambda name, *parts: write_folder(tmp_path / "results" / name, *parts)


def scores(dataset, **correct):
    """An experiment with two targets and six seeds; each method has this many correct of 1000, one more per seed."""
    runs = {
        method: {target: [Outcome(1000, n_correct=n + seed) for seed in range(6)] for target in "xy"}
        for method, n in correct.items()
    }
    return planned(runs, f"on-{dataset}", dataset)


def write(*folders, out):
    return write_site(folders, out, discover(), sections()[0])


def index(out) -> str:
    return (out / "index.html").read_text(encoding="utf-8")


def said(text: str) -> str:
    return " ".join(unescape(re.sub(r"<(style|script)>.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL)).split())


def rows(out) -> dict[str, list[str]]:
    """The cells of each method's row, as text."""
    (body,) = re.findall(r'id="board".*?<tbody>(.*?)</tbody>', index(out), re.DOTALL)
    found = [re.findall(r"<(?:td|th)\b.*?</(?:td|th)>", row, re.DOTALL) for row in body.split("<tr")[1:]]
    return {said(cells[0]): [said(cell) for cell in cells[1:]] for cells in found}


def test_a_row_for_each_method_and_a_column_for_each_experiment(folder, tmp_path):
    one = folder("one", scores("amazon", a=800, b=700, ref=900))
    two = folder("two", scores("sine", b=600), scores("nowhere", a=500, b=650))
    out = tmp_path / "site"
    assert write(one, two, out=out) == ()
    found = rows(out)
    assert [*found] == ["b", "a", "ref reference"]
    assert [cell.split(" ±")[0] for cell in found["b"]] == ["1 of 2", "rank 2 70.25", "rank 1 65.25", "rank 1 60.25"]
    assert found["ref reference"][1:] == ["90.25 ± 0.08", "", ""]
    heads = re.findall(r'data-modality="(\w+)" data-protocol="([^"]+)"', index(out))
    assert heads == [(kind, "held out|equal steps|settings fixed") for kind in ("text", "other", "synthetic")]


def test_each_number_links_to_its_experiment_on_the_page_of_its_folder(folder, tmp_path):
    out = tmp_path / "site"
    write(folder("Two words", scores("amazon", a=1, b=2), scores("sine", a=3)), out=out)
    links = set(re.findall(r'<a href="([^"#]+)#([^"]+)"', index(out)))
    assert links == {("two-words/report.html", "on-amazon"), ("two-words/report.html", "on-sine")}
    for page, anchor in links:
        assert f'id="{anchor}"' in (out / page).read_text()
        assert 'href="../index.html"' in (out / page).read_text()
    for path in re.findall(r'<a href="([^"#]+\.csv)"', index(out)):
        assert (out / path).is_file()


def test_the_csv_has_every_row_of_every_leaderboard(folder, tmp_path):
    folders = [folder("one", scores("amazon", a=800, b=700)), folder("two", scores("sine", a=1))]
    out = tmp_path / "site"
    write(*folders, out=out)
    found = pd.read_csv(out / "leaderboard.csv")
    assert list(found.columns[:4]) == ["page", "modality", "protocol", "compares"]
    assert set(found["compares"]) == {"variants"}
    expected = pd.concat([leaderboard(load_results(path)) for path in folders])
    assert found["mean"].tolist() == pytest.approx(expected["mean"].tolist(), rel=1e-5)
    assert set(found["page"]) == {"one/report.html#on-amazon", "two/report.html#on-sine"}
    assert len(pd.read_csv(out / "one" / "runs.csv")) == 24


def six(**steps):
    return [scores(f"d{i}", **{name: 500 + step * (i + 1) for name, step in steps.items()}) for i in range(6)]


@pytest.mark.slow
def test_six_datasets_give_ranks_and_tests(folder, tmp_path):
    """Methods of a single experiment take no part."""
    out = tmp_path / "site"
    write(folder("six", *six(a=30, b=20)), folder("more", scores("d0", a=700), scores("z", own=3)), out=out)
    text = said(index(out))
    assert "a has the best mean rank over 6 datasets: 1.00 of 2 methods. Significantly worse: b." in text
    assert '<section class="experiment" id="across"' in index(out)
    assert "<svg" in index(out)
    ranks = re.search(r'aria-label="Mean ranks">.*?<tbody>(.*?)</tbody>', index(out), re.DOTALL)
    assert said(ranks[1]) == "a 1.00 - b 2.00 -"


def test_too_few_datasets_for_many_pairs_are_not_called_equal(folder, tmp_path):
    out = tmp_path / "site"
    write(folder("six", *six(a=30, b=20, c=10)), out=out)
    assert (
        "That is not certain: over 6 datasets no difference can be significant after Holm's correction for 3 "
        "comparisons of methods; that takes 7."
    ) in said(index(out))
    assert "No significant difference from it" not in said(index(out)).partition("Across datasets")[0]


@pytest.mark.slow
def test_methods_without_significant_difference_form_a_group(folder, tmp_path):
    parts = [scores(f"d{i}", a=500 + i, b=500 + (i + 1) * (-1) ** i, c=400) for i in range(8)]
    out = tmp_path / "site"
    write(folder("eight", *parts), out=out)
    text = said(index(out))
    assert "a has the best mean rank over 8 datasets: 1.50 of 3 methods." in text or "b has the best" in text
    assert "Significantly worse: c." in text
    ranks = re.search(r'aria-label="Mean ranks">.*?<tbody>(.*?)</tbody>', index(out), re.DOTALL)
    assert said(ranks[1]).endswith("c 3.00 -")
    assert re.search(r"a 1\.\d\d b", said(ranks[1]))


def test_fewer_datasets_rank_no_method_over_all(folder, tmp_path):
    out = tmp_path / "site"
    write(folder("few", *six(a=30, b=20)[:5]), out=out)
    assert "5 datasets cannot show which method is best across datasets: 6 that rank" in said(index(out))
    assert 'id="across"' not in index(out)


def test_the_first_sentence_names_what_beats_which_baseline_and_skips_variants(tmp_path):
    write(RECORDED / "ablation-mu", RECORDED / "pacs-features", out=tmp_path)
    text = said(index(tmp_path))
    assert "Leaderboard Significantly better than the baseline: MCC and MMD in pacs-features. No experiment" in text
    assert "77.38 ± 0.31 * (significantly better than SRC)" in rows(tmp_path)["MCC"][1]
    assert re.search(r'data-compares="variants"[^>]*><button[^>]*>ablation-mu<', index(tmp_path))
    assert "DARN-0" not in text.partition("Method")[0]
    assert [*rows(tmp_path)][:2] == ["MCC", "MMD"], "what beats a baseline comes first"
    found = pd.read_csv(tmp_path / "leaderboard.csv")
    assert found.groupby("compares")["experiment"].unique().map(list).to_dict() == {
        "methods": ["pacs-features"],
        "variants": ["ablation-mu"],
    }


def test_experiments_with_and_without_a_source_are_variants(folder, tmp_path):
    parts = []
    for name, options in {"d0": {}, "less": {"dataset": "d0", "without": "s"}, "d1": {}}.items():
        table, *others = scores(name, a=800, SRC=700)
        parts.append((replace(table, baseline="SRC", **options), *others))
    write(folder("one", *parts), out=tmp_path / "site")
    found = pd.read_csv(tmp_path / "site" / "leaderboard.csv")
    assert set(found[found["compares"] == "variants"]["experiment"]) == {"on-d0", "on-less"}
    assert set(found["experiment"]) == {"on-d0", "on-less", "on-d1"}


@pytest.mark.parametrize("n", [2, 5])
def test_few_experiments_are_named_and_many_are_counted(folder, tmp_path, n):
    parts = []
    for place in range(n):
        table, *others = scores(f"d{place}", a=800, SRC=700)
        parts.append((replace(table, baseline="SRC"), *others))
    write(folder("one", *parts), out=tmp_path / "site")
    named = "Significantly better than the baseline: a in on-d0; a in on-d1."
    assert (named if n == 2 else "better than the baseline: a in 5 of 5 experiments.") in said(index(tmp_path / "site"))


def test_a_faulty_folder_is_one_line_and_the_others_are_shown(folder, tmp_path, capsys):
    good, damaged = folder("good", scores("amazon", a=800)), folder("damaged", scores("sine", a=700))
    record = Store(damaged).path(hashlib.sha256(b"on-sine a x 0").hexdigest())
    record.write_bytes(record.read_bytes()[:-9])
    (tmp_path / "results" / "notes.txt").write_text("no folder")
    (tmp_path / "results" / "empty").mkdir()
    out = tmp_path / "site"
    code = main(["site", *map(str, sorted((tmp_path / "results").iterdir())), "--out", str(out)])
    lines = [line.removeprefix("msda-bench: warning: ") for line in capsys.readouterr().err.splitlines()]
    assert code == 1
    for name, what in (
        ("damaged/cells", "is truncated"),
        ("empty", "is not a result folder"),
        ("notes.txt", "is not a folder"),
    ):
        (line,) = [line for line in lines if line.startswith(str(tmp_path / "results" / name))]
        assert what in line
        assert name in said(index(out))
    assert [*rows(out)] == ["a"]
    assert "3 faults in the result folders." in said(index(out))
    assert str(tmp_path) not in index(out) + (out / "damaged" / "report.html").read_text()
    assert main(["site", str(good), "--out", str(out)]) == 0


def test_folders_without_results_are_refused_and_nothing_is_written(tmp_path, capsys):
    assert main(["site", str(tmp_path / "none"), "--out", str(tmp_path / "site")]) == 2
    assert capsys.readouterr().err.endswith("no result folder is left to show\n")
    assert not (tmp_path / "site").exists()


def test_a_site_is_not_written_into_a_result_folder(folder, tmp_path):
    one = folder("one", scores("amazon", a=800))
    before = {path: path.read_bytes() for path in one.rglob("*") if path.is_file()}
    for out in (one, one.parent, one / "cells" / "more"):
        with pytest.raises(BenchError) as caught:
            write(one, out=out)
        why = f"would write into the result folder {one}, whose files stay as they are"
        assert caught.value.lines == (f"--out {out}: {why}; name a folder outside of it",)
    assert not (one.parent / "index.html").exists()
    write(one, out=tmp_path / "site")
    assert {path: path.read_bytes() for path in one.rglob("*") if path.is_file()} == before


def test_folders_of_equal_names_have_separate_pages(folder, tmp_path):
    one = folder("same", scores("amazon", a=800))
    other = Path(shutil.copytree(one, tmp_path / "elsewhere" / "same"))
    write(one, other, out=tmp_path / "site")
    assert {path.parent.name for path in (tmp_path / "site").glob("*/report.html")} == {"same", "same-2"}


def hostile_folder(where: Path, draw: random.Random) -> Path:
    """A folder with any content of plan and records, some of whose files are damaged."""

    def text() -> str:
        return "".join(draw.choices([*HOSTILE, *"<>&'\"|\\`$%{}#=\x00\x07\x1b\u202e\u2028\n\t", "é", "x"], k=3))

    methods = tuple(Method(f"m{n}", draw.random() < 0.3, text(), (text(),)) for n in range(draw.randint(1, 4)))
    task = draw.choice(["classification", "regression"])
    places, seeds = tuple(dict.fromkeys(text() for _ in range(2))), tuple(range(draw.randint(1, 6)))
    baseline = draw.choice([None, methods[0].name])
    table = Experiment("e", text(), task, places, methods, seeds, notes=(text(),), baseline=baseline)
    runs = [(method.name, place, seed) for method in methods for place in places for seed in seeds]
    cells = tuple(PlannedCell("e", *run, hashlib.sha256(repr((run, where.name)).encode()).hexdigest()) for run in runs)
    store = Store.create(where)
    store.write_plan(Plan("suite", (table,), cells))
    for cell in cells:
        settings = {"dataset": {"params": {"protocol": text()}}, "fingerprint": text(), "training": {text(): text()}}
        if task == "regression":
            outcome = Outcome(10, sum_squared_error=draw.choice([0.0, 1e-100, 1e100, 5.0]))
        else:
            outcome = Outcome(10, n_correct=draw.randint(0, 10))
        failed = draw.random() < 0.2
        record = Record(cell.key, settings, "failed" if failed else "ok", None if failed else outcome)
        store.publish(replace(record, message=text()) if failed else record)
    for path in draw.sample(sorted((where / "cells").rglob("*.json")), k=len(cells) // 4):
        data = path.read_bytes()
        at = draw.randrange(len(data))
        nan = data.replace(b"5", b"NaN", 1)
        damage = [data[:at], b"", data + b"\xff", nan, b"null", data[:at] + b"\x00<script>" + data[at:]]
        path.write_bytes(draw.choice(damage))
    return where


@pytest.mark.parametrize("seed", range(3))
def test_any_content_of_a_folder_is_shown_as_text_or_is_one_line(tmp_path, seed, capsys):
    draw = random.Random(seed)
    folders = [hostile_folder(tmp_path / name, draw) for name in ("a", "<i>own<", "x\x1b[31m")]
    plan = folders[0] / "plan.json"
    if seed == 2:
        plan.write_bytes(plan.read_bytes().replace(b'"seed":0', b'"seed":NaN', 1))
    out = tmp_path / "site"
    assert main(["site", *map(str, folders), "--out", str(out)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("msda-bench: warning: ") and line.isprintable() for line in lines)
    shown = [*out.rglob("*.html")]
    assert len(shown) == (3 if seed == 2 else 4)
    for page in shown:
        text = page.read_text(encoding="utf-8")
        _is_harmless(text)
        assert str(tmp_path) not in text
    for file in out.rglob("*.csv"):
        cells = [cell for row in csv.reader(file.read_text(encoding="utf-8").splitlines()) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "\t")) or not cell.isprintable()]


def _is_harmless(text: str) -> None:
    """Checks that all elements, scripts and styles of a page are ours."""
    page = Page(text)
    assert page.open == []
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.elements for name in attributes)
    assert not {"iframe", "object", "embed", "form", "base", "i", "u"} & {tag for tag, _ in page.elements}
    ours = re.sub(r"(?s)<script>.*?</script>", "", text).replace("\n", "").replace("\N{NO-BREAK SPACE}", "")
    assert ours.isprintable()
    (policy,) = [attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv")]
    for content in (page.style, *page.scripts):
        assert f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}" in policy


def test_equal_folders_make_equal_sites(folder, tmp_path):
    one = folder("one", scores("amazon", a=800, b=700))
    for name in ("first", "second"):
        write(one, out=tmp_path / name)
    assert index(tmp_path / "first") == index(tmp_path / "second")


def test_every_built_in_dataset_states_its_modality():
    registry = discover()
    own = {name: registry.entry("dataset", name).cls for name in registry.names("dataset")}
    kinds = {name: cls.modality for name, cls in own.items() if cls.__module__.startswith("msda_bench_builtin")}
    assert len(kinds) > 10
    assert set(kinds.values()) == {"text", "images", "audio", "synthetic"}


def test_a_fault_names_the_folder_alone_whatever_its_path() -> None:
    assert _placeless("no plan.json here, version 1.2", Path()) == "no plan.json here, version 1.2"
    assert _placeless("r/plan.json: cannot be read", Path("r")).endswith("r/plan.json: cannot be read")
    assert _placeless("/a/b c/cells/x.json: damaged", Path("/a/b c")) == "b c/cells/x.json: damaged"


def test_a_folder_given_twice_is_shown_once(tmp_path) -> None:
    folder = RECORDED / "ablation-sign"
    for out, folders in (("once", [folder]), ("twice", [folder, folder.parent / "field" / ".." / folder.name])):
        write(*folders, out=tmp_path / out)
    once, twice = ((tmp_path / out / "index.html").read_bytes() for out in ("once", "twice"))
    assert once == twice
