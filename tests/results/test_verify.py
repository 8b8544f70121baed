"""Our runs compared with published numbers of one source, and of several that disagree."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_ind_from_stats

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.errors import BenchError
from msda_bench.suite.published import PublishedNumber, PublishedNumbers
from tests.results.conftest import planned, write_folder

ROOT = Path(__file__).parents[2]
BASE = [100, 104, 108, 112, 116, 120]  # of 200: 50 to 60 percent, mean 55
ERROR = math.sqrt(sum((value / 2 - 55) ** 2 for value in BASE) / 30)


def points(more, spread=(0, 0, 0, 0, 0, 0)):
    """A method that is `more` / 2 points better than the base in each run, apart from `spread`."""
    return [value + more + extra for value, extra in zip(BASE, spread, strict=True)]


def both(runs):
    return dict.fromkeys("xy", runs)


def row(method, means, **about):
    """A method's numbers."""
    known = {"spread": 0.5, "spread_is": "standard error", "runs": 20, "source": "A. Author", "table": "Table 1"}
    about = known | {"certainty": "high", "method": method} | about
    return [PublishedNumber(**about, target=target, mean=mean) for target, mean in means.items()]


def published(means, **about):
    """One source: means at x and y, and their average."""
    rows = [row(name, {"x": x, "y": y, "average": (x + y) / 2}, **about) for name, (x, y) in means.items()]
    return PublishedNumbers("mine", tuple(number for numbers in rows for number in numbers))


@pytest.fixture
def held(tmp_path, capsys):
    """`held(ours, theirs)` verifies {method: {target: runs}}: the exit code, text and verify.csv."""

    def run(ours, theirs, **options):
        folder = write_folder(tmp_path / str(len([*tmp_path.iterdir()])), planned(ours, published=theirs, **options))
        return main(["verify", str(folder)]), capsys.readouterr().out, (folder / "verify.csv").read_text()

    return run


@pytest.mark.parametrize("name", ["paper-amazon", "pacs-features", "ablation-learning-rate"])
def test_the_committed_file_is_equal_byte_for_byte(name, tmp_path):
    folder = Path(
        shutil.copytree(ROOT / "results" / name, tmp_path / name, ignore=shutil.ignore_patterns("verify.csv"))
    )
    main(["verify", str(folder), "--format", "csv"])
    assert (folder / "verify.csv").read_bytes() == (ROOT / "results" / name / "verify.csv").read_bytes()


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=9).filter(lambda runs: len({*runs}) > 1 or len(runs) == 1),
    st.floats(0, 100), st.floats(0.01, 50), st.integers(2, 50),
    st.sampled_from(["standard error", "standard deviation", "not said", None]),
)  # fmt: skip
def test_z_equals_welchs_t(table, runs, mean, error, n, kind):
    """A single run has the published runs' variance; without a known spread the published mean is taken as exact."""
    ours, spread = [run / 2 for run in runs], error * n**0.5 if kind == "standard deviation" else error
    theirs = row("a", {"x": mean}, spread=kind and spread, spread_is=kind, runs=kind and n)
    found = mb.verify(table({"a": {"x": runs}}, published=PublishedNumbers("mine", tuple(theirs)))).iloc[0]
    z = found["z"]
    single, known = len(ours) == 1, kind in {"standard error", "standard deviation"}
    if single and not known:
        assert math.isnan(z)
        return
    oracle = ttest_1samp(ours, mean) if not known else ttest_ind_from_stats(
        np.mean(ours), np.std(ours, ddof=not single), len(ours), mean, error * n**0.5, n, equal_var=single
    )  # fmt: skip
    assert z == pytest.approx(oracle.statistic, abs=1e-9)
    assert found["within_2_se"] == (abs(z) <= 2)


FAR = 2 * math.hypot(ERROR, 0.5)


@pytest.mark.parametrize(
    ("theirs", "code", "verdict"),
    [
        (published({"a": [55 - 0.99 * FAR, 55 + 0.99 * FAR]}), 0, "3 of 3 published numbers within 2 standard errors"),
        (published({"a": [55 - 1.01 * FAR, 55.0]}), 0, "2 of 3 published numbers within 2 standard errors"),
        (published({"b": [55, 55]}), 1, "0 of 3 published numbers within 2 standard errors, 3 with too few runs"),
        (published({"OTHER": [55, 55]}), 0, "no published number is of its methods and targets"),
        (published({"a": [55, 55]}, backbone="net"), 0, "none of 3 published numbers is of the suite's network and"),
    ],
)
def test_the_verdict_counts_numbers_within_two_standard_errors(held, theirs, code, verdict):
    """Whether numbers agree is the reader's to say; runs that are missing are exit code 1."""
    exit_code, text, _ = held({"a": both(BASE), "b": both([None] * 6)}, theirs)
    assert (exit_code, f"verdict: table: {verdict}" in text) == (code, True)


