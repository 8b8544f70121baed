"""Reads the registered measurement by its plan, README.md: `python studies/registered/reading.py` prints every number.

Tables hold texts, as pages have them. `numbers` gives each of them a name.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

import msda_bench as mb
from estimates import (
    POWER,
    Reals,
    careful,
    detectable_mean,
    mean_with_errors,
    new_task,
    share_of_gap,
    sign_flip_p,
    surviving,
)
from margins import BETTER, BETTER_BY_MORE, EQUIVALENT, LEVEL, UNDECIDED, WORSE, holm, margin_of
from msda_bench.results.criteria import criteria
from msda_bench.results.estimates import summarize
from msda_bench.results.model_selection import select
from task_gains import MEAN, PRIMARY, gains_of, mean_gains_of, overlaps_of, signed_ranks_p, tasks_of, tests_of

RESULTS = Path(__file__).parents[2] / "results"
REFERENCES = ["TAR", "JOINT"]
TRACKS = {"A": "first", "B": "source_accuracy", "B with InfoMax": "source_accuracy+infomax", "C": "oracle"}
MARKS = {BETTER_BY_MORE: "++", BETTER: "+", EQUIVALENT: "=", WORSE: "-", UNDECIDED: "?"}
SMALLEST_P = 0.001
TUNING, N_SEEDS = range(100, 104), 20
LARGEST = "spoken-digits"
"""The task on which methods gain most; means without it are exploratory."""

Texts: TypeAlias = dict[str, pd.DataFrame]
"""Tables by title."""
ByTrack: TypeAlias = Mapping[str, Any]
"""Frames, whose stubs know too little of what an index holds."""


def read(runs: pd.DataFrame, longer: pd.DataFrame) -> Texts:
    """The tables of the study, from the runs of `registered` and of `sensitivity`."""
    chosen = {track: select(runs, by) for track, by in TRACKS.items()}
    gains: ByTrack = {track: gains_of(frame) for track, frame in chosen.items()}
    tests: ByTrack = {track: tests_of(frame, gains[track]) for track, frame in chosen.items()}
    columns = map(str, mb.across(chosen["B"]))
    counted = [name.removeprefix("gain:") for name in columns if name.startswith("gain:")]
    tables = chosen["B"].results.plan.experiments
    margins = {task: margin_of(task) for task in counted}
    margin = round(float(np.mean([*margins.values()])), 2)
    across: ByTrack = {track: mean_gains_of(of, margins) for track, of in gains.items()}
    fewer = mean_gains_of(gains["B"], {task: size for task, size in margins.items() if task != LARGEST})
    over_tasks = _over_tasks(across, gains, counted, margin)
    over_tasks[f"without {LARGEST}"] = _with_marks(fewer.loc[over_tasks.index])
    over_tasks = over_tasks.join(_with_shared_examples(chosen["B"], gains["B"].loc[counted, PRIMARY], margin))
    for track in ("A", "B with InfoMax", "C"):
        of_track = _with_shared_examples(chosen[track], gains[track].loc[counted, PRIMARY], margin)
        over_tasks[f"shared, {track}"] = of_track["shared"]
    fewer_tasks = gains["B"].loc[[task for task in counted if task != LARGEST], PRIMARY]
    over_tasks[f"shared, without {LARGEST}"] = _with_shared_examples(chosen["B"], fewer_tasks, margin)["shared"]
    over_tasks["signed ranks"] = signed_ranks_p(gains["B"].loc[counted, PRIMARY]).map(_p)
    over_tasks["seconds"] = _seconds(chosen["B"]).map("{:.1f}".format)
    whole: dict[str, Any] = {"methods": len(PRIMARY), "margin": margin, "tasks": len(tables), "counted": len(counted)}
    whole |= {"seeds": chosen["B"]["seed"].nunique(), "hours": f"{runs['train_seconds'].sum() / 3600:.0f}"}
    detectable = across["B"].loc[PRIMARY, "detectable"]
    whole |= {"power": f"{100 * POWER:.0f} %", "finds, median": f"{detectable.median():.2f}"}
    steps = longer.groupby("experiment", observed=True)["steps"].max()
    whole |= {f"four times the steps, {task}": f"{most:,.0f}" for task, most in steps.items()}
    whole |= dict(Counter(over_tasks["over SRC"]))
    whole |= {f"JOINT, {track}": _interval(of.loc["JOINT", MEAN]) for track, of in across.items()}
    joint = _with_shared_examples(chosen["B"], gains["B"].loc[counted, ["JOINT"]], margin)
    whole["JOINT with shared examples"] = joint.loc["JOINT", "shared"]
    others = sorted({*_tasks(runs)} - {*counted})
    whole |= {f"headroom of {task}": student(gains["C"].loc[task, "JOINT"]) for task in others}
    overlaps = overlaps_of(chosen["C"])
    whole |= {f"{task} with shared examples": shared(gains["C"].loc[task, "JOINT"], overlaps[task]) for task in others}
    return {
        **_each_task(gains, tests),
        "over tasks": over_tasks,
        "task by task": _task_by_task(gains["B"], tests["B"]),
        **_targets(chosen["B"]),
        "selection": _selection(runs, counted),
        **{f"{task}, longer": _longer(runs, longer, task) for task in _tasks(longer)},
        "whole": _column(whole | _power(runs) | _diverged(runs)),
    }


def numbers(tables: Texts) -> dict[str, str]:
    """The texts of all cells that are not empty, by `title.row.column`."""
    return {
        ".".join(map(str, (title, *(row if isinstance(row, tuple) else (row,)), column))): text
        for title, table in tables.items()
        for column, texts in table.items()
        for row, text in texts.items()
        if text
    }


def _over_tasks(across: ByTrack, gains: ByTrack, tasks: list[str], margin: float) -> pd.DataFrame:
    """The questions E1 to E3 of each method, over the tasks that count; the largest mean gain of track B first."""
    main = across["B"].loc[PRIMARY].sort_values("mean_gain", ascending=False, kind="stable")
    rows = {}
    for place, (method, row) in enumerate(main.iterrows(), start=1):
        mine, oracle = (_by_task(gains[track][method], tasks) for track in ("B", "C"))
        errors = mine.std(axis=1, ddof=1) / np.sqrt(mine.shape[1])
        another = new_task(mine.mean(axis=1), errors, margin)
        rows[str(method)] = {
            "place": str(place),
            "over SRC": row["standing"],
            **{track: _interval(of.loc[method, MEAN]) for track, of in across.items()},
            "p": _p(row["p_corrected"]),
            "survives": _percent(surviving(mine, oracle, tasks)),
            "share of the gap": _percent(share_of_gap(mine, _by_task(gains["B"]["JOINT"], tasks))),
            "detectable": f"{row['detectable']:.2f}",
            "sign flips": _p(sign_flip_p(mine)),
            "expected": _interval(another[:3]),
            "spread": f"{another.spread:.1f}",
            "above the margin": f"{100 * another.beyond:.0f} %",
            "within it": f"{100 * another.within:.0f} %",
        }
    return pd.DataFrame.from_dict(rows, orient="index").assign(**{"all that count": _with_marks(main)})


def _with_shared_examples(runs: pd.DataFrame, gains: Any, margin: float) -> pd.DataFrame:
    """The mean gains with errors that allow for the examples that seeds share, and their p after Holm's correction."""
    overlaps = overlaps_of(runs)
    means = []
    for name in gains:
        mean, errors, freedom = tasks_of(gains[name], overlaps).to_numpy().T
        means.append(mean_with_errors(mean, errors, freedom, margin))
    p, beyond = ([*map(_p, holm([getattr(mean, of) for mean in means]))] for of in ("p", "p_beyond"))
    shared = [_interval(mean[:3]) for mean in means]
    return pd.DataFrame({"shared": shared, "shared p": p, "shared p beyond": beyond}, [*gains])


