"""Measures what the flaws of the built-in datasets are worth: accuracy with each flaw, and once it is taken out.

`python studies/datasets/worth.py RESULTS` writes worth.csv beside it. It keeps its runs in the folder RESULTS, where
the same command resumes. `python studies/datasets/worth.py RESULTS DATASET ...` measures these datasets anew and keeps
the other rows. One process, one thread; the settings are those of recorded suites.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml  # type: ignore[import-untyped, unused-ignore]
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import msda_bench as mb
from forensic import DATASETS
from msda_bench.api import Array, DomainData
from msda_bench.data import LocalFiles

MEASURED = Path(__file__).parent / "worth.csv"
SUITES = Path(__file__).parents[2] / "suites"
ADAPTED = {
    "SRC": {"scheme": "pooled"},
    "logistic": {"scheme": "logistic_regression"},
    "MCC": {"scheme": {"regularised": {"by": "mcc"}}},
}
OWN = {"TAR": {"scheme": "target_only", "reference": True}}
"""What learns from the target's own labels, and so from copies of what it is tested on."""
ORDERED = (
    *("amazon", "crises", "fonts", "music", "hospitals", "reactor", "solubility"),
    *("spoken_digits", "watch", "intents", "gas_drift"),
)
GROUPED = ("crises", "music", "solubility", "watch", "intents")
COLUMNS = ("dataset", "mend", "method", "seeds", "with", "without", "change", "error")
_TRAINED, _TESTED, _DRAWS = 500, 2000, 5


@dataclass(frozen=True)
class Flaw:
    """A flaw that an option of the dataset takes out.

    Attributes:
        suite: whose data, targets, network and training are taken, below `suites/`.
        mend: the parameters of the dataset that take it out.
        seeds: how many, from 0.
        targets: in place of the suite's.
        methods: by name.
    """

    suite: str
    mend: Mapping[str, Any]
    seeds: int
    targets: tuple[str, ...] = ()
    methods: Mapping[str, Any] = field(default_factory=lambda: ADAPTED)

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the suite."""
        settings: dict[str, Any] = yaml.safe_load((SUITES / f"{self.suite}.yaml").read_text(encoding="utf-8"))
        return settings

    @property
    def dataset(self) -> str:
        """Its name."""
        (name,) = self.settings["dataset"]
        return str(name)


FLAWS = (
    Flaw("leaderboard/amazon", {"duplicates": "drop"}, 3, methods=ADAPTED | OWN),
    Flaw("quickstart/opinions", {"duplicates": "drop"}, 5, methods=ADAPTED | OWN),
    Flaw("practice/crises", {"duplicates": "drop"}, 5, methods=ADAPTED | OWN),
    Flaw("leaderboard/solubility", {"duplicates": "drop"}, 5, methods=ADAPTED | OWN),
    Flaw("hospitals", {"gaps": "fill"}, 20),
    Flaw("leaderboard/spoken-digits", {"trim": 0.01}, 5),
    Flaw("leaderboard/spoken-digits", {"standardise": "domain"}, 5),
    Flaw("practice/gas-drift", {"gases": "shared"}, 10, targets=("batch_3", "batch_4", "batch_5")),
    Flaw("practice/gas-drift", {"standardise": "domain"}, 10),
)


def measured(flaw: Flaw, results: Path) -> Iterator[dict[str, Any]]:
    """A row for each method: means over targets and seeds with the flaw and without, and their difference."""
    scores = [_trained(flaw, mend, results) for mend in ({}, flaw.mend)]
    name, text = flaw.dataset, ", ".join(f"{option}: {value}" for option, value in flaw.mend.items())
    for method in flaw.methods:
        with_it, without = (of[method] for of in scores)
        yield _row(name, text, method, with_it.groupby("seed").mean(), without.groupby("seed").mean())


def _row(dataset: str, mend: str, method: str, with_it: pd.Series[float], without: pd.Series[float]) -> dict[str, Any]:
    change = without - with_it
    means = {"with": with_it.mean(), "without": without.mean(), "change": change.mean(), "error": change.sem()}
    return {"dataset": dataset, "mend": mend, "method": method, "seeds": len(change), **means}


def _trained(flaw: Flaw, mend: Mapping[str, Any], results: Path) -> dict[str, pd.Series[float]]:
    """Scores by target and seed of each method; runs that are there are not trained again."""
    settings = flaw.settings
    ((name, params),) = settings["dataset"].items()
    targets = list(flaw.targets) or settings["targets"]
    title = "-".join([name, *(str(value).replace(".", "_") for value in mend.values()), *flaw.targets])
    kept = {key: settings[key] for key in ("schema", "backbone", "training", "metric") if key in settings}
    suite = kept | {
        "name": title,
        "dataset": {name: params | mend},
        "targets": targets,
        "seeds": flaw.seeds,
        "methods": dict(flaw.methods),
    }
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{title}.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
    runs = mb.run(path, results, device="cpu", workers=1, quiet=True)
    assert runs["status"].eq("ok").all(), title  # noqa: S101 - a study that lacks runs says nothing
    scores = runs.set_index(["target", "seed"])["score"]
    return {method: scores[(runs["method"] == method).to_numpy()] for method in flaw.methods}


def by_place(name: str, domains: Mapping[str, DomainData]) -> dict[str, Any]:
    """Own labels: a random half to learn from, in place of a domain's first half."""
    scores: list[list[float]] = [[], []]
    for draw in range(_DRAWS):
        random = np.random.default_rng(draw)
        first: list[float] = []
        drawn: list[float] = []
        for data in domains.values():
            place, half = np.arange(len(data.y)), len(data.y) // 2
            first.append(_accuracy(data, place[:half], place[half:], random))
            order = random.permutation(place)
            drawn.append(_accuracy(data, order[:half], order[half:], random))
        scores[0].append(float(np.mean(first)))
        scores[1].append(float(np.mean(drawn)))
    return _row(name, "a random half", "own labels", pd.Series(scores[0]), pd.Series(scores[1]))


