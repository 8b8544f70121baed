"""`msda-bench data leaks` on datasets with a planted leak of each kind."""

import io
import re

import pandas as pd
import pytest

from msda_bench.cli.main import main
from tests.own import suite

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
        plant: Literal["nothing", "equal", "near", "repeated", "bug"] = "nothing"
        form: Literal["table", "narrow", "image", "bag", "text"] = "table"
        size: int = 200

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
            elif domain == "a" and self.plant == "repeated":
                x[1::2] = x[::2]
            return DomainData(self.made(x, domain), np.arange(self.size) % 2)

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


@pytest.fixture
def leaks(install, tmp_path, capsys, monkeypatch):
    """`leaks(...)`: the exit code of the command on the planted dataset, and the numbers by domain, or the errors."""
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    install("planted-data", PLUGIN)

    def run(**params):
        path = suite(tmp_path, "planted", params, targets=["a"], seeds=2)
        code = main(["data", "leaks", path, "--format", "csv"])
        out, err = capsys.readouterr()
        if err:
            return code, err.splitlines()
        rows = pd.read_csv(io.StringIO(out))
        assert rows["leak"].any() == bool(code)
        return code, rows.set_index("domain").to_dict("index")

    return run


FORMS = pytest.mark.parametrize("form", ["table", "image", "bag", "text"])


@FORMS
def test_independent_rows_are_no_leak_and_repeated_rows_of_the_target_are_found(leaks, form):
    code, pairs = leaks(form=form)
    assert (code, [pair["near"] for pair in pairs.values()]) == (0, [0, 0, 0])
    code, pairs = leaks(form=form, plant="repeated")
    assert (code, pairs["a"]["equal"], pairs["a"]["near"]) == (1, 100, 100)
    assert 30 <= pairs["a"]["equal_seen"] == pairs["a"]["near_seen"] <= 70
    assert [pairs[source]["leak"] for source in "bc"] == [False, False]
    code, pairs = leaks(form=form, plant="repeated", duplicates="drop", train=50)
    assert (code, pairs["a"]["tested"], pairs["a"]["equal"], pairs["a"]["near"]) == (0, 50, 0, 0)


@FORMS
@pytest.mark.parametrize("plant", ["equal", "near"])
def test_rows_of_the_target_that_a_source_trains_on_are_found_whatever_their_units(leaks, form, plant):
    code, pairs = leaks(form=form, plant=plant)
    assert code == 1
    # Ten of a hundred test rows lie in b on average, and b trains on half of them.
    assert 2 <= pairs["b"]["near_seen"] < pairs["b"]["near"] <= 20
    # Some bags stay as they are although each word has a chance to change.
    assert pairs["b"]["equal"] == pairs["b"]["near"] if plant == "equal" else pairs["b"]["equal"] < pairs["b"]["near"]
    assert (pairs["c"]["near"], pairs["a"]["near"]) == (0, 0)


def test_near_rows_are_not_looked_for_where_they_are_by_chance_or_by_design_and_large_targets_are_sampled(leaks):
    code, pairs = leaks(form="narrow")
    assert (code, [pd.isna(pair["near"]) for pair in pairs.values()]) == (0, [True] * 3)
    assert leaks(form="narrow", plant="equal")[0] == 1
    code, pairs = leaks(plant="repeated", protocol="transductive")
    assert (code, pairs["a"]["tested"], pairs["a"]["near"], pairs["a"]["near_seen"]) == (0, 200, 200, 0)
    _, pairs = leaks(size=4500)
    assert (pairs["a"]["tested"], pairs["a"]["compared"]) == (4400, 2000)


def test_an_unusable_dataset_is_one_line(leaks):
    code, (error,) = leaks(plant="bug")
    line = r"dataset 'planted' of planted-data 1.0 cannot be loaded: planted_data.py:\d+: ZeroDivisionError: of the "
    assert (code, bool(re.search(line, error))) == (2, True)
