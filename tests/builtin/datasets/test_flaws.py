"""Options that take a flaw out of published data, on the real bytes."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from msda_bench.cli.main import main
from msda_bench_builtin.datasets import Amazon, GasDrift, Hospitals, SpokenDigits
from tests.own import suite


@pytest.mark.parametrize(
    ("data", "target", "left"),
    [(Amazon(), "books", 5888), (Hospitals(), "long_beach", 199)],  # different lines of the files, without labels
)
def test_no_row_of_a_domain_is_left_twice(real, tmp_path, capsys, data, target, left):
    real(data)
    shares = []
    for duplicates in ("keep", "drop"):
        params = {"train": data.train, "duplicates": duplicates}
        main(["data", "leaks", suite(tmp_path, data.name, params, targets=[target]), "--format", "csv"])
        rows = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index("domain")
        shares.append(rows.loc[target, "equal"])
    trained = data.train if isinstance(data.train, int) else round(data.train * left)
    assert rows.loc[target, "tested"] == left - trained
    assert shares[0] > shares[1] == 0


def test_filled_gaps_of_hospitals_are_marked_nowhere(real):
    data = Hospitals()
    files = real(data)
    loaded = {name: data.load(name, files).x for name in data.domains}
    marked, filled = (replace(data, gaps=gaps).fit(loaded)("hungary", loaded["hungary"]) for gaps in ("mark", "fill"))
    assert marked.shape == filled.shape == (294, data.input.shape[0])
    start, says_missing = 0, []
    for kind in data.plan.kinds:
        if "" in kind.levels:
            says_missing.append(start + kind.levels.index(""))
        elif kind.gaps:
            says_missing.append(start + kind.width - 1)
        start += kind.width
    assert marked[:, says_missing].sum() > 700
    assert not filled[:, says_missing].any()
    assert replace(data, gaps="fill").notes == ("hospitals: missing values are filled, and not marked.",)


def test_shared_gases_are_those_of_all_batches(real, keeps_contract):
    data = GasDrift(gases="shared")
    files = real(data)
    counts = [np.bincount(data.load(name, files).y, minlength=5) for name in data.domains]
    assert (data.task.classes, len(counts[0])) == (5, 5)
    assert np.min(counts) > 0
    assert np.sum(counts) == 6697 - sum(int((GasDrift().load(name, files).y == 5).sum()) for name in GasDrift().domains)
    amounts = GasDrift(gases="shared", mode="regression")
    assert len(amounts.load("batch_1", files).y) == counts[0].sum()
    assert "gas_drift: five of the six gases; toluene is left out." in data.notes
    keeps_contract(data, files)


def test_trimmed_recordings_keep_the_contract(real, keeps_contract):
    data = SpokenDigits(trim=0.01)
    files = real(data)
    assert np.isfinite(SpokenDigits(trim=0.05).load("theo", files).x).all()
    assert data.notes == ("spoken_digits: 0.01 s are left out at both ends of each recording.",)
    keeps_contract(data, files)
