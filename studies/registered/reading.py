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
    new_task,
    share_of_gap,
    sign_flip_p,
    surviving,
)
from margins import BETTER, BETTER_BY_MORE, EQUIVALENT, LEVEL, UNDECIDED, WORSE
from msda_bench.results.criteria import criteria
from msda_bench.results.estimates import summarize
from msda_bench.results.model_selection import select
from study import TRACKS, ByTrack, Study, interval_text, p_text
from task_gains import MEAN, PRIMARY, gains_of, mean_gains_of, overlaps_of, signed_ranks_p

RESULTS = Path(__file__).parents[2] / "results"
REFERENCES = ["TAR", "JOINT"]
MARKS = {BETTER_BY_MORE: "++", BETTER: "+", EQUIVALENT: "=", WORSE: "-", UNDECIDED: "?"}
TUNING, N_SEEDS = range(100, 104), 20
LARGEST = "spoken-digits"
"""The task on which methods gain most; means without it are exploratory."""

Texts: TypeAlias = dict[str, pd.DataFrame]
"""Tables by title."""


def read(runs: pd.DataFrame, longer: pd.DataFrame) -> Texts:
    """The tables of the study, from the runs of `registered` and of `sensitivity`."""
    study = Study.of(runs)
    across = {track: mean_gains_of(of, study.margins) for track, of in study.gains.items()}
    over_tasks = _over_tasks(study, across)
    tables = _each_task(study)
    tables["over tasks"] = over_tasks
    tables["task by task"] = _task_by_task(study.gains["B"], study.tests["B"])
    tables |= _targets(study.chosen["B"])
    tables["selection"] = _selection(runs, study.counted)
    for task in _tasks(longer):
        tables[f"{task}, longer"] = _longer(runs, longer, task)
    whole = _sizes(study, runs, longer)
    whole |= Counter(over_tasks["over SRC"])
    whole |= _headrooms(study, across, _tasks(runs))
    whole["finds, median"] = f"{across['B'].loc[PRIMARY, 'detectable'].median():.2f}"
    whole |= _power(runs)
    whole |= _diverged(runs)
    tables["whole"] = _column(whole)
    return tables


def numbers(tables: Texts) -> dict[str, str]:
    """The texts of all cells that are not empty, by `title.row.column`."""
    found = {}
    for title, table in tables.items():
        for column, texts in table.items():
            for row, text in texts.items():
                if not text:
                    continue
                rows = row if isinstance(row, tuple) else (row,)
                found[".".join(map(str, (title, *rows, column)))] = text
    return found


def print_tables(tables: Texts) -> None:
    """Writes the tables to standard output, as Markdown."""
    for title, table in tables.items():
        sys.stdout.write(f"## {title}\n\n{table.to_markdown(disable_numparse=True)}\n\n")


def _sizes(study: Study, runs: pd.DataFrame, longer: pd.DataFrame) -> dict[str, Any]:
    """How large the study is."""
    sizes = {
        "methods": len(PRIMARY),
        "margin": study.margin,
        "tasks": len(study.chosen["B"].results.plan.experiments),
        "counted": len(study.counted),
        "seeds": study.chosen["B"]["seed"].nunique(),
        "hours": f"{runs['train_seconds'].sum() / 3600:.0f}",
        "power": f"{100 * POWER:.0f} %",
    }
    steps = longer.groupby("experiment", observed=True)["steps"].max()
    for task, most in steps.items():
        sizes[f"four times the steps, {task}"] = f"{most:,.0f}"
    return sizes


def _headrooms(study: Study, across: ByTrack, tasks: list[str]) -> dict[str, str]:
    """What JOINT gains over the tasks that count, and in each of the others."""
    found = {}
    for track, of in across.items():
        found[f"JOINT, {track}"] = interval_text(of.loc["JOINT", MEAN])
    joint = study.with_shared_examples("B", study.counted, ["JOINT"])
    found["JOINT with shared examples"] = str(joint.loc["JOINT", "shared"])
    overlaps = overlaps_of(study.chosen["C"])
    for task in sorted({*tasks} - {*study.counted}):
        gains = study.gains["C"].loc[task, "JOINT"]
        found[f"headroom of {task}"] = student(gains)
        found[f"{task} with shared examples"] = shared(gains, overlaps[task])
    return found


