"""The sections of the report page that come with it: charts with their numbers, or why nothing can be concluded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import pandas as pd

from msda_bench.results.criteria import ALL, criteria_notes
from msda_bench.results.frame import AVERAGE
from msda_bench.results.report import mean_text
from msda_bench.results.verify import verifications
from msda_bench.results.words import counted, listed, name_of
from msda_bench.store.shift import Shift
from msda_bench.suite.plan import ORACLE
from msda_bench_report.figures import Figure, Make, Results, Section, slugs
from msda_bench_report.plots import epochs, scores
from msda_bench_report.plots.epochs import LAST, MOST_LINES, last_weights, over_sources, weighing
from msda_bench_report.plots.pairs import differences
from msda_bench_report.plots.pairs import pairs as draw_pairs
from msda_bench_report.plots.rows import best_of, conclusive, differ, main_pairs, main_rows, relative_to, testable
from msda_bench_report.plots.scores import MOST_DOMAINS, WORST, at_targets
from msda_bench_report.plots.shift import middles
from msda_bench_report.plots.shift import shift as draw_shift

_MOST_PARAMETERS = 8
_MOST_CLASSES = 40
_BEYOND = {
    "method": "method",
    "mean_low": "mean, low",
    "mean_high": "mean, high",
    "gain": "gain",
    "gain_low": "gain, low",
    "gain_high": "gain, high",
    "regret": "regret to the oracle",
    "regret_standard_error": "± ",
}
_PAIRS = ["first", "second", "outcome", "reason", "mean_difference", "difference_low", "difference_high"]
_PAIRS += ["p_holm", "n_paired", "detectable"]
_CRITERIA = ["criterion", "selects", "mean", "regret", "regret_standard_error"]
_CRITERIA += ["rank_correlation", "n_rank_correlation"]


def headline(results: Results) -> Iterator[Figure]:
    """The means, a map of domains, differences, and how the inputs of domains differ."""
    yield from _means(results)
    yield from _shift(results.shift)


def _means(results: Results) -> Iterator[Figure]:
    """The forest plot, then the differences from the best method or, if only those can be tested, from the baseline."""
    rows = main_rows(results.leaderboard)
    if not rows["mean"].notna().any():
        return
    values = rows[["method", "rank", "mean", "standard_error", "mean_low", "mean_high", "n_ok"]]
    label = f"Mean of each method with its {100 * (1 - results.experiment.alpha):g} % interval"
    yield Figure("forest", "Means", f"{label}; dashed: the baseline", scores.forest(rows), values, wide=True)
    yield from _domains(results.leaderboard)
    pairs = main_pairs(results.comparisons)
    if not len(pairs):
        return
    to = best_of(pairs)
    with_best = relative_to(to, pairs[pairs["family"] != f"against {results.baseline}"])
    if results.baseline is not None and not testable(with_best).any():
        to = results.baseline
    turned = relative_to(to, pairs)
    if testable(turned).any():
        label = f"Difference of each method from {name_of(to)}, paired by seed, with p after Holm's correction"
        title = f"Differences from {name_of(to)}"
        yield Figure("differences", title, label, differences(pairs, to), turned, wide=True)


def _domains(leaderboard: pd.DataFrame) -> Iterator[Figure]:
    """The map of methods and targets, where there are several."""
    rows = at_targets(leaderboard)
    worst = worst_target(rows)
    if not worst:
        return
    many = rows["target"].nunique() - MOST_DOMAINS
    text = (
        f"{worst} {WORST} marks the worst domain of each method; orange is worse than the mean of the map, blue better."
    )
    if many > 0:
        text += f" {counted(many, 'domain')} with better scores left out."
    values = rows.sort_values(["column", "order"])[["target", "method", "mean", "standard_error", "gain"]]
    label = f"Mean score of each method at each domain. {worst}"
    yield Figure("domains", "Domains, the worst first", label, scores.map_of_domains(rows), values, text=text)


def worst_target(rows: pd.DataFrame) -> str:
    """A sentence on the target with the worst scores; `rows` are an experiment's from `at_targets`.

    Empty without rows.
    """
    if rows.empty:
        return ""
    here = rows[rows["column"] == 0]
    ranked = here[~here["reference"].astype(bool)]
    here = ranked if len(ranked) else here
    best = here.sort_values("level").to_dict("records")[-1]
    form = "{:.1f} %" if best["metric"].endswith("_percent") else "{:.3g}"
    mean = f"{form.format(here['mean'].mean())} on average over {counted(len(here), 'method')}"
    score = mean_text(best).replace("+-", "±")
    return f"Worst at {name_of(best['target'])}: {mean}; best there is {name_of(best['method'])}, {score}."


def _shift(shift: Shift | None) -> Iterator[Figure]:
    """Two components of the user's own data."""
    if shift is None:
        return
    values = middles(shift)
    far = values.iloc[0]
    apart = (
        f"Farthest from the others: {name_of(far['domain'])}, by {far['distance']:.1f} times the spread in a domain."
    )
    most = max(len(cloud.points) for cloud in shift.clouds)
    text = (
        f"{apart} A point is a row (at most {most} a domain, drawn at random), a large mark the middle of a domain. "
        f"The components hold {100 * sum(shift.explained):.0f} % of the variance of {shift.of}; domains may differ in "
        "the rest, too."
    )
    if shift.left_out:
        text += f" {counted(shift.left_out, 'domain')} left out."
    label = f"Two principal components of {shift.of}, by domain. {apart}"
    yield Figure("shift", "How the inputs of domains differ", label, draw_shift(shift), values, text=text)


