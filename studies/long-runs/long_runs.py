"""Trains recorded tasks with another learning rate, more steps, float64 or two threads, and compares their ranks.

`python studies/long-runs/long_runs.py train RESULTS` trains what PLAN names, in its order, into the folder RESULTS,
where the same command resumes; after each task of a part it writes scores.csv beside this file. It needs the package of
`double/`: `pip install ./studies/long-runs/double`. `python studies/long-runs/long_runs.py table` prints the table of
the documentation from scores.csv and from the recorded runs that the changes are compared with.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml  # type: ignore[import-untyped, unused-ignore]

import msda_bench as mb
from msda_bench.cli.main import main as command

ROOT = Path(__file__).parents[2]
SCORES = Path(__file__).parent / "scores.csv"
COLUMNS = ["task", "change", "target", "method", "seed", "score"]
PLACE = ["task", "target", "method", "seed"]
_SEEDS = 20
"""Recorded seeds are 0 to 19; others chose settings."""


@dataclass(frozen=True)
class Task:
    """A recorded task whose training is changed.

    Attributes:
        suite: below `suites/`.
        recorded: the results folder with its runs as they are.
        methods: those that are trained anew.
        targets: likewise.
    """

    suite: str
    recorded: str
    methods: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """Runs that are trained together.

    Attributes:
        tasks: by name.
        change: the name of what is changed.
        seeds: such as `0-4`.
        methods: in place of the task's.
    """

    tasks: tuple[str, ...]
    change: str
    seeds: str
    methods: tuple[str, ...] = ()


_ROWS = ("SRC", "CORAL", "MCC", "BNM", "SHOT", "DARN")
TASKS = {
    "spoken-digits": Task("leaderboard/spoken-digits", "registered", _ROWS, ("george", "nicolas", "theo")),
    "fonts": Task("leaderboard/fonts", "registered", _ROWS, ("cm_typewriter", "cm_maths", "sans")),
    "watch": Task("leaderboard/watch", "registered", _ROWS, ("person_1", "person_4", "person_8")),
    "paper-amazon": Task("paper-amazon", "paper-amazon", ("SRC", "MDAN", "DARN"), ("books",)),
}
HALF, TWICE, LONGER, DOUBLE, THREADS = (
    "half the rate",
    "twice the rate",
    "four times the steps",
    "float64",
    "two threads",
)
CHANGES = (HALF, TWICE, LONGER, DOUBLE, THREADS)
OTHER_SEEDS = "other seeds"
RECORDED = {
    ("paper-amazon", HALF): "ablation-learning-rate",
    ("fonts", LONGER): "sensitivity",
    ("watch", LONGER): "sensitivity",
}
"""The results folders that have a task with a change."""
_SMALL = ("spoken-digits", "fonts")
_SPOKEN = ("spoken-digits",)
_FONTS = ("fonts",)
_AMAZON = ("paper-amazon",)
PLAN = (
    Part(_SPOKEN, HALF, "0-2"),
    Part(_FONTS, HALF, "0-1"),
    Part(_SMALL, TWICE, "0-1"),
    Part(_SMALL, DOUBLE, "0"),
    Part(_SPOKEN, LONGER, "0"),
    Part(_FONTS, HALF, "2"),
    Part(_SMALL, TWICE, "2"),
    Part(_AMAZON, TWICE, "0"),
    Part(_SPOKEN, LONGER, "1-2"),
    Part(_AMAZON, TWICE, "1-2"),
    Part(_SMALL, HALF, "3-4"),
    Part(_SMALL, TWICE, "3-4"),
    Part(_SMALL, DOUBLE, "1-2"),
    Part(_AMAZON, DOUBLE, "0"),
    Part(_AMAZON, LONGER, "0"),
    Part(_SPOKEN, LONGER, "3-4"),
    Part(_SMALL, HALF, "5-9"),
    Part(_SMALL, TWICE, "5-9"),
    Part(_SPOKEN, LONGER, "5-9"),
    Part(_SMALL, THREADS, "0", ("SRC", "DARN")),
)
"""In the order of training."""


def changed(suite: Mapping[str, Any], change: str) -> dict[str, Any]:
    """The suite with what the change changes."""
    new = deepcopy(dict(suite))
    if change in {HALF, TWICE}:
        (settings,) = new["training"]["optimizer"].values()
        settings["lr"] *= 0.5 if change == HALF else 2.0
    if change == LONGER:
        length = "steps" if "steps" in new["training"] else "epochs"
        new["training"][length] *= 4
    if change in {DOUBLE, THREADS}:
        network = new["backbone"].pop("mlp")
        new["backbone"] = {"mlp64" if change == DOUBLE else "mlp_threads": network}
    if change == DOUBLE:
        for method in new["methods"].values():
            if method.get("discrepancy") == "d_A":
                method["discrepancy"] = "d_A64"
    return new


def suite_of(task: Task, part: Part) -> dict[str, Any]:
    """The suite of a task with a part's change; without selection, whose first setting is the suite's own."""
    suite = yaml.safe_load((ROOT / "suites" / f"{task.suite}.yaml").read_text(encoding="utf-8"))
    methods = {name: dict(suite["methods"][name]) for name in task.methods}
    for method in methods.values():
        method.pop("search", None)
    kept = {key: suite[key] for key in ("schema", "dataset", "sources", "backbone", "training") if key in suite}
    name = f"{suite['name']}-{part.change.replace(' ', '-')}"
    runs = {"name": name, "targets": list(task.targets), "seeds": _SEEDS, "methods": methods}
    return changed(kept | runs, part.change)


def train(part: Part, results: Path) -> Iterator[pd.DataFrame]:
    """Trains what is missing of a part; the scores of each task's runs in it, as rows of scores.csv."""
    for name in part.tasks:
        task = TASKS[name]
        suite = suite_of(task, part)
        path = results / f"{suite['name']}.yaml"
        path.write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
        methods = "|".join(part.methods or task.methods)
        options = ["--out", str(results), "--device", "cpu", "--executor", "inline", "--quiet"]
        code = command(["run", str(path), *options, "--only", f"seed={part.seeds},method={methods}"])
        if code:
            sys.exit(code)
        runs = mb.load_results(results / suite["name"])
        done = runs[runs["status"] == "ok"]
        yield done.assign(task=name, change=part.change)[COLUMNS]


