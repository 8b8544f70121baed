"""`msda-bench data leaks` on datasets with a planted leak of each kind, and on recordings under several noises."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from msda_bench.cli.main import main

PLUGIN = """
    from typing import Literal

    import numpy as np
    from scipy.sparse import csr_matrix

    from msda_bench.api import Dataset, DomainData, InputSpec, Task, component, hookimpl

    WORDS = np.array([f"word{number}" for number in range(900)])

    @component
    class Planted(Dataset):
        '''Rows of two classes without any relation, but for what is planted in domain b or a.'''
        name = "planted"
        domains = ("a", "b", "c")
        task = Task("classification", 2)
        train: int = 100
        plant: Literal["nothing", "equal", "near", "paired", "repeated", "shape", "bug"] = "nothing"
        form: Literal["table", "narrow", "image", "bag", "text"] = "table"
        kept_apart: Literal["no", "groups", "official"] = "no"
        size: int = 200

        @property
        def shared_groups(self):
            return self.kept_apart == "groups"

        @property
        def input(self):
            shape = {"image": (3, 24, 20), "table": (16,), "narrow": (2,)}.get(self.form, (900,))
            return InputSpec(shape, sparse=self.form in ("bag", "text"), bytes=self.form == "image")

        def fit(self, train):
            return lambda _, x: x

        def load(self, domain, files):
            if self.plant == "bug" and domain == "b":
                raise ZeroDivisionError("of the author")
            x = self.draw(domain)
            if domain == "b" and self.plant in ("equal", "near"):
                x[::10] = self.draw("a")[self.size // 2:][::5][: len(x[::10])]
                if self.plant == "near":
                    x[::10] = self.change(x[::10], 0.02)
            elif domain != "a" and self.plant == "paired":
                x = self.change(self.draw("a"), 0.7)
            elif domain == "a" and self.plant == "repeated":
                x[1::2] = x[::2]
            if domain == "b" and self.plant == "shape":
                x = x[:, 1:]
            y = np.arange(self.size) % 2
            groups = np.arange(self.size) if self.kept_apart == "groups" else None
            test = np.arange(self.size) >= self.size // 2 if self.kept_apart == "official" else None
            return DomainData(self.made(x, domain), y, test, groups=groups)

        def draw(self, domain):
            random = np.random.default_rng("abc".index(domain))
            if self.form == "image":
                return random.integers(0, 256, (self.size, 3, 24, 20))
            if self.form in ("bag", "text"):
                return random.integers(0, 900, (self.size, 40))
            return random.normal(size=(self.size, *self.input.shape))

        def change(self, x, amount):
            random = np.random.default_rng(9)
            if self.form in ("bag", "text"):
                return np.where(random.uniform(size=x.shape) < amount, 7, x)
            if self.form == "image":
                return (0.8 * (x + 255 * amount * random.uniform(size=x.shape))).clip(0, 255).astype(int)
            return x + amount * random.normal(size=x.shape)

        def made(self, x, domain):
            if self.form == "text":
                return np.array([" ".join(WORDS[row]) for row in x], dtype=object)
            if self.form == "bag":
                rows = np.repeat(np.arange(len(x)), x.shape[1])
                return csr_matrix((np.ones(x.size, np.float32), (rows, x.ravel())), (len(x), 900))
            if self.form == "image":
                return x.astype(np.uint8)
            units = 10.0 ** np.arange(x.shape[1]) if domain == "b" and self.plant != "equal" else 1.0
            return (x * units + 3).astype(np.float32)

    @hookimpl
    def msda_datasets():
        return [Planted]
"""
SUITE = """
schema: 1
name: leaky
dataset: {dataset}
targets: {targets}
seeds: 2
backbone: {{mlp: {{hidden: [4]}}}}
training: {{epochs: 1, batch: 5, optimizer: adam}}
methods: {{SRC: {{scheme: pooled}}}}
"""
NOTHING = "nothing found of the kinds that were looked for"


@pytest.fixture
def leaks(install, tmp_path: Path, capsys, monkeypatch):
    """`leaks(...)`: exit code, output and errors of the command on the planted dataset."""
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    install("planted-data", PLUGIN)
    suite = tmp_path / "leaky.yaml"

    def run(*options: str, targets: str = "[a]", **params: Any) -> tuple[int, str, list[str]]:
        suite.write_text(SUITE.format(dataset=json.dumps({"planted": params}), targets=targets))
        code = main(["data", "leaks", str(suite), *options])
        out, err = capsys.readouterr()
        return code, out, err.splitlines()

    return run


def plain(result: tuple[int, str, list[str]]) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """The exit code, the percentages on the target in the verdict, and those by domain; None where none is shown."""
    code, out, err = result
    assert err == []
    assert (f"planted (leaky): {NOTHING}" in out) == (not code)
    said = {"in_sources": r"With labels: .*?: a ([\d.]+) %", "in_target": r"Without labels, .*?: a ([\d.]+) %"}
    target = {name: float(found[1]) if (found := re.search(what, flat(out))) else 0 for name, what in said.items()}
    groups, tested = re.search(r"group in training: a (\d+)", flat(out)), re.search(r"Test rows: a (\d+)", flat(out))
    target |= {"in_groups": int(groups[1]) if groups else None, "tested": int(tested[1])}
    return code, target, by_domain(out)


def by_domain(table: str, target: str = "a") -> dict[str, dict[str, float | None]]:
    """The percentages of the first table of a text."""
    lines = table.splitlines()
    (at, *_) = (number for number, line in enumerate(lines) if line.startswith("---"))
    spans = [found.span() for found in re.finditer("-+", lines[at])]
    heads, *rows = ([line[start:end].strip() for start, end in spans] for line in (lines[at - 1], *lines[at + 1 :]))
    return {
        row[0].replace("itself", target): {
            head: float(text) if text else None for head, text in zip(heads[1:], row[1:], strict=True)
        }
        for row in itertools.takewhile(lambda row: row[0], rows)
    }


def flat(out: str) -> str:
    """A text without its lines' ends."""
    return " ".join(out.split())


FORMS = pytest.mark.parametrize("form", ["table", "image", "bag", "text"])


@FORMS
def test_independent_rows_are_no_leak_and_repeated_rows_of_the_target_are_found(leaks, form):
    code, target, pairs = plain(leaks(form=form))
    assert (code, target["in_sources"], target["in_target"], target["in_groups"]) == (0, 0, 0, None)
    assert [(pair["near"], pair["paired seen"]) for pair in pairs.values()] == [(0, None)] * 3
    code, target, pairs = plain(leaks(form=form, plant="repeated"))
    assert (code, pairs["a"]["equal"], pairs["a"]["near"], target["in_sources"]) == (1, 100, 100, 0)
    assert target["in_target"] == pairs["a"]["equal seen"] == pairs["a"]["near seen"]
    assert 30 <= target["in_target"] <= 70


@FORMS
@pytest.mark.parametrize("plant", ["equal", "near"])
def test_rows_of_the_target_that_a_source_trains_on_are_found_whatever_their_units(leaks, form, plant):
    code, target, pairs = plain(leaks(form=form, plant=plant))
    assert code == 1
    # Ten of a hundred test rows lie in b on average, and b trains on half of them.
    assert 2 <= target["in_sources"] <= 15
    assert target["in_sources"] == pairs["b"]["near seen"] < pairs["b"]["near"] <= 20
    # Some bags stay as they are although each word has a chance to change.
    assert pairs["b"]["equal"] == pairs["b"]["near"] if plant == "equal" else pairs["b"]["equal"] < pairs["b"]["near"]
    assert (pairs["c"]["near"], pairs["a"]["near"], target["in_target"]) == (0, 0, 0)


@pytest.mark.parametrize("form", ["table", "image", "bag"])
def test_paired_rows_are_found_although_none_is_near(leaks, form):
    code, target, pairs = plain(leaks(form=form, plant="paired"))
    assert code == 1
    for source in "bc":
        assert pairs[source]["near"] == 0
        assert pairs[source]["paired"] > 50
        assert pairs[source]["chance"] < 5
    assert target["in_sources"] > 60 > pairs["b"]["paired seen"] > 40


@pytest.mark.parametrize("apart", ["groups", "official"])
def test_paired_rows_that_the_split_keeps_apart_are_reported_but_no_leak(leaks, apart):
    params = {"plant": "paired", "kept_apart": apart, "train": 60, "test": 60}
    code, target, pairs = plain(leaks(**params))
    assert (code, target["in_sources"]) == (0, 0)
    assert [pairs[source]["paired seen"] for source in "bc"] == [0, 0]
    assert target["in_groups"] == (0 if apart == "groups" else None)
    out = flat(leaks(**params)[1])
    assert f"planted (leaky): {NOTHING} Paired: in 2 of 2 comparisons" in out
    assert "; no run trains on such a row of its test rows" in out


def test_near_rows_are_not_looked_for_where_they_are_by_chance_or_by_design_and_large_targets_are_sampled(leaks):
    code, target, pairs = plain(leaks(form="narrow"))
    assert (code, target["tested"], {pair["near"] for pair in pairs.values()}) == (0, 100, {None})
    assert plain(leaks(form="narrow", plant="equal"))[0] == 1
    code, target, pairs = plain(leaks(plant="repeated", protocol="transductive"))
    assert (code, target["in_target"], target["tested"], pairs["a"]["near"]) == (0, 0, 200, 100)
    assert "Test rows: a 4,400 at seed 0 (2,000 of them but for equal rows)" in flat(leaks(size=4500)[1])


def test_the_verdict_comes_first_then_its_reasons_and_the_numbers_of_each_target_and_source(leaks):
    code, out, err = leaks(targets="[a, b]", plant="equal")
    title, verdict, *tables, _ = re.split("\n\n+", out.strip())
    assert (code, err, title) == (1, [], "planted (leaky): leak suspected")
    what = "With labels: a source trains on a row equal to, near or paired with a test row"
    assert re.match(rf"{what}: a \d+\.0 %, b \d+\.0 %\.", flat(verdict))
    assert flat(verdict).endswith("Test rows: a 100 at seed 0, b 100 at seed 0.")
    domains = [[line.split()[0] for line in table.splitlines()] for table in tables]
    assert [[head, *rows] for head, _, *rows in domains] == [["a", "itself", "b", "c"], ["b", "itself", "a", "c"]]


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"plant": "shape"}, r"dataset planted: rows of 'a' are \(16,\), but those of 'b' \(15,\)$"),
        (
            {"plant": "bug"},
            r"dataset 'planted' of planted-data 1.0 cannot be loaded: planted_data.py:\d+: ZeroDivisionError: of the ",
        ),
        ({"size": 90}, "has 90 examples to train on, fewer than train = 100"),
    ],
)
def test_an_unusable_dataset_is_one_line(leaks, params, line):
    code, _, (error,) = leaks(**params)
    assert code == 2
    assert re.search(line, error)


@pytest.mark.parametrize("name", ["no-such-suite", "paper-amazon"])
def test_an_unusable_suite_is_one_line(name, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("MSDA_BENCH_DATA", raising=False)
    assert main(["data", "leaks", name]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(
    not Path(os.environ.get("MSDA_BENCH_DATA", ""), "music/MGR.npy").is_file(), reason="the files of music are not here"
)
def test_recordings_under_several_noises_are_paired_and_groups_keep_them_apart(capsys):
    main(["data", "leaks", "music"])
    shown = by_domain(capsys.readouterr().out)
    sources = [row for domain, row in shown.items() if domain != "a"]
    assert len(sources) == 4
    assert all(row["paired"] > 10 * row["chance"] for row in sources)
    assert [row["paired seen"] for row in sources] == [0] * len(sources)