@pytest.mark.parametrize(
    ("runs", "options", "table_name", "line"),
    [
        ([0.5, 0.4], {"published": published({"a": [5, 5]}), "task": "regression"}, None,
         "table: table mine is of accuracy_percent, the runs are of mse"),
        (BASE, {}, None, "these runs: its suite names no published table; give one with --table"),
        (BASE, {}, "darn", "unknown table 'darn' .known: .*; one of your own is a .csv file"),
        (BASE, {}, "nowhere.csv", "nowhere.csv: no such file"),
        (BASE, {}, "pacs", "these runs: has no results on any of the targets, the subject of table pacs"),
    ],
)  # fmt: skip
def test_an_unverifiable_folder_is_one_line(table, runs, options, table_name, line):
    with pytest.raises(BenchError, match=line):
        mb.verify(table({"a": both(runs)}, **options), table_name)


def test_a_table_can_be_chosen_and_only_the_suites_own_is_written(tmp_path, capsys):
    folder, table = write_folder(tmp_path / "made", planned({"a": both(BASE), "b": both(BASE)})), tmp_path / "own.csv"
    rows = "".join(f"a,{target},55,a paper,1,high\nb,{target},90,a paper,1,high\n" for target in "xy")
    table.write_text(f"method,target,mean,source,table,certainty\n{rows}")
    assert main(["verify", str(folder), "--table", str(table)]) == 0
    assert "beside the numbers of own" in capsys.readouterr().out
    assert main(["verify", str(folder), "--table", str(table), "--format", "github", "--methods", "b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| b")] == ["b"] * 2
    assert not any("| a " in line or "verdict" in line for line in lines)
    assert not (folder / "verify.csv").exists()


COMMON = {"backbone": "ResNet-18", "protocol": "all of the target"}
SOURCES = {
    "old": COMMON | {"source": "A. Author, Old Paper 2020", "table": "Table 1"},
    "new": COMMON
    | {"source": "B. Author, New Paper 2023", "table": "Table 4", "certainty": "medium: copied, not rerun"},
    "dg": {
        "source": "C. Author, Other Task", "table": "by dataset", "backbone": "ResNet-50",
        "protocol": "no target data\x1b[31m",
    },
}  # fmt: skip


def numbers(origin, method, means, *spread):
    about = dict(zip(("spread", "spread_is", "runs"), spread or (None, None, None), strict=True))
    return row(method, means, **SOURCES[origin], **about)


DISAGREEING = (
    *numbers("old", "source-only", {"x": 54.8, "y": 57.0, "average": 55.9}),
    *numbers("new", "source-only", {"x": 55.4, "y": 50.0, "average": 52.7}, 0.3, "standard error", 3),
    *numbers("new", "DARN", {"x": 70.0, "y": 58.0, "average": 64.0}, 1.2, "standard deviation", 5),
    *numbers("dg", "ERM", {"x": 90.0, "y": 90.0}, 0.5, "not said", None),
)


def test_output_matches_the_golden_files(held, golden):
    """Three sources, missing and diverged runs, and names with terminal control sequences."""
    ours = {
        "SRC": {"x": points(0), "y": ["diverged: loss is \x1b[31mnan\nin epoch 3", *BASE[1:]]},
        "DARN": {"x": points(6), "y": [*points(6)[:4], None, None]},
        "MDAN": both(points(7)),
        "NEW": both(points(50)),
    }
    more = row("MDAN", {"x": 58.1, "y": 58.6, "average": 58.35}, source="D. Author", table="Table 9")
    more += row("DARN", {"x": 58.0, "y": 59.0, "average": 58.5}, source="D. Author", table="Table 9")
    names = {"SRC": ("source-only", "ERM")}
    theirs = PublishedNumbers("mine", (*DISAGREEING, *more), ("ResNet-18",), ("all of the target",), names)
    _, text, file = held(ours, theirs, notes=("Toy \x1b]0;own\x07data.",))
    assert "\x1b" not in text
    golden("verify.txt", text)
    golden("verify.csv", file)