def _each_task(gains: ByTrack, tests: ByTrack) -> Texts:
    """Gains in each track by task, and what their tests could see."""
    tables, seen = {}, {}
    for task in dict.fromkeys(tests["B"].index.get_level_values("experiment")):
        tracks = {track: frame.loc[task] for track, frame in tests.items()}
        main = tracks["B"].sort_values("gain", ascending=False, kind="stable")
        columns = {
            track: [*map(_interval, of.loc[main.index, ["gain", "low", "high"]].to_numpy())]
            + [student(gains[track].loc[task, name]) for name in REFERENCES]
            for track, of in tracks.items()
        }
        standings = [*main["standing"], *["reference"] * len(REFERENCES)]
        tables[task] = pd.DataFrame(columns | {"standing": standings}, [*main.index, *REFERENCES])
        authors = tracks["A"]["low"]
        seen[task] = {
            "finds, median": f"{main.loc[PRIMARY, 'detectable'].median():.1f}",
            "last seed": str(main["n_paired"].max() - 1),
            "above 0 with shared examples": _which(tracks["B"]["corrected_low"] > 0),
            "below 0 with shared examples": _which(tracks["B"]["corrected_high"] < 0),
            "less than with the authors' settings": _which(tracks["B"]["high"] < authors),
            "less with InfoMax, too": _which(tracks["B with InfoMax"]["high"] < authors),
        }
    return {**tables, "each task": pd.DataFrame.from_dict(seen, orient="index")}