def recorded() -> pd.DataFrame:
    """The recorded runs of all tasks as they are, and those with a change that a folder has; rows of scores.csv."""
    found = [_rows(folder, name, change) for (name, change), folder in RECORDED.items()]
    found += [_rows(task.recorded, name, "") for name, task in TASKS.items()]
    return pd.concat(found, ignore_index=True)


def _rows(folder: str, task: str, change: str) -> pd.DataFrame:
    """The rows of a task in a results folder, at the suite's own settings."""
    runs = pd.read_csv(ROOT / "results" / folder / "runs.csv", low_memory=False)
    trained = ~runs["reference"] & runs["status"].eq("ok") & runs["steps"].gt(0)
    in_task = runs["experiment"].isin([task, folder]) & trained
    own = runs[in_task & runs["candidate"].fillna(0).eq(0) & runs["seed"].lt(_SEEDS)]
    return own.assign(task=task, change=change)[COLUMNS]


def table(scores: pd.DataFrame) -> pd.DataFrame:
    """Each change beside the recorded runs of the same methods, targets and seeds.

    Args:
        scores: rows as in scores.csv, of the changed runs.

    Returns:
        `task, change, targets, seeds, methods`; `ranks`, how many methods have another rank by their means; `method`,
        the one whose mean changes most, with its `change of the mean` and `sd`, the standard deviation of its recorded
        mean over targets from seed to seed, over all recorded seeds. The last row of a task compares its recorded seeds
        0 to 9 with 10 to 19.
    """
    known = recorded()
    plain = known[known["change"] == ""]
    rows = []
    for task in TASKS:
        base = plain[plain["task"] == task]
        new = pd.concat([known[known["change"] != ""], scores])
        for change in CHANGES:
            its = _whole_seeds(new[(new["task"] == task) & (new["change"] == change)])
            if len(its):
                both = its.merge(base, on=PLACE, suffixes=("", "_before"))
                rows.append(_row(task, change, both["score_before"], both, base))
        rows.append(_by_chance(task, base))
    return pd.DataFrame(rows)