def every_run(results: Results) -> Section | None:
    """The score of every run, at each target."""
    if results.ok.empty:
        return None
    text = (
        "Each run is a point, and a line the mean. What lies far outside is drawn as an arrow at the edge with its "
        "number, so that it does not squeeze the rest."
    )

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.groupby("method", sort=False)["score"].agg(["count", "mean", "min", "max"]).reset_index()

    figures = results.by_target("runs", "Scores of every run by method", results.ok, scores.every_run, values)
    return results.section("runs", "Every run", text, figures)


def pairs(results: Results) -> Section | None:
    """The comparisons of all pairs, where any two methods were shown to differ."""
    if results.ok.empty or results.comparisons.empty:
        return None
    title = "Pairs of methods"
    if results.baseline is not None:
        which = f"Each method is compared with {name_of(results.baseline)} and with the best"
        return Section("pairs", title, f"{which}; `compare: {{pairs: all}}` in the suite compares all pairs.")
    known = conclusive(results.comparisons)
    if known.empty:
        main = main_pairs(results.comparisons)
        few = f"With {counted(int(main['n_paired'].max()), 'paired seed')} no test of a pair of methods"
        text = f"{few} can be significant after Holm's correction over {counted(len(main), 'pair')}."
        return Section("pairs", title, text)
    places = sorted(dict.fromkeys(known["place"]), key=lambda where: where != AVERAGE)
    differing = {*known.loc[differ(known), "place"]}
    quiet = [name_of(where) for where in places if where not in differing]
    none = f"No difference between methods was shown: {listed(quiet)}." if quiet else ""
    if not differing:
        return Section("pairs", title, none)
    text = (
        "Two-sided exact signed-rank tests, paired by seed, with Holm's correction; the colour shows whether the row's "
        "method is better than the column's. Charts in which nothing was shown are skipped."
    )
    ids = {AVERAGE: "average", **results.targets}
    figures = []
    for where in places:
        if where in differing and where in ids:
            compared = known[(known["place"] == where).to_numpy()]
            label = f"p-values of pairs of methods: {name_of(where)}"
            figure = Figure(f"pairs-{ids[where]}", name_of(where), label, draw_pairs(compared), compared[_PAIRS])
            figures.append(figure)
    return Section("pairs", title, f"{text} {none}".strip(), tuple(figures), undrawn=len(differing) - len(figures))


