"""The pages that end in a leaderboard work verbatim: their code is installed and their commands run in order."""

import csv
import re

import pytest

from msda_bench.cli.main import main
from msda_bench.plugins import discover
from tests.own import broken
from tests.reader import ROOT, Reader, blocks, text_of, words_of

TUTORIAL, DATASET = blocks("tutorial.md"), blocks("add-dataset.md")
(CODE,) = [block.text for block in DATASET if block.title.startswith("src/")]


def leaderboard(place, suite):
    with (place / "results" / suite / "leaderboard.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_following_the_tutorial_ends_in_a_rank(tmp_path):
    kinds = {(block.language, bool(block.title)) for block in TUTORIAL}
    assert kinds == {("console", False), ("python", True), ("yaml", True), ("text", True)}
    reader = Reader(tmp_path)
    for block in TUTORIAL:
        reader.follow(block)
    assert reader.said.count("aggregator steady keeps its contract") == 2
    assert re.search(r"Steady is number \d+ of 25 by the mean", " ".join(reader.said.split()))
    rows = leaderboard(reader.place, "fonts-poisoned-ranked")
    (row,) = [row for row in rows if (row["method"], row["target"]) == ("Steady", "cm_maths")]
    assert row["n_ok"] == "10"
    assert "msda-bench-steady 1.0.0" in row["distributions"]


def test_the_mistake_is_reported_as_the_tutorial_says(install):
    (code,) = [block.text for block in TUTORIAL if block.language == "python"]
    install("msda-bench-steady", code.replace("softmax(-self", "softmax(self"))
    component = discover().entry("aggregator", "steady").create({})
    found = broken(component)
    reported = "".join(f"  broken   {finding.clause}\n           {finding.reason}\n" for finding in found)
    assert [reported] == [block.text for block in TUTORIAL if block.language == "text"]


@pytest.mark.slow
def test_following_the_page_on_datasets_ends_in_the_leaderboard(tmp_path):
    reader = Reader(tmp_path)
    for block in DATASET:
        reader.follow(block)
    assert re.findall("[0-9a-f]{64}", CODE) == re.findall("[0-9a-f]{64}", reader.said)
    assert reader.said.count("dataset letters keeps its contract") == 1
    assert "skipped" not in reader.said
    rows = leaderboard(reader.place, "letters")
    assert {row["target"] for row in rows} == {"garage", "library", "average"}
    assert all(row["n_ok"] == "2" and float(row["mean"]) == 100 for row in rows)


def test_too_few_examples_end_the_run_at_its_first_cell(tmp_path, monkeypatch, install, capsys):
    reader = Reader(tmp_path / "reader")
    reader.follow(next(block for block in DATASET if block.title == "make_letters.py"))
    reader.run(["python", "make_letters.py"])
    monkeypatch.setenv("MSDA_BENCH_DATA", str(reader.place / "data"))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    install("msda-bench-letters", CODE)
    (suite,) = [block.text for block in DATASET if block.language == "yaml"]
    path = tmp_path / "suite.yaml"
    path.write_text(suite.replace("{words: 60}", "{words: 60, train: {garage: 50, default: all}}"))
    assert main(["run", str(path), "--executor", "inline", "--out", str(tmp_path / "results")]) == 2
    assert "domain 'garage' has 48 examples to train on, fewer than train.garage = 50" in capsys.readouterr().err


@pytest.mark.slow
def test_the_code_of_the_page_on_python_runs_and_draws_its_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {}
    for block in blocks("sklearn.md"):
        if block.language == "python" and "mb." in block.text:
            exec(block.text.replace('.save("', f'.save("{tmp_path}/'), names)  # noqa: S102
    assert round(names["harm"]["GroupDRO"] - names["harm"]["SRC"], 1) == -15.1  # as docs/findings.md has it
    figures = ROOT / "docs" / "figures"
    drawn = {path.name: words_of(path) for path in tmp_path.iterdir()}
    assert drawn == {name: words_of(figures / name) for name in drawn}
    assert len(drawn) == 8


NOTEBOOK = ROOT / "docs" / "notebooks" / "results.ipynb"


@pytest.mark.filterwarnings("default")  # the kernel's own packages warn of one another
def test_the_notebook_runs_and_shows_table_charts_and_test():
    nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are in the extra `test`")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(NOTEBOOK, as_version=4)
    kept = _outputs(book)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    shown = _outputs(book)
    assert [data["text/plain"] for data in kept] == [data["text/plain"] for data in shown], "run it anew and save it"
    assert sum("image/png" in data for data in kept) == 2, "charts are kept as pictures, which need no network"
    assert sum("vegaEmbed" in data.get("text/html", "") for data in shown) == 2
    board = csv.DictReader(text_of("results/paper-amazon/leaderboard.csv").splitlines())
    (best,) = [row for row in board if row["target"] == "average" and row["rank"] == "1"]
    assert any(f"{float(best['mean']):.2f}" in data.get("text/html", "") for data in shown)
    assert shown[-1]["text/plain"] == "(9.5367431640625e-07, 20, 0)", "all twenty are positive: 2^-20"


def _outputs(book):
    """What the cells of a notebook show, by MIME type."""
    return [output["data"] for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
