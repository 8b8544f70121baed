"""The arguments of every command, apart from what carries it out, so that help imports nothing else."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

Argument: TypeAlias = tuple[str, Mapping[str, Any]]
"""The arguments of `add_argument`: a name and keywords."""


def _arg(name: str, metavar: str | None, what: str, **options: Any) -> Argument:
    return name, {"metavar": metavar, "help": what, **options}


def _flag(name: str, what: str) -> Argument:
    return name, {"help": what, "action": "store_true"}


def _names(text: str) -> list[str]:
    """Parses names that commas separate."""
    return [name for part in text.split(",") if (name := part.strip())]


def _number(kind: Callable[[str], Any], fits: Callable[[Any], bool], what: str) -> Callable[[str], Any]:
    """Returns a parser of numbers that fit; for any other the error says `what` it must be."""

    def parse(text: str) -> Any:
        try:
            if fits(value := kind(text)):
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")

    return parse


_LIST: Mapping[str, Any] = MappingProxyType({"type": _names, "default": ()})
_COUNT = _number(int, lambda count: count >= 1, "a whole number of at least 1")
_SEED = _number(int, lambda seed: 0 <= seed < 1 << 31, "a whole number from 0 to 2147483647")
_SECONDS = _number(float, lambda seconds: 0 < seconds < math.inf, "a number of seconds above 0")
COMPONENTS = ("aggregator", "discrepancy", "dataset", "backbone", "scheme", "validator", "metric")
COLUMNS = MappingProxyType({
    "domain": "the column that names each row's domain",
    "label": "the column to predict",
    "text": "a column that is read as words",
    "group": "a column that names rows that belong together, or several with commas between them; of images a regular "
    "expression of what paths of those that belong together have in common, such as 'p(\\d+)_'",
    "test": "a column that marks official test rows, such as split, or COLUMN=VALUE,VALUE; nothing to draw them; of "
    "images a regular expression of their paths",
    "predictions": "a column of another model's answers, shown as a reference and learned from by no method",
})  # fmt: skip
"""The options of `data identify` that name a column."""
_SUITE = _arg("suite", "SUITE", "a suite by name (`msda-bench suites list`), or a file, such as mine.yaml", type=Path)
_FOLDER = _arg("folder", "DIR", "a result folder, such as results/quickstart", type=Path)
_AGAINST = _arg(
    "--against",
    "REFERENCE",
    "rank these methods among recorded ones of the same protocol: `reference`, those that come with msda-bench, or a "
    "result folder or file of `store reference`",
)
_BY = _arg(
    "--by",
    "NAME",
    "use the settings that this criterion selects, such as oracle, instead of the suite's; files do not change",
)
_FORMAT = _arg(
    "--format",
    None,
    "how tables are printed; csv has every row and column",
    choices=("simple", "csv", "github", "latex"),
    default="simple",
)
_EXPERIMENTS = _arg("--experiments", "A,B", "only these experiments of the folder; its files do not change", **_LIST)
_METHODS = _arg("--methods", "A,B", "only these methods", **_LIST)
_METRIC = _arg(
    "--metric",
    "NAME",
    "show this metric, such as macro_f1, instead of the suite's; of several, each table shows one for its task",
    **_LIST,
)
_QUIET = _flag("--quiet", "print no verdict and no explanation of the tables")
_DEVICE = _arg(
    "--device", None, "where to train (cuda if there is a GPU)", choices=["auto", "cpu", "cuda"], default="auto"
)
_TRUST = _flag("--trust-files", "run the code of Python files that the suite names as estimators; look into them first")
_FETCH = _flag("--fetch", "download missing data")
RUN = (
    _SUITE,
    _arg("--out", "DIR", "parent of the result folder (results)", type=Path, default=Path("results")),
    _DEVICE,
    _arg(
        "--executor",
        "NAME",
        "what trains: processes on this machine (local), this process, for debugging (inline), a dask cluster (dask), "
        "or another of `msda-bench plugins`",
        default="local",
    ),
    _arg("--scheduler", "ADDRESS", "of the executor's scheduler on another machine, such as tcp://host:8786"),
    _arg("--stack", "N", "train at most N runs as one on a GPU (as many as fit)", type=_COUNT),
    _arg("--workers", "N", "number of processes (one per GPU, or per CPU core)", type=_COUNT),
    _arg("--timeout", "SECONDS", "stop a run that takes longer", type=_SECONDS),
    _arg(
        "--methods",
        "FILE",
        "train the methods of this file, such as mine.yaml, instead of the suite's; all else is the suite's",
        type=Path,
    ),
    _AGAINST,
    _arg(
        "--only",
        "SELECTION",
        "a part of the suite, such as method=DARN|MDAN,target=books,seed=0-4; given again, it adds conditions",
        action="append",
        default=[],
    ),
    _arg("--limit", "N", "train at most N runs; runs beyond the limit do not affect the exit code", type=_COUNT),
    _arg("--shard", "I/N", "part I of N, counted from 0, for machines that share the work, such as array jobs"),
    _TRUST,
    _flag("--keep-going", "train the other runs although a method's first one fails"),
    _flag(
        "--dry-run",
        "report what is stored, how long the rest takes and how small a gain could be found, and change nothing",
    ),
    _FETCH,
    _flag("--no-shift", "keep no picture of your own data for the page: two components of at most 1200 rows"),
    _flag(
        "--quiet",
        "print no progress, no verdict and no explanation of the tables; warnings and problems are still shown",
    ),
)
PREDICT = (
    _SUITE,
    _arg("new", "NEW", "a file or folder of the same form as the suite's data", type=Path),
    _arg("--method", "NAME", "the suite's method that answers", required=True),
    _arg(
        "--out",
        "FILE",
        "the file of the answers, which must not be there yet (answers.csv)",
        type=Path,
        default=Path("answers.csv"),
    ),
    _arg(
        "--results",
        "DIR",
        "parent of the suite's result folder, for settings that the suite selects (results)",
        type=Path,
        default=Path("results"),
    ),
    _arg("--seed", "N", "of all draws (the suite's first)", type=_SEED),
    _DEVICE,
    _TRUST,
    _FETCH,
    _flag("--quiet", "print no progress; warnings are still shown"),
)
_NAME = _arg("name", "NAME", "a suite, such as quickstart")
SUITES_SHOW = (_NAME,)
SUITES_COPY = (_arg("--out", "DIR", "the folder (this one)", type=Path, default=Path()), _NAME)
VALIDATE = (_SUITE,)
_OF_TABLES = (_AGAINST, _BY, _EXPERIMENTS, _FORMAT, _METHODS, _METRIC, _QUIET)
LEADERBOARD = (
    _FOLDER,
    _flag("--per-class", "print the accuracy on each class instead, mean over seeds"),
    *_OF_TABLES,
)
COMPARE = (
    _arg("folder", "A", "a result folder; without B its csv files are rewritten, too", type=Path),
    _arg("other", "B", "another result folder, compared with the first run by run", type=Path, nargs="?"),
    _arg(
        "--match",
        "X=Y",
        "compare method X of A with method Y of B instead of its namesake, or only experiment X with experiment Y",
        action="append",
        default=[],
    ),
    _flag(
        "--across",
        "compare the methods of A only across its datasets, and draw their ranks as critical-difference.svg in A",
    ),
    *_OF_TABLES,
)
REPORT = (_FOLDER, _BY, _METRIC, _AGAINST)
SITE = (
    _arg("folders", "DIR", "result folders, such as results/*", type=Path, nargs="+"),
    _arg("--out", "DIR", "folder of the site (site)", type=Path, default=Path("site")),
)
SOURCES = (
    _arg("folder", "DIR", "a result folder, such as results/leaderboard-sources", type=Path),
    *(_EXPERIMENTS, _FORMAT, _METHODS, _QUIET),
)
VERIFY = (
    _arg("folder", "DIR", "a result folder, such as results/paper-amazon", type=Path),
    _arg("--table", "TABLE", "a table of published numbers, or a .csv file with one, instead of the suite's own"),
    *(_FORMAT, _METHODS, _QUIET),
)
DATA_LIST = (_arg("names", "NAME", "a dataset to show in full, with all its domains", nargs="*"),)
DATA_FILES = (
    _arg("names", "NAME", "a dataset, or a backbone with weights", nargs="*"),
    _flag("--all", "every dataset"),
)
DATA_IDENTIFY = (
    _arg("path", "PATH", "a folder, or a file such as an archive", type=Path),
    _arg("--suite", "FILE", "write a first suite for the folder or file", type=Path),
    _arg(
        "--unpack",
        "FOLDER",
        "of Parquet files of images: write them to this folder, as DOMAIN/CLASS/FILE, and identify that",
        type=Path,
    ),
    _flag("--anyway", "write it even if it is doubtful what the data mean"),
    *(_arg(f"--{name}", "COLUMN", f"of a table or arrays: {what}") for name, what in COLUMNS.items()),
    _arg(
        "--unlabelled",
        None,
        "of a table or arrays: whether domains without any label are the suite's targets (default) or left out",
        choices=("target", "drop"),
        default="target",
    ),
    _arg(
        "--task",
        None,
        "of a table or arrays: whether the label is a class or a number; by default as its values look",
        choices=("classification", "regression"),
    ),
    _arg(
        "--signals",
        None,
        "of arrays: whether each row is a signal (channels, time), (time, channels), or none; by default as its sizes "
        "look",
        choices=("channels_first", "channels_last", "none"),
    ),
    _arg(
        "--missing",
        "TEXTS",
        "of a table or arrays: what stands for a missing value besides nothing, as in --missing=-1,NA, or in one "
        "column, as in dose=-1; by default what pandas takes for it",
    ),
)
DATA_LEAKS = (_SUITE, _FORMAT)
NEW = (
    _arg("kind", "KIND", ", ".join(COMPONENTS), choices=COMPONENTS),
    _arg("name", "NAME", "the component's name in suites, such as inverse_risk"),
    _arg("--out", "DIR", "parent of the new folder (.)", type=Path, default=Path()),
    _flag("--fitted", "a scheme that is an estimator with fit and predict, such as one of scikit-learn"),
)
CHECK = (
    _arg(
        "names",
        "NAME",
        "a component as listed by `msda-bench plugins`, or a distribution for all of its components",
        nargs="+",
    ),
    _arg("--kind", "KIND", "its kind, if this name occurs in several kinds"),
    _arg("--params", "YAML", "its parameters, such as '{gamma: 2.0}'", default="{}"),
    _flag("--strict", "count skipped clauses as failures"),
)
STORE_VERIFY = (
    _arg("folders", "DIR", "result folders, such as results/*", type=Path, nargs="+"),
    _flag("--strict", "check published results: all records are in the plan, and the tables match them"),
)
STORE_MERGE = (
    _arg("folder", "INTO", "the folder that receives the results", type=Path),
    _arg("others", "FROM", "folders to copy from; they do not change", type=Path, nargs="+"),
)
STORE_SEAL = (_arg("folder", "DIR", "a result folder", type=Path),)
STORE_REFERENCE = (
    _arg("folder", "DIR", "a result folder with all of its runs", type=Path),
    _arg("--out", "FILE", "the file", type=Path, default=Path("reference.json.gz")),
)