def beyond(results: Results) -> Section | None:
    """Intervals, gains and regrets."""
    if results.ok.empty:
        return None
    rows = main_rows(results.leaderboard).sort_values(["reference", "rank"], kind="stable")
    table = rows.loc[rows["mean"].notna(), list(_BEYOND)].rename(columns=_BEYOND).dropna(axis=1, how="all")
    text = "Intervals of the mean over the seeds allow for the examples that seeds share; gains are over the baseline."
    harmed = results.leaderboard[results.leaderboard["negative_transfer"].fillna(value=False).astype(bool)]
    where = [f"{name_of(row.method)} ({name_of(row.target)})" for row in harmed.itertuples()]
    if where:
        text += f" The baseline is significantly better than {', '.join(where[:12])}."
    return Section("beyond", "Beyond the mean", text, table=table)


def published(results: Results) -> Section | None:
    """The comparable published numbers, beside ours."""
    table = results.experiment.published
    if table is None or table.metric != results.experiment.measure.column:
        return None
    (verification,) = verifications(results.runs)
    numbers = verification.numbers[verification.numbers["comparable"]]
    if numbers.empty:
        return None
    places = {source: f"[{place}]" for place, source in enumerate(numbers["source"].unique(), 1)}
    sources = "; ".join(f"{place} {source}" for source, place in places.items())
    shown = numbers[["method", "target", "published_mean", "source", "source_table", "mean", "z"]]
    shown = shown.assign(source=shown["source"].map(places))
    text = f"{verification.sentence[:1].upper()}{verification.sentence[1:]}. Sources: {sources}"
    return Section("published", "Published numbers", text, table=shown.rename(columns={"mean": "ours"}))


def classes(results: Results) -> Section | None:
    """The accuracy on each class, at each target."""
    title = "Single classes"
    count = results.classes["class"].nunique()
    if not count:
        return None
    if count > _MOST_CLASSES:
        text = f"{count} are too many for a chart; msda-bench leaderboard --per-class has them."
        return Section("classes", title, text)
    text = (
        "Test examples of each class that are classified correctly, in percent, mean of the seeds. Blue is more than "
        "the mean of the methods in the chart, orange less; the scale reaches at least 5 points to both sides."
    )

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        wide = rows.astype({"method": object}).pivot_table("accuracy", "method", "class", sort=False)
        return wide.sort_index(axis=1).reset_index()

    label = "Accuracy on each class by method"
    figures = results.by_target("classes", label, results.classes, scores.classes, values)
    return results.section("classes", title, text, figures)


def weights(results: Results) -> Section | None:
    """The weight of each source at the last epoch, at each target."""
    if results.curves.empty:
        return None
    title = "Weights of the sources"
    last = last_weights(results.curves)
    if last.empty:
        return Section("weights", title, "No method here weighs single sources, or none of those that do has a result.")
    text = (
        "Weights at the last epoch, mean of the seeds. Blue is more than equal weights (1/k), orange less; the scale "
        f"reaches at least 0.05 to both sides, so that noise does not look like a preference.{_sampled(results)}"
    )
    label = "Weight of each source by method"
    values = ["method", "source", "weight", "equal", "seeds"]
    figures = results.by_target("weights", label, last, epochs.weight_map, lambda rows: rows[values])
    return results.section("weights", title, text, figures)


def course(results: Results) -> Section | None:
    """The weights over the epochs, at each target with few sources."""
    if results.curves.empty:
        return None
    weighed = weighing(results.curves)
    few = weighed[weighed.groupby("target", observed=True)["source"].transform("nunique") <= MOST_LINES]
    label = "Weight of each source over the epochs, one row per method,"
    text = "One row per method; lines are means over seeds with a band of one standard deviation; grey: equal weights."
    values = ["method", "source", "epoch", "weight", "deviation"]
    figures = results.by_target("course", label, few, epochs.weights, lambda rows: _ends(rows)[values])
    if not figures:
        return None
    return results.section("course", "Weights over the epochs", text + _sampled(results), figures)