def _whole_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of seeds that have every method and target that any seed has."""
    runs_of = runs.groupby("seed")["score"].transform("size")
    return runs[runs_of == runs["method"].nunique() * runs["target"].nunique()]


def _row(task: str, change: str, before: pd.Series[float], runs: pd.DataFrame, base: pd.DataFrame) -> dict[str, Any]:
    """A row of the table, from changed runs and the recorded scores of the same places."""
    means = runs.assign(before=before).groupby("method")[["before", "score"]].mean()
    ranks = means.rank(ascending=False)
    differences = means["score"] - means["before"]
    most = str(differences.abs().idxmax())
    same_targets = base[base["target"].isin(runs["target"]) & (base["method"] == most)]
    return {
        "task": task,
        "change": change,
        "targets": runs["target"].nunique(),
        "seeds": runs["seed"].nunique(),
        "methods": len(means),
        "ranks": int((ranks["before"] != ranks["score"]).sum()),
        "method": most,
        "difference": differences[most],
        "sd": same_targets.groupby("seed")["score"].mean().std(),
    }


def _by_chance(task: str, base: pd.DataFrame) -> dict[str, Any]:
    """What ten other seeds do to the ranks."""
    half = _SEEDS // 2
    first = base[base["seed"] < half]
    second = base[base["seed"] >= half].assign(seed=base["seed"] - half)
    both = second.merge(first, on=PLACE, suffixes=("", "_before"))
    return _row(task, OTHER_SEEDS, both["score_before"], both, base)


def written(rows: pd.DataFrame) -> list[str]:
    """The table as lines of Markdown: a line for each change, a column for each task."""
    lines = ["| change | " + " | ".join(f"`{task}`" for task in TASKS) + " |", "|---" * (1 + len(TASKS)) + "|"]
    for change in (*CHANGES, OTHER_SEEDS):
        its = {row["task"]: row for row in rows.to_dict("records") if row["change"] == change}
        cells = [_cell(its[task]) if task in its else "" for task in TASKS]
        if any(cells):
            lines.append(f"| {change} | " + " | ".join(cells) + " |")
    return lines


def _cell(row: Mapping[Any, Any]) -> str:
    """Such as `2/6, MCC -2.2 (2.7), 10`."""
    largest = f"{row['method']} {row['difference']:+.1f} ({row['sd']:.1f})"
    return f"{row['ranks']}/{row['methods']}, {largest}, {row['seeds']}"


def main(arguments: list[str]) -> None:
    """Trains, or prints the table."""
    if arguments == ["table"]:
        scores = pd.read_csv(SCORES) if SCORES.exists() else pd.DataFrame(columns=COLUMNS)
        print("\n".join(written(table(scores))))
        return
    results = Path(arguments[1])
    results.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(PLAN, 1):
        for scores in train(part, results):
            before = pd.read_csv(SCORES) if SCORES.exists() else scores.iloc[:0]
            rows = pd.concat([before, scores]).drop_duplicates(["change", *PLACE], keep="last")
            rows.sort_values(COLUMNS[:-1]).round({"score": 4}).to_csv(SCORES, index=False)
        print(f"part {number} of {len(PLAN)}: {part.change}, seeds {part.seeds}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