def _task_by_task(gains: Any, tests: Any) -> Any:
    """The mean gain and the standing of each method in each task."""
    means = gains[[*PRIMARY, "JOINT"]].groupby("experiment").mean().T
    marks = " " + tests["standing"].map(MARKS).unstack(level="experiment")
    return means.map("{:+.1f}".format) + marks.reindex(means.index, fill_value="")


def _targets(chosen: pd.DataFrame) -> Texts:
    """The gain at each target, marked where it is shown at a false discovery rate of 5 % over all of these tests."""
    place = ["experiment", "target"]
    at_targets = gains_of(chosen, (*place, "seed"))[PRIMARY].groupby(level=place)
    rows = (at_targets.mean().round(9) + 0.0).stack().rename("mean").reset_index()  # no -0.0
    p_values = at_targets.agg(lambda of: mb.signed_rank(of.dropna().round(9), "two-sided").p).stack()
    shown = stats.false_discovery_control(p_values) <= LEVEL
    signs = np.where(shown, np.sign(rows["mean"]), 0)
    marks = pd.Series(signs, rows.index).map({1: r"\*", -1: "!", 0: ""})
    texts = rows.assign(text=rows["mean"].map("{:+.1f}".format) + marks)
    table = texts.pivot(index=["experiment", "target"], columns="method", values="text")[PRIMARY]
    counts = {"tests": len(rows), "gains": (signs > 0).sum(), "losses": (signs < 0).sum()}
    return {"targets": table, "tests at targets": _column(counts)}


def _selection(runs: pd.DataFrame, tasks: list[str]) -> pd.DataFrame:
    """Points that a criterion's choices lose against the best candidate, the mean over methods and tasks.

    The oracle's choice is the best at the tuning seeds. At the evaluated ones another may be better.
    """
    judged = criteria(runs)
    judged = judged[(judged["method"] == "all methods") & judged["experiment"].isin(tasks)]
    whole = judged.groupby(["experiment", "criterion"], sort=False, observed=True).tail(1).set_index("criterion")
    forms = {"regret": "{:.2f}", "rank_correlation": "{:+.2f}", "evaluated_regret": "{:.2f}"}
    means = whole[[*forms]].astype(float).groupby(level=0, sort=False, observed=True).mean()
    return pd.DataFrame(
        {name: means[name].map(form.format, na_action="ignore") for name, form in forms.items()}
    ).fillna("")


def _longer(runs: pd.DataFrame, longer: pd.DataFrame, task: str) -> pd.DataFrame:
    """One task's gains beside those of longer runs at the same seeds; SRC has its accuracy."""
    columns: dict[str, list[str]] = {}
    names = ["SRC", *PRIMARY, *REFERENCES]
    more = {}
    for track in ("A", "B"):
        after = gains_of(select(longer, TRACKS[track])).loc[task]
        before = gains_of(select(runs, TRACKS[track])).loc[task].loc[after.index]
        for title, of in ((track, before), (f"{track}, longer", after)):
            columns[title] = [f"{of['SRC'].mean():.1f}", *(f"{of[name].mean():+.1f}" for name in names[1:])]
        columns[f"{track}, change"] = [student(after[name] - before[name]) for name in names]
        lows, highs = (pd.Series({name: _ends(after[name] - before[name])[end] for name in PRIMARY}) for end in (1, 2))
        correlation = stats.kendalltau(before[PRIMARY].mean(), after[PRIMARY].mean()).statistic
        more[f"{track}, change"] = [f"{correlation:+.2f}", _which(lows > 0), _which(highs < 0)]
    facts = pd.DataFrame(more, ["rank correlation", "rises", "falls"])
    return pd.concat([pd.DataFrame(columns, names), facts]).fillna("")


