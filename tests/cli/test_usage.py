"""Every command that cannot be carried out as it was given: one line, exit code 2, and nothing is trained or made."""

import shlex
from pathlib import Path

import pytest
import torch

from msda_bench.cli.main import main
from tests.cli.test_data import PLUGIN as DATASET
from tests.cli.test_plugins import AGGREGATOR, plugin

RUN = "run tiny.yaml --device cpu --executor inline"
DASK = "run tiny.yaml --executor dask --scheduler"
NAMES = "name datasets, or give --all; `msda-bench data list` shows them"
REFERENCE = "--metric and --by are not for --against: a reference has the suite's metric and choice"
NO_SUITE = "no suite of that name comes with msda-bench (did you mean 'smoke'?)"
NO_CRITERION = "--by 'oracle': is no criterion of this folder: the suite selects no settings"
BAD = [
    ("run", "the following arguments are required: SUITE"),
    ("data", "the following arguments are required: ACTION"),
    ("rnu", "unknown: 'rnu' (did you mean 'run'?)"),
    ("data fecth", "unknown: 'fecth' (did you mean 'fetch'?)"),
    ("plugins --no-such-option", "unknown option --no-such-option"),
    ("leaderboard A --format gihub", "argument --format: unknown: 'gihub' (did you mean 'github'?)"),
    ("run s.yaml --seeds 0-4", "unknown option --seeds (did you mean --only seed=0-4?)"),
    ("run s.yaml --exectuor dask", "unknown option --exectuor (did you mean --executor?)"),
    ("run s.yaml --executor dusk", "unknown executor 'dusk' (did you mean 'dask'?)"),
    (
        "run s.yaml --method=DARN",
        "DARN: no such file; --methods names a file with methods; --only method=A|B trains a part of the suite",
    ),
    (f"{RUN} --only method=NONE", "no method 'NONE' in this suite (known: SRC, DARN)"),
    (f"{RUN} --only=", "selection ''"),
    (f"{RUN} --workers 0", "--workers: must be a whole number of at least 1, not '0'"),
    (f"{RUN} --limit abc", "--limit: must be a whole number of at least 1, not 'abc'"),
    (f"{RUN} --timeout nan", "--timeout: must be a number of seconds above 0, not 'nan'"),
    (f"{RUN} --timeout abc", "--timeout: must be a number of seconds above 0, not 'abc'"),
    (f"{RUN} --timeout 3", "--timeout needs processes that can be ended; remove --executor inline"),
    (f"{RUN} --device tpu", "argument --device: unknown: 'tpu' (did you mean 'cpu'?)"),
    (f"{RUN} --shard 4/4", "--shard '4/4': write I/N, part I of N, counted from 0"),
    (f"{RUN} --scheduler tcp://a:1", "--scheduler is not for --executor inline; add that of the scheduler, such as "),
    (f"{RUN} --stack 4", "--stack is for a GPU; on the CPU every run trains alone"),
    (f"{DASK} tcp://127.0.0.1:1 --device auto", "--scheduler needs --device cpu or cuda"),
    (f"{DASK} tcp://127.0.0.1:1 --workers 2", "--workers is for this machine; the cluster of --scheduler has its own"),
    (f"{DASK} here", "write protocol://host:port"),
    (RUN.replace("tiny", "tf32"), "precision tf32, which only a GPU has; on the CPU use float32 or bf16"),
    pytest.param(
        f"{RUN} --device cuda",
        "--device cuda: PyTorch finds no GPU here; use --device cpu",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU"),
    ),
    ("suites show ../smoke", NO_SUITE),
    ("suites copy ../smoke --out out", NO_SUITE),
    *((f"{name} nowhere", "nowhere: is missing") for name in ("leaderboard", "compare", "report", "sources", "verify")),
    ("compare A nowhere", "nowhere: is missing"),
    ("compare A B --match NONE=DARN", "--match: A has no method or experiment 'NONE' (known: SRC, DARN, TAR, toy)"),
    ("compare A B --match toy=none", "--match: B has no method or experiment 'none' (known: SRC, DARN, TAR, toy)"),
    ("compare A B --match SRC=DARNN", "--match: B has no method or experiment 'DARNN' (did you mean 'DARN'?)"),
    ("compare A B --match SRC", "--match 'SRC': must be X=Y, a method or experiment of A and one of B"),
    ("compare A B --match SRC=TAR --match SRC=DARN", "--match 'SRC=DARN': SRC is already matched with TAR"),
    ("compare A --match SRC=DARN", "--match needs two result folders"),
    ("compare A B --across", "--across is for one result folder; `site` joins several"),
    ("compare A --across", "A: --across needs experiments of two datasets or more, by accuracy"),
    ("compare A --across --metric macro_recall,macro_f1", "macro_recall"),
    ("compare A --methods DRN", "--methods: 'DRN' is not a method of any table here (did you mean 'DARN'?)"),
    *(
        (f"{name} A --methods SRC --format csv", "--methods is for tables; csv has every method, so leave it out")
        for name in ("compare", "leaderboard")
    ),
    *((f"compare A {more} --by oracle", NO_CRITERION) for more in ("", "--across")),
    ("leaderboard A --experiments toi", "--experiments: there is no 'toi' (did you mean 'toy'?)"),
    ("leaderboard A --metric r2", "metric 'r2' is of another task"),
    ("leaderboard a --against b --per-class", "--per-class is for one result folder, without --against"),
    *((f"{name} a --against b --by oracle", REFERENCE) for name in ("leaderboard", "report")),
    ("leaderboard a --against b --metric macro_f1", REFERENCE),
    ("compare a b --against c", "--against is for one result folder, without --across"),
    ("compare a --across --against c", "--against is for one result folder, without --across"),
    *((f"data {words}", NAMES) for words in ("fetch", "verify", "fetch sine --all")),
    *((f"data {name} sines", "unknown dataset 'sines' (did you mean 'sine'?)") for name in ("fetch", "list")),
    ("data verify needy", "dataset 'needy': more: is missing"),
    ("check sharpmx", "unknown component 'sharpmx' (did you mean 'sharpmax'?)"),
    ("check d_A --kind aggregator", "unknown aggregator 'd_A' (known: "),
    ("check d_A --kind critic", "unknown kind 'critic' (known: dataset, backbone"),
    ("check sharpmax --params '{gama: 1.0}'", "aggregator 'sharpmax': gama: unknown parameter of sharpmax (did you "),
    ("check sharpmax --params gamma", "--params: must be a mapping of parameters"),
    ("check sharpmax --params {", "--params:1:2: is not valid YAML"),
    ("check sharpmax d_A --params '{x: 1}'", "--params is for one component; 2 are named here"),
    ("check twice", "'twice' is the name of an aggregator and of a validator; say which"),
    ("new scheme step --out out", "Step is a name that the code imports; choose another"),
    ("new dataset mine --out out", "msda-bench-mine 3.2 is already installed; choose another name"),
    ("new optimizer mine --out out", "invalid choice: 'optimizer'"),
]


@pytest.mark.parametrize(("words", "line"), BAD)
def test_bad_usage_is_one_line(tiny, make_results, install, capsys, words, line):
    for name in "AB":
        make_results(name, seeds=[0])
    Path("tf32.yaml").write_text(Path("tiny.yaml").read_text().replace("epochs:", "precision: tf32, epochs:"))
    install("needy-data", DATASET.replace('name = "toy"', 'name = "needy"\n        more: int'))
    install("twice", plugin("twice") + AGGREGATOR.replace("equal_weights", "twice"))
    install("msda-bench-mine", "x = 1", version="3.2", group="others")
    assert main(shlex.split(words)) == 2
    err = capsys.readouterr().err
    (error,) = [shown for shown in err.splitlines() if "error: " in shown]
    assert line in error
    assert not [*Path("results").rglob("*.jsonl*"), *Path().glob("out")]
