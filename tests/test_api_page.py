"""The dataset on the API page works as it stands, with files that a user would place."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from itertools import product
from pathlib import Path

import pytest

from msda_bench.data import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.errors import DataError
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.running.data import check_sizes, ensure_data
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.testing import checks, contract

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
CODE = re.search(r'```python title="letters.py"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
WORDS = {"bakery": "bread", "garage": "brakes", "library": "books"}
SUITE = """\
schema: 1
name: letters
dataset: {letters: {train: TRAIN, words: 60, sha256: {SUMS}}}
targets: [library]
seeds: 1
backbone: {mlp: {hidden: [8], dropout: 0.1}}
training: {epochs: 3, batch: 4, steps: 20, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  DARN: {discrepancy: d_A, mu: 0.01, aggregator: {sharpmax: {gamma: 0.9}}}
"""


@pytest.fixture
def letters(tmp_path, monkeypatch):
    (tmp_path / "letters_of_the_page.py").write_text(CODE[1], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "letters_of_the_page", raising=False)
    return importlib.import_module("letters_of_the_page").msda_datasets()[0]


@pytest.fixture
def sums(tmp_path, monkeypatch):
    """Writes the files; their checksums."""
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "letters").mkdir()
    found = {}
    for shop, word in WORDS.items():
        openings, objects = ("Dear shop,", "Hello!", "To whom it may concern:"), (word, "people", "hours", "prices")
        lines = [
            f"{label}\t{opening} {'I love' if label else 'I hate'} your {thing}, {end}"
            for label, opening, thing, end in product((0, 1), openings, objects, ("as ever", "really"))
        ]
        path = tmp_path / "letters" / f"{shop}.tsv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found[shop] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_it_keeps_the_contract(letters, sums):
    kit = contract(letters(words=60, sha256=sums))
    for check in checks("dataset"):
        getattr(kit, check)()


def test_a_suite_trains_on_it_and_finds_too_few_examples_before(letters, sums, tmp_path):
    registry = Registry([*discover().entries, Entry("dataset", letters, "letters", "1.0")])

    def cells(train):
        given = ", ".join(f"{shop}: {digest}" for shop, digest in sums.items())
        path = tmp_path / "letters.yaml"
        path.write_text(SUITE.replace("TRAIN", train).replace("SUMS", given))
        found = list(expand(load_suite(path, registry), registry).cells.values())
        ensure_data(found, registry, print, fetch=False)
        check_sizes(found, registry)
        return found

    records = list(Trainer(registry, LocalFiles(), "cpu").train(cells("0.5")))
    assert [record.status for record in records] == ["ok", "ok"]
    assert all(record.outcome.n_test == 24 and record.outcome.n_correct == 24 for record in records)
    with pytest.raises(DataError, match=r"domain 'garage' has 48 examples to train on, fewer than train\.garage = 50"):
        cells("{garage: 50, default: all}")