def _over_tasks(study: Study, across: ByTrack) -> pd.DataFrame:
    """The questions E1 to E3 of each method, over the tasks that count; the largest mean gain of track B first."""
    counted = study.counted
    main = across["B"].loc[PRIMARY].sort_values("mean_gain", ascending=False, kind="stable")
    joint = _by_task(study.gains["B"]["JOINT"], counted)
    rows: dict[str, dict[str, str]] = {}
    for place, (method, row) in enumerate(main.iterrows(), start=1):
        mine = _by_task(study.gains["B"][method], counted)
        oracle = _by_task(study.gains["C"][method], counted)
        errors = mine.std(axis=1, ddof=1) / np.sqrt(mine.shape[1])
        another = new_task(mine.mean(axis=1), errors, study.margin)
        rows[str(method)] = {
            "place": str(place),
            "over SRC": row["standing"],
            **{track: interval_text(of.loc[method, MEAN]) for track, of in across.items()},
            "p": p_text(row["p_corrected"]),
            "survives": _percent(surviving(mine, oracle, counted)),
            "share of the gap": _percent(share_of_gap(mine, joint)),
            "detectable": f"{row['detectable']:.2f}",
            "sign flips": p_text(sign_flip_p(mine)),
            "expected": interval_text(another[:3]),
            "spread": f"{another.spread:.1f}",
            "above the margin": f"{100 * another.beyond:.0f} %",
            "within it": f"{100 * another.within:.0f} %",
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table["all that count"] = _with_marks(main)
    return _with_other_estimates(table, study)


def _with_other_estimates(table: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The same methods' estimates without the largest task and with shared examples, ranks and seconds."""
    gains = study.gains["B"]
    fewer = [task for task in study.counted if task != LARGEST]
    without_largest = mean_gains_of(gains, {task: study.margins[task] for task in fewer})
    table[f"without {LARGEST}"] = _with_marks(without_largest.loc[table.index])
    table = table.join(study.with_shared_examples("B", study.counted, PRIMARY))
    for track in ("A", "B with InfoMax", "C"):
        table[f"shared, {track}"] = study.with_shared_examples(track, study.counted, PRIMARY)["shared"]
    table[f"shared, without {LARGEST}"] = study.with_shared_examples("B", fewer, PRIMARY)["shared"]
    table["signed ranks"] = signed_ranks_p(gains.loc[study.counted, PRIMARY]).map(p_text)
    table["seconds"] = _seconds(study.chosen["B"]).map("{:.1f}".format)
    return table


def _each_task(study: Study) -> Texts:
    """Gains in each track by task, and what their tests could see."""
    tables = {}
    seen = {}
    for task in dict.fromkeys(study.tests["B"].index.get_level_values("experiment")):
        tracks = {track: frame.loc[task] for track, frame in study.tests.items()}
        main = tracks["B"].sort_values("gain", ascending=False, kind="stable")
        columns: dict[str, list[str]] = {}
        for track, of in tracks.items():
            ends = of.loc[main.index, ["gain", "low", "high"]].to_numpy()
            references = study.gains[track].loc[task, REFERENCES]
            columns[track] = [interval_text(each) for each in ends]
            columns[track] += [student(references[name]) for name in REFERENCES]
        columns["standing"] = [*main["standing"], *["reference"] * len(REFERENCES)]
        tables[task] = pd.DataFrame(columns, [*main.index, *REFERENCES])
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
    texts = {name: means[name].map(form.format, na_action="ignore") for name, form in forms.items()}
    return pd.DataFrame(texts).fillna("")


def _longer(runs: pd.DataFrame, longer: pd.DataFrame, task: str) -> pd.DataFrame:
    """One task's gains beside those of longer runs at the same seeds; SRC has its accuracy."""
    names = ["SRC", *PRIMARY, *REFERENCES]
    columns: dict[str, list[str]] = {}
    facts: dict[str, list[str]] = {}
    for track in ("A", "B"):
        after = gains_of(select(longer, TRACKS[track])).loc[task]
        before = gains_of(select(runs, TRACKS[track])).loc[task].loc[after.index]
        change = after - before
        columns[track] = _means_texts(before[names])
        columns[f"{track}, longer"] = _means_texts(after[names])
        columns[f"{track}, change"] = [student(change[name]) for name in names]
        ends = pd.DataFrame([_ends(change[name]) for name in PRIMARY], PRIMARY, ["mean", "low", "high"])
        correlation = stats.kendalltau(before[PRIMARY].mean(), after[PRIMARY].mean()).statistic
        rises = _which(ends["low"] > 0)
        falls = _which(ends["high"] < 0)
        facts[f"{track}, change"] = [f"{correlation:+.2f}", rises, falls]
    below = pd.DataFrame(facts, ["rank correlation", "rises", "falls"])
    return pd.concat([pd.DataFrame(columns, names), below]).fillna("")


def _means_texts(gains: pd.DataFrame) -> list[str]:
    """The means over seeds; the first column is an accuracy."""
    accuracy, *means = gains.mean()
    return [f"{accuracy:.1f}", *(f"{mean:+.1f}" for mean in means)]


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
    by_size = sorted(deviations, key=lambda of: float(np.linalg.norm(of)))
    usual = by_size[(len(by_size) - 1) // 2]
    level = LEVEL / len(PRIMARY)
    found = {
        "finds": detectable_mean(usual, N_SEEDS, level),
        "finds, careful": detectable_mean(careful(usual, len(TUNING)), N_SEEDS, level),
        "finds, worst": detectable_mean(by_size[-1], N_SEEDS, level),
        "finds with half the seeds": detectable_mean(usual, N_SEEDS // 2, level),
    }
    return {name: f"{gain:.2f}" for name, gain in found.items()}


def _diverged(runs: pd.DataFrame) -> dict[str, Any]:
    """How many runs have no score, and whose the evaluated ones are."""
    without = runs[runs["status"] == "diverged"]
    tuned = without["seed"].isin(TUNING)
    whose = without["method"].astype(str) + " on " + without["experiment"].astype(str)
    counts = {"diverged at tuning seeds": tuned.sum()}
    for of, n in whose[~tuned].value_counts().items():
        counts[f"diverged, {of}"] = n
    return counts


def _seconds(chosen: pd.DataFrame) -> Any:
    """Training time over SRC's, the geometric mean over tasks."""
    means = chosen.groupby(["experiment", "method"], observed=True)["train_seconds"].mean().unstack()
    return np.exp(np.log(means.div(means["SRC"], axis=0)[PRIMARY]).mean())


def _by_task(gains: Any, tasks: Iterable[str]) -> Reals:
    return np.stack([gains.loc[task].to_numpy() for task in tasks])


def _tasks(frame: pd.DataFrame) -> list[str]:
    return [*dict.fromkeys(frame["experiment"].dropna().astype(str))]


def _with_marks(across: pd.DataFrame) -> pd.Series[str]:
    return across.apply(lambda row: f"{interval_text(row[MEAN])} {MARKS[row['standing']]}", axis=1)


def _column(values: Mapping[str, Any]) -> pd.DataFrame:
    return pd.Series({name: str(value) for name, value in values.items()}).to_frame("value")


def _which(are: pd.Series[bool]) -> str:
    return ", ".join(are.index[are]) or "none"


def _ends(gains: pd.Series[float]) -> tuple[float, float, float]:
    """The mean over seeds with Student's 95 % interval."""
    return (gains.mean(), *stats.t.interval(1 - LEVEL, len(gains) - 1, gains.mean(), stats.sem(gains)))


def student(gains: pd.Series[float]) -> str:
    """The mean over seeds with its interval."""
    return interval_text(_ends(gains))


def shared(gains: pd.Series[float], overlap: float) -> str:
    """The mean over seeds with an interval that allows for the examples that seeds share."""
    return interval_text((gains.mean(), *summarize(gains).allowing(overlap).interval(LEVEL)))


def _percent(numbers: tuple[float, ...]) -> str:
    return "" if np.isnan(numbers[0]) else "{:.0f} % [{:.0f}, {:.0f}]".format(*(100 * number for number in numbers))


if __name__ == "__main__":
    print_tables(read(mb.load_results(RESULTS / "registered"), mb.load_results(RESULTS / "sensitivity")))