def by_group(name: str, domains: Mapping[str, DomainData]) -> dict[str, Any]:
    """Own labels: groups kept together, in place of rows split one by one."""
    scores: list[list[float]] = [[], []]
    for draw in range(_DRAWS):
        random = np.random.default_rng(draw)
        by_row: list[float] = []
        together: list[float] = []
        for data in domains.values():
            order = random.permutation(len(data.y))
            half = len(order) // 2
            by_row.append(_accuracy(data, order[:half], order[half:], random))
            names = np.asarray(data.groups)
            groups = random.permutation(np.unique(names))
            is_first = np.isin(names, groups[: len(groups) // 2])
            together.append(_accuracy(data, order[is_first[order]], order[~is_first[order]], random))
        scores[0].append(float(np.mean(by_row)))
        scores[1].append(float(np.mean(together)))
    return _row(name, "split by group", "own labels", pd.Series(scores[0]), pd.Series(scores[1]))


def _accuracy(data: DomainData, train: Array, test: Array, random: np.random.Generator) -> float:
    """Of a logistic regression on at most 500 rows of one side, in % of at most 2000 rows of the other."""
    train = random.permutation(train)[:_TRAINED]
    test = random.permutation(test)[:_TESTED]
    x = data.x if not isinstance(data.x, np.ndarray) else data.x.reshape(len(data.x), -1)
    if len(np.unique(data.y[train])) == 1:
        return 100 * float((data.y[test] == data.y[train[0]]).mean())
    model = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=200))
    model.fit(x[train], data.y[train])
    return 100 * float(model.score(x[test], data.y[test]))


def _plain(name: str) -> Iterator[dict[str, Any]]:
    data, files = DATASETS[name], LocalFiles(dataset=name)
    domains = {domain: data.load(domain, files) for domain in data.domains}
    if name in ORDERED:
        yield by_place(name, domains)
    if name in GROUPED:
        yield by_group(name, domains)


def main(results: Path, names: list[str]) -> None:
    """Measures the datasets, and writes the table after each."""
    rows: list[dict[str, Any]] = []
    if names and MEASURED.exists():
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in pd.read_csv(MEASURED).itertuples(index=False)]
    order = list(DATASETS)
    for name in names or order:
        new = [row for flaw in FLAWS if flaw.dataset == name for row in measured(flaw, results)]
        new += _plain(name)
        rows = [row for row in rows if row["dataset"] != name] + new
        rows.sort(key=lambda row: order.index(row["dataset"]))
        pd.DataFrame(rows).round(2).to_csv(MEASURED, index=False)
        print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