def _ends(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["epoch"].isin([1, rows["epoch"].max()])]


def _sampled(results: Results) -> str:
    drawn = results.curves["seeds"].max()
    every = results.ok["seed"].nunique()
    return f" Curves of {drawn} of {every} seeds." if drawn < every else ""


def curves(results: Results) -> Section | None:
    """Risks and gaps over the epochs, at each target."""
    if results.curves.empty:
        return None
    text = (
        "Mean over the sources and seeds. The gap is the method's discrepancy between source and target; gaps of "
        f"different discrepancies cannot be compared.{_sampled(results)}"
    )
    figures = (*_curves(results, "risk"), *_curves(results, "gap"))
    return results.section("curves", "Risks and gaps over the epochs", text, figures)


def _curves(results: Results, what: Literal["risk", "gap"]) -> tuple[Figure, ...]:
    rows = results.curves[(results.curves[what].abs() > 0) & (results.curves["epoch"] != LAST)]

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        return _ends(over_sources(rows, what))[["method", "epoch", "value"]].rename(columns={"value": what})

    label = f"{what.capitalize()} of each method over the epochs"
    return results.by_target(what, label, rows, partial(epochs.curves, what=what), values, f"{what.capitalize()} at ")


def time(results: Results) -> Section | None:
    """Seconds of training of each method."""
    if results.ok["train_seconds"].isna().all():
        return None
    text = (
        "Seconds of training, mean of the runs that are ok; runs that were trained as one stack share its time. Times "
        "of different devices, or of a busy one, cannot be compared."
    )
    by_method = results.ok.groupby("method", sort=False)
    values = by_method.agg(seconds=("train_seconds", "mean"), steps=("steps", "mean"), runs=("score", "count"))
    values["milliseconds_a_step"] = 1000 * values["seconds"] / values["steps"]
    title = "Seconds of training, best mean first"
    label = "Mean seconds of training of each method, the best mean score first"
    figure = Figure("cost", title, label, scores.cost_of(results.ok), values.reset_index(), wide=True)
    return Section("time", "Time", text, (figure,))


def settings(results: Results) -> Section | None:
    """The regret of each criterion, and the score as a function of each parameter."""
    if results.criteria["regret"].isna().all():  # none selects, or no target has labels
        return None
    judged = results.criteria
    place = AVERAGE if (judged["target"] == AVERAGE).any() else results.experiment.targets[0]
    whole = judged[((judged["method"] == ALL) & (judged["target"] == place)).to_numpy()]
    figures = []
    if whole.loc[whole["criterion"] != ORACLE, "regret"].notna().any():
        label = "Regret to the oracle of each criterion"
        chart = scores.regrets(judged)
        figures.append(Figure("regret", "Regret by criterion", label, chart, whole[_CRITERIA], wide=True))
    tried = results.candidates
    ids = slugs(tried["parameter"].unique())
    for parameter, slug in list(ids.items())[:_MOST_PARAMETERS]:
        own = tried[(tried["parameter"] == parameter).to_numpy()]
        label = f"Score on the target by {parameter}"
        values = own[["method", "value", "score"]]
        figures.append(Figure(f"by-{slug}", parameter, label, scores.sensitivity(own), values))
    if not figures:
        return None
    text = (
        f"{' '.join(criteria_notes(judged))} The other charts show the score on the target of every candidate by one "
        "of its parameters, with the means of equal values joined: the oracle's view, for readers and not for tuning."
    )
    return Section("settings", "Selecting settings", text, tuple(figures))


SECTIONS: Sequence[Make] = (every_run, pairs, beyond, published, classes, weights, course, curves, time, settings)
"""What makes the sections of each experiment, in the page's order."""
