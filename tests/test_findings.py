"""Every number of docs/findings.md and of the openings of README and docs/index.md is that of the recorded runs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from tests.reading import holds, interval, over_targets, plain, student
from tests.results.conftest import holm, pooled

ROOT = Path(__file__).parent.parent
FINDINGS = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
DATASETS = ("amazon", "opinions", "fonts", "pacs", "music", "digits")

SINGLE = ["ensemble", "best-single"]
RUN = ["experiment", "target", "method", "seed"]
pytestmark = pytest.mark.slow


def chosen(runs: pd.DataFrame, by: str = "validator:source_accuracy") -> pd.DataFrame:
    """The runs that a criterion selects, the first of equals; references by the target's labels."""
    merit = runs[by].where(~runs["reference"].astype(bool), runs["score"])
    return runs.loc[merit.groupby([runs[name] for name in RUN]).idxmax()]


def section(title: str, text: str = FINDINGS) -> str:
    match = re.search(rf"^##? {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match is not None, title
    return match[1]


def rows(title: str) -> dict[str, list[str]]:
    """The cells of a section's table, by the first of each row."""
    lines = re.findall(r"^\|(.*)\|$", section(title).replace("\\*", "*"), re.MULTILINE)[2:]
    return {first: rest for first, *rest in ([cell.strip() for cell in line.split("|")] for line in lines)}


class Recorded:
    """The leaderboard's runs as its page of findings counts them; `by` is the criterion that selects."""

    def __init__(self, runs: pd.DataFrame, by: str = "validator:source_accuracy") -> None:
        self.runs, self.selected = runs, chosen(runs, by)
        self.scores = over_targets(self.selected)
        self.standings = mb.across(runs).set_index("method")
        self.ranked = self.standings[~self.standings["reference"].astype(bool)].drop("SRC")
        self.adapting = self.ranked.drop(SINGLE)

    def gains(self, method: str, over: str = "SRC") -> pd.Series:
        """By (experiment, seed), of the six experiments that count."""
        return (self.scores[method] - self.scores[over]).drop("fonts-poisoned", errors="ignore")

    def gain(self, method: str, dataset: str, over: str = "SRC") -> tuple[float, float, float]:
        return student(self.gains(method, over).loc[f"{dataset}-small"])

    def mean_gain(self, method: str) -> tuple[float, float, float]:
        return tuple(self.standings.loc[method, ["mean_gain", "mean_gain_low", "mean_gain_high"]])

    @property
    def ranks(self) -> pd.DataFrame:
        """Of every method but the reference, by experiment."""
        means = self.scores.drop("fonts-poisoned").drop(columns="TAR").groupby("experiment").mean()
        return means.rank(axis=1, ascending=False).mean()


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return Recorded(mb.load_results(ROOT / "results" / "leaderboard"))


@pytest.fixture(scope="module")
def oracle(recorded) -> Recorded:
    return Recorded(recorded.runs, "score")


@pytest.fixture(scope="module")
def detectable() -> dict[str, str]:
    """The median detectable gain of each data set, over the comparisons with SRC on the mean over targets."""
    pairs = pd.read_csv(ROOT / "results" / "leaderboard" / "comparisons.csv")
    pairs = pairs[(pairs["scope"] == "average") & (pairs["control"] == "SRC")]
    medians = pairs.groupby("experiment")["detectable"].median()
    assert (pairs.groupby("experiment").size() == 23).all()
    return {name: f"{medians[f'{name}-small']:.1f}" for name in DATASETS}


def the_longer_runs_on_pacs() -> tuple[float, float, float]:
    scores = over_targets(mb.load_results(ROOT / "results" / "pacs-features"))
    return student(scores["MCC"] - scores["SRC"])


def as_its_authors_run_it() -> str:
    """MCC's gain with batch-norm and all steps, and in a short run without."""
    scores = mb.load_results(ROOT / "results" / "recipes").groupby(["experiment", "seed", "method"])["score"].mean()
    gains = (scores.unstack()["MCC"] - scores.unstack()["SRC"]).groupby("experiment")
    mean, low, high = student(gains.get_group("recipes-sgd"))
    less, *ends = student(gains.get_group("recipes-short-plain"))
    short = f"{less:.1f} [{ends[0]:.1f}, {ends[1]:.1f}]"
    regime = "with batch-norm and 1,440 steps"
    return f"{regime}, {mean:.1f} [{low:.1f}, {high:.1f}], where 144 steps without batch-norm show {short}"


def test_the_table_of_methods_is_the_recorded_one(recorded, oracle):
    shown = rows("Every method on every data set")
    assert list(shown) == list(recorded.standings.index)
    ranks = oracle.ranks
    for method, (rank, gain, both, *gains, by_oracle) in shown.items():
        own = recorded.standings.loc[method]
        assert rank == ("" if pd.isna(own["mean_rank"]) else f"{own['mean_rank']:.1f}"), method
        assert by_oracle == (f"{ranks[method]:.1f}" if method in ranks else ""), method
        if method == "SRC":
            continue
        assert gain == interval(*recorded.mean_gain(method))
        assert both == ("" if own["reference"] else f"{own['n_better']} / {own['n_worse']}")
        for dataset, cell in zip(DATASETS, gains, strict=True):
            mark = {"better": "*", "worse": "!"}.get(own[f"outcome:{dataset}-small"], "")
            assert cell == f"{own[f'gain:{dataset}-small']:+.1f}{mark}", (method, dataset)
    for method in recorded.ranked.index:
        assert recorded.mean_gain(method) == pytest.approx(pooled(recorded.gains(method))[:3]), method


def opening(recorded: Recorded, sizes: dict[str, str]) -> list[str]:
    """What README, index and findings say in the same words."""
    ranked, adapting = recorded.ranked, recorded.adapting
    assert (len(adapting), ranked["mean_gain"].nlargest(2).index.tolist()) == (21, ["BNM", "CORAL"])
    steps, floats = recorded.runs["steps"].astype(int), sorted(map(float, sizes.values()))
    assert floats[0] == float(sizes["amazon"])
    return [
        f"the median of 21 adapting methods has a mean gain of {adapting['mean_gain'].median():+.1f} points",
        f"BNM {interval(*recorded.mean_gain('BNM'))} and CORAL {interval(*recorded.mean_gain('CORAL'))}",
        f"labels of the target gain {recorded.standings.loc['TAR', 'mean_gain']:.1f}",
        f"{ranked['n_better'].sum()} of {6 * len(ranked)} tests find a gain",
        f"{ranked['n_worse'].sum()} a loss",
        f"{steps.min()} to {steps.max()} steps",
        f"gains of {floats[0]} points on amazon and of {floats[1]} to {floats[-1]} elsewhere with",
        "80 %",
    ]


def test_the_openings_of_readme_and_index_say_what_is_recorded(recorded, detectable):
    readme, index = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/index.md"))
    phrases = opening(recorded, detectable)
    longer = f"MCC gains {plain(the_longer_runs_on_pacs())}"
    margin = "the margin of 1 point (digits 1.5)"
    holds(section("What we found", readme), *phrases, longer, as_its_authors_run_it(), margin)
    phrases = [phrase.replace("with", "with a probability of") for phrase in phrases]
    holds(section("What we found", index), *phrases, "95 % intervals over ten seeds")


def test_the_opening_of_findings_says_what_is_recorded(recorded, detectable):
    ranked = recorded.ranked
    assert rows("What does multi-source adaptation gain?") == {"points": [*detectable.values()]}
    p_values = {method: pooled(recorded.gains(method))[3] for method in ranked.index}
    corrected = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    gained = [method for method, p in corrected.items() if p <= 0.05 and ranked.loc[method, "mean_gain"] > 0]
    assert gained == ["CORAL"]
    close = {
        name: sum(low > -1 and high < 1 for _, low, high in (recorded.gain(method, name) for method in ranked.index))
        for name in DATASETS
    }
    assert [name for name, n in close.items() if n] == ["amazon"]  # within one point
    assert ranked.index[ranked["n_better"] > 0].tolist() == ["SHOT", "DECISION"]
    assert (ranked.loc[["SHOT", "DECISION"], "outcome:pacs-small"] == "better").all()
    steps, outcomes = recorded.runs["steps"].astype(int), ranked[["n_better", "n_worse"]].sum()
    pacs = recorded.selected[recorded.selected["experiment"] == "pacs-small"]
    # Candidates 0 and 2 have weight 0.1.
    assert pacs.loc[pacs["method"] == "MCC", "candidate"].isin([0, 2]).mean() > 0.5
    holds(
        section("What does multi-source adaptation gain?"),
        f"{len(ranked)} methods against SRC",
        f"{steps.min()} to {steps.max()} steps",
        f"{len(recorded.runs):,} records",
        f"median of the {len(recorded.adapting)} adapting methods has a mean gain of "
        f"{recorded.adapting['mean_gain'].median():+.1f} points over the six data sets",
        f"BNM {interval(*recorded.mean_gain('BNM'))} and CORAL {interval(*recorded.mean_gain('CORAL'))}",
        f"of the {len(ranked)} methods only CORAL has a gain that stays above zero",
        f"(p = {corrected['CORAL']:.2f})",
        f"gains {recorded.standings.loc['TAR', 'mean_gain']:.1f}.",
        f"Of the {6 * len(ranked)} tests within data sets {outcomes['n_better']} find a gain",
        f"{outcomes['n_worse']} a loss, {ranked.loc[SINGLE, 'n_worse'].sum()} of these",
        f"{(ranked['n_better'] == 0).sum()} methods were not shown to be better on any data set",
        f"correction over {len(ranked)} comparisons a true gain",
        "probability of 80 %",
        f"the intervals of {close['amazon']} of the {len(ranked)} methods lie within one point of SRC",
        "weight 1,",
        f"gains {plain(the_longer_runs_on_pacs())} over SRC",
        f"it gains {recorded.gain('MCC', 'pacs')[0]:.1f} on PACS",
        "took the weight 0.1 in most",
        "95 % intervals",
        f"over the {len(ranked)} comparisons of a data set",
    )


def test_our_favourites_do_as_recorded(recorded):
    standings = recorded.standings
    by_dataset = ", ".join(f"{name} {interval(*recorded.gain('DARN', name))}" for name in DATASETS)
    paper = over_targets(mb.load_results(ROOT / "results" / "paper-amazon")).mean()
    assert paper.drop("TAR").idxmax() == "DARN"
    assert standings.loc[SINGLE, "n_worse"].tolist() == [4, 6]
    assert not standings["outcome:music-small"].isin(["better"]).any()
    holds(
        section("Against our own favourites"),
        f"a mean gain of {interval(*recorded.mean_gain('DARN'))} and",
        f"a mean rank of {standings.loc['DARN', 'mean_rank']:.1f} of 24",
        by_dataset,
        f"({paper['DARN']:.1f} against SRC's {paper['SRC']:.1f})",
        f"is {interval(*pooled(recorded.gains('DARN', 'd_A-uniform'))[:3])}",
        f"on pacs {interval(*recorded.gain('DARN', 'pacs', 'd_A-uniform'))}",
        f"loses {plain(pooled(recorded.gains('MDAN', 'd_A-uniform'))[:3])}",
        f"all six ({standings.loc['best-single', 'mean_gain']:.1f})",
        f"on four ({standings.loc['ensemble', 'mean_gain']:.1f})",
        "November 2026",
    )


def test_music_is_as_recorded(recorded):
    ranked = recorded.ranked
    assert (ranked["gain:music-small"] < 0).all()
    music = recorded.runs[recorded.runs["experiment"] == "music-small"]
    means = music.groupby(["method", "candidate"])["score"].mean()
    low, low_fast = means["SRC"][[0, 2]]
    high, high_fast = means["SRC"][[1, 3]]
    best = means[list(recorded.adapting.index)].max()
    assert high_fast - low < 0
    assert best < low_fast
    losses = -ranked["gain:music-small"]
    assert (losses < min(low - high, low_fast - high_fast)).sum() > len(losses) / 2
    without = {method: interval(*pooled(recorded.gains(method).drop("music-small"))[:3]) for method in ("BNM", "CORAL")}
    holds(
        section("Music, or what an unequal search does"),
        f"All {len(ranked)} methods have a lower mean",
        f"{(ranked['outcome:music-small'] == 'worse').sum()} of them significantly",
        f"with 0.2 they have {low:.1f} and {low_fast:.1f} %",
        f"with 0.5 they have {high:.1f} and {high_fast:.1f}",
        "the suite's 0.3",
        f"the best candidate of any has {best:.1f}",
        f"BNM {without['BNM']} and CORAL {without['CORAL']}",
    )


def test_the_averages_are_as_recorded(recorded):
    by_target = recorded.selected.groupby(["experiment", "target", "method"])["score"].mean().unstack()
    targets = (by_target["WDGRL"] - by_target["SRC"]).loc["pacs-small"]
    holds(
        section("Every method on every data set").replace("24 methods", "methods"),
        "all 276 pairs a difference could be significant from 14 data sets on",
        f"{recorded.gain('WDGRL', 'pacs')[0]:+.1f} on pacs",
        f"{targets['cartoon']:+.1f} on cartoon and {targets['sketch']:+.1f} on sketch",
    )
    assert 276 * 2.0 ** (1 - 14) < 0.05 < 276 * 2.0 ** (1 - 13)


def test_selection_costs_what_is_recorded(recorded, oracle):
    runs = recorded.runs[~recorded.runs["reference"].astype(bool) & (recorded.runs["experiment"] != "fonts-poisoned")]
    groups = runs.groupby(RUN)
    best, shown = groups["score"].max(), rows("What selecting costs")
    for criterion, (lost, of_src, correlation) in shown.items():
        if criterion == "chance":
            score = groups["score"].mean()
        else:
            score = chosen(runs, f"validator:{criterion}").set_index(RUN)["score"]
            assert correlation == f"{rank_correlation(runs, criterion):+.2f}"
        regret = (best - score).groupby(["experiment", "method"]).mean()
        assert lost == f"{regret.groupby('experiment').mean().mean():.2f}", criterion
        assert of_src == f"{regret.xs('SRC', level='method').mean():.2f}", criterion
    less, more = {}, {}
    for method in ("MCC", "BNM"):
        ours, heavy = (
            of[(of["experiment"] == "pacs-small") & (of["method"] == method)] for of in (recorded.selected, runs)
        )
        heavy = chosen(heavy[heavy["candidate"].isin([1, 3])])
        source = [of["validator:source_accuracy"].mean() for of in (ours, heavy)]
        less[method] = f"{100 * (source[0] - source[1]):.1f}"
        more[method] = plain(student((over_targets(heavy) - over_targets(ours))[method]))
    median = np.median([pooled(oracle.gains(method))[0] for method in oracle.adapting.index])
    gains = {method: interval(*pooled(oracle.gains(method))[:3]) for method in ("BNM", "MCC", "CORAL")}
    place = [1 + (of.ranks < of.ranks["SRC"]).sum() for of in (oracle, recorded)]
    holds(
        section("What selecting costs"),
        "MCC with weight 1",
        f"{less['MCC']} points less",
        f"{more['MCC']} more accuracy",
        f"these are {less['BNM']} and {more['BNM']}",
        f"the median of the {len(oracle.adapting)} adapting methods has a mean gain of {median:.1f}",
        f"BNM {gains['BNM']}, MCC {gains['MCC']} and CORAL {gains['CORAL']}",
        f"{sum(exact_gains(oracle))} of 138 tests find a gain instead of {recorded.ranked['n_better'].sum()}",
        f"number {place[0]} by mean rank then, and number {place[1]} here",
    )


def rank_correlation(runs: pd.DataFrame, criterion: str) -> float:
    """Spearman's, mean over runs, then methods and data sets; of runs with three candidates or more."""
    runs = runs[runs.groupby(RUN)["score"].transform("size") > 2]
    keys = [runs[name] for name in RUN]
    ranks = runs.groupby(RUN)[["score", f"validator:{criterion}"]].rank()
    first, second = (ranks[name] - ranks[name].groupby(keys).transform("mean") for name in ranks)
    product = (first * second).groupby(keys).sum()
    norm = np.sqrt((first**2).groupby(keys).sum() * (second**2).groupby(keys).sum())
    per_run = (product / norm.where(norm > 0)).dropna()
    return float(per_run.groupby(["experiment", "method"]).mean().groupby("experiment").mean().mean())


def exact_gains(recorded: Recorded) -> list[bool]:
    """Whether a method is significantly better than SRC, for each data set and method."""
    better = []
    for name in DATASETS:
        gains = [recorded.gains(method).loc[f"{name}-small"] for method in recorded.ranked.index]
        tests = [mb.signed_rank(own.round(6), "two-sided").p for own in gains]
        better += [p <= 0.05 and own.mean() > 0 for p, own in zip(holm(tests), gains, strict=True)]
    return better


@pytest.fixture(scope="module")
def selected() -> pd.DataFrame:
    return chosen(mb.load_results(ROOT / "results" / "poisoned"))


def test_the_poisoned_source_does_what_is_recorded(selected):
    scores = selected.pivot(index=["experiment", "seed"], columns="method", values="score")
    clean, poisoned = scores.loc["fonts-clean"], scores.loc["fonts-poisoned"]
    change, shown = poisoned - clean, rows("A poisoned source")
    for method, (before, after, lost, _) in shown.items():
        expected = clean[method].mean(), poisoned[method].mean()
        assert [before, after] == [f"{mean:.1f}" for mean in expected], method
        assert lost == f"{change[method].mean():+.1f}", method
    more = {method: plain(student(change[method] - change["SRC"])) for method in ("DARN", "MDAN", "GroupDRO")}
    assert student(change["DARN"] - change["SRC"])[1] < 0  # not shown
    holds(
        section("A poisoned source"),
        f"DARN's loss is {more['DARN']} smaller than SRC's",
        f"loses nothing ({change['WJDOT'].mean():+.1f})",
        f"is {plain(student(poisoned['WJDOT'] - poisoned['SRC']))} below the poisoned SRC",
        f"give it {shown['MDAN'][3]} and {shown['GroupDRO'][3]}, and lose",
        f"{more['MDAN']} and {more['GroupDRO']} more than SRC",
    )


def test_the_poisoned_source_weighs_what_is_recorded(selected):
    curves = mb.load_curves(selected[selected["experiment"] == "fonts-poisoned"])
    last = curves[curves["epoch"] == curves["epoch"].max()]
    weights = last[(last["source"] == "mono") & ~last["pooled"].astype(bool)].groupby("method")["weight"].mean()
    for method, (*_, shown) in rows("A poisoned source").items():
        assert shown == (f"{weights[method]:.2f}" if pd.notna(weights.get(method)) else ""), method


def test_weights_go_with_worth_as_recorded(capsys):
    folder = str(ROOT / "results" / "leaderboard-sources")
    assert main(["sources", folder, "--format", "csv"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    by_target = found.drop_duplicates(["experiment", "method", "target"]).groupby(["experiment", "method"])
    correlations = by_target["baseline_loss_correlation"].mean()
    columns = ("opinions", "pacs-features", "music")
    for method, cells in rows("Weights and what sources are worth").items():
        assert cells == [f"{correlations[f'{name}-sources', method]:+.2f}" for name in columns], method
    ours = found.set_index(["method", "target", "source"])
    src, harmful = ours.loc["SRC"], ours[ours["outcome"] == "better"]
    assert sorted(harmful.index) == [("DARN", "tweets", "editorial"), ("GroupDRO", "sketch", "photo")]
    assert set(src["outcome"]) == {"worse", "unknown"}
    lost, weight = -src["mean_difference"], ours["weight"]
    gained = harmful["mean_difference"]
    cartoon, product = ("cartoon", "sketch"), ("product", "tweets")
    holds(
        section("Weights and what sources are worth"),
        "1,300 runs",
        f"loses {lost[cartoon]:.1f} points on",
        f"{weight['DARN', *cartoon]:.2f} (GroupDRO {weight['GroupDRO', *cartoon]:.2f})",
        f"loses {lost[product]:.1f} on",
        f"DARN gives it {weight['DARN', *product]:.2f}, GroupDRO {weight['GroupDRO', *product]:.2f}",
        f"SRC {(src['outcome'] == 'worse').sum()} of these {len(src)} sources",
        f"gains {gained['DARN', 'tweets', 'editorial']:.1f} points",
        f"gives {weight['DARN', 'tweets', 'editorial']:.2f}",
        f"GroupDRO {gained['GroupDRO', 'sketch', 'photo']:.1f} on",
    )


def test_seconds_are_as_recorded(recorded):
    runs = recorded.selected[recorded.selected["experiment"] != "fonts-poisoned"]
    seconds = runs.groupby(["experiment", "method"])["train_seconds"].mean().unstack()
    ratios = np.exp(np.log(seconds.div(seconds["SRC"], axis=0)).mean())
    shown = re.findall(r"([A-Za-z][\w-]+) (\d\.\d)", section("Seconds"))
    assert len(shown) == 18
    holds(section("Seconds"), *(f"{method} {ratios[method]:.1f}" for method, _ in shown))
    spent = recorded.runs["train_seconds"]
    holds(
        section("Repeat it"),
        f"took {spent.sum() / 3600:.1f} hours",
        f"{spent.median():.1f} seconds a run in the median",
        f"{spent.quantile(0.95):.1f} or less in 95 of 100",
    )