def _power(runs: pd.DataFrame) -> dict[str, str]:
    """What the mean over tasks finds, by the spread of gains between tuning seeds at the settings of track B."""
    tried = runs[runs["seed"].isin(TUNING) & (runs["status"] == "ok") & runs["method"].isin(["SRC", *PRIMARY])]
    place = ["experiment", "method", "target"]
    of_candidates = tried.groupby([*place, "candidate"], observed=True)
    criterion = of_candidates[f"validator:{TRACKS['B']}"].transform("mean").round(12)
    criterion = criterion.where(of_candidates["score"].transform("size") == len(TUNING))
    best = criterion.groupby([tried[name] for name in place], observed=True).transform("max")
    chosen = tried[criterion == best].drop_duplicates([*place, "seed"])
    deviations = gains_of(chosen)[PRIMARY].groupby("experiment").std().to_numpy().T
    *_, worst = by_size = sorted(deviations, key=lambda of: float(np.linalg.norm(of)))
    usual = by_size[(len(by_size) - 1) // 2]
    cases = {"finds": usual, "finds, careful": careful(usual, len(TUNING)), "finds, worst": worst}
    found = {name: detectable_mean(of, N_SEEDS, LEVEL / len(PRIMARY)) for name, of in cases.items()}
    found["finds with half the seeds"] = detectable_mean(usual, N_SEEDS // 2, LEVEL / len(PRIMARY))
    return {name: f"{gain:.2f}" for name, gain in found.items()}


def _diverged(runs: pd.DataFrame) -> dict[str, Any]:
    """How many runs have no score, and whose the evaluated ones are."""
    without = runs[runs["status"] == "diverged"]
    tuned = without["seed"].isin(TUNING)
    whose = without["method"].astype(str) + " on " + without["experiment"].astype(str)
    evaluated = whose[~tuned].value_counts().items()
    return {"diverged at tuning seeds": tuned.sum()} | {f"diverged, {of}": n for of, n in evaluated}


def _seconds(chosen: pd.DataFrame) -> Any:
    """Training time over SRC's, the geometric mean over tasks."""
    means = chosen.groupby(["experiment", "method"], observed=True)["train_seconds"].mean().unstack()
    return np.exp(np.log(means.div(means["SRC"], axis=0)[PRIMARY]).mean())


def _by_task(gains: Any, tasks: Iterable[str]) -> Reals:
    return np.stack([gains.loc[task].to_numpy() for task in tasks])


def _tasks(frame: pd.DataFrame) -> list[str]:
    return [*dict.fromkeys(frame["experiment"].dropna().astype(str))]


def _with_marks(across: pd.DataFrame) -> pd.Series[str]:
    return across.apply(lambda row: f"{_interval(row[MEAN])} {MARKS[row['standing']]}", axis=1)


def _column(values: Mapping[str, Any]) -> pd.DataFrame:
    return pd.Series({name: str(value) for name, value in values.items()}).to_frame("value")


def _which(are: pd.Series[bool]) -> str:
    return ", ".join(are.index[are]) or "none"


def _ends(gains: pd.Series[float]) -> tuple[float, float, float]:
    """The mean over seeds with Student's 95 % interval."""
    return (gains.mean(), *stats.t.interval(1 - LEVEL, len(gains) - 1, gains.mean(), stats.sem(gains)))


def student(gains: pd.Series[float]) -> str:
    """The mean over seeds with its interval."""
    return _interval(_ends(gains))


def shared(gains: pd.Series[float], overlap: float) -> str:
    """The mean over seeds with an interval that allows for the examples that seeds share."""
    return _interval((gains.mean(), *summarize(gains).allowing(overlap).interval(LEVEL)))


def _interval(numbers: Iterable[float]) -> str:
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*numbers)


def _percent(numbers: tuple[float, ...]) -> str:
    return "" if np.isnan(numbers[0]) else "{:.0f} % [{:.0f}, {:.0f}]".format(*(100 * number for number in numbers))


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= SMALLEST_P else "< 0.001"


if __name__ == "__main__":
    for title, table in read(*(mb.load_results(RESULTS / name) for name in ("registered", "sensitivity"))).items():
        sys.stdout.write(f"## {title}\n\n{table.to_markdown(disable_numparse=True)}\n\n")
