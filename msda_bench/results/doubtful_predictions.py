"""Warns of doubtful predictions: a single class or, without labels, shares that differ widely from the sources'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from msda_bench.results.estimates import mean_of
from msda_bench.results.load import VALIDATOR, read_records, tested_classes
from msda_bench.results.runs import ok_runs
from msda_bench.results.words import counted, first_of, name_of
from msda_bench.suite.plan import CHANCE_REFERENCE

if TYPE_CHECKING:
    from msda_bench.api import Array

FAR = 0.2
"""The share of a class is doubted if it is so far outside the range of its shares in the sources."""
SURE, RIGHT = 0.99, 0.95
"""A mean probability above the first is doubted unless a larger share than the second is right in the sources."""
OUTSIDE = 0.1
"""Numbers are doubted if a larger share of them lies outside the range of the sources' labels."""
_ADVICE = "label some rows before you use these answers"


class _Summary(NamedTuple):
    """What a method predicts for a target, in means over its runs.

    Attributes:
        shares: the share of the rows that get each class; for numbers, the share outside the sources' labels alone.
        sources: the least and the largest share of each class in a source; for numbers, the least and largest label.
        sure: the mean probability of the predicted classes; NaN for numbers.
        right: the accuracy on the sources' held-out examples; NaN if it is not known.
    """

    shares: tuple[float, ...]
    sources: tuple[tuple[float, float], ...]
    sure: float
    right: float


def doubtful_predictions(rows: pd.DataFrame) -> Iterator[str]:
    """Sentences on each target without labels where predictions differ widely from the sources' labels.

    `rows` are the selected runs of one experiment; runs without stored predictions are not judged.
    """
    ok = ok_runs(rows)
    unlabelled = ok[(ok["n_test"] == 0).to_numpy(dtype=bool)]
    if unlabelled.empty:
        return
    by_target: dict[str, dict[str, list[_Summary]]] = {}
    for row, record, store in read_records(unlabelled):
        arrays = store.kept(record, "predictions")
        if arrays is None or "sources" not in arrays or not len(arrays["predicted"]):
            continue
        run = unlabelled.loc[row]
        right = float(run.get(f"{VALIDATOR}source_accuracy", np.nan))
        methods = by_target.setdefault(str(run["target"]), {})
        methods.setdefault(str(run["method"]), []).append(_summary(arrays, right))
    for target, methods in by_target.items():
        means = {method: _mean(summaries) for method, summaries in methods.items()}
        yield from _sentences(name_of(target), means)


def doubts_of(target: str, method: str, outputs: Array, sources: Array, classes: Sequence[str]) -> list[str]:
    """The sentences of `doubtful_predictions` on the predictions for a new domain.

    Args:
        target: the name of the domain.
        method: the name of the method.
        outputs: (n, outputs) logits or numbers.
        sources: the rows of each source with each class, (k, classes); or its least and largest label, (k, 2).
        classes: the names of the classes; none for numbers.
    """
    predicted = outputs.argmax(1) if classes else outputs[:, 0]
    arrays = {"predicted": predicted, "outputs": outputs, "sources": sources}
    summary = _summary(arrays, np.nan)
    return list(_sentences(name_of(target), {method: summary}, classes))


def single_class_predictions(rows: pd.DataFrame) -> Iterator[str]:
    """A sentence on the runs that predicted a single class where the test has several.

    `rows` are the selected runs of one experiment.
    """
    ok = ok_runs(rows)
    ok = ok[((ok["task"] == "classification") & (ok["method"] != CHANCE_REFERENCE)).to_numpy(dtype=bool)]
    found: dict[str, list[tuple[str, int]]] = {}
    for row, record, _ in read_records(_may_predict_one_class(ok)):
        if record.outcome is None or record.outcome.confusion is None:
            continue
        classes = {predicted for _, predicted, _ in record.outcome.confusion}
        if len(classes) == 1:
            place = str(ok.loc[row, "target"]), classes.pop()
            found.setdefault(str(ok.loc[row, "method"]), []).append(place)
    if found:
        each = [_of_method(method, places, ok) for method, places in found.items()]
        yield f"one class alone was answered for every test row: {first_of(each)}"


def _may_predict_one_class(ok: pd.DataFrame) -> pd.DataFrame:
    """The runs with as many correct predictions as a class has examples; few, so that few records are read."""
    tested = tested_classes(ok)
    fits = []
    for target, seed, n_correct in ok[["target", "seed", "n_correct"]].itertuples(index=False):
        counts = tested.get((target, seed), {})
        fits.append(len(counts) > 1 and n_correct in counts.values())
    return ok[np.array(fits, bool)]


def _of_method(method: str, found: Sequence[tuple[str, int]], ok: pd.DataFrame) -> str:
    """A method with its targets, and its class if it is the same at all of them."""
    targets = dict.fromkeys(target for target, _ in found)
    classes = {number for _, number in found}
    runs = int(((ok["method"] == method) & ok["target"].isin(targets)).sum())
    some = f"{len(found)} of {counted(runs, 'run')}"
    if len(classes) == 1:
        some = f"class {classes.pop()}, {some}"
    return f"{name_of(method)} at {first_of(map(name_of, targets))} ({some})"


def _summary(arrays: Mapping[str, Any], right: float) -> _Summary:
    predicted = arrays["predicted"]
    sources = np.asarray(arrays["sources"], float)
    if np.issubdtype(predicted.dtype, np.floating):
        low = float(sources[:, 0].min())
        high = float(sources[:, 1].max())
        outside = float(((predicted < low) | (predicted > high)).mean())
        return _Summary((outside,), ((low, high),), np.nan, right)
    from scipy.special import softmax

    of_sources = sources / sources.sum(axis=1, keepdims=True)
    least = of_sources.min(axis=0).tolist()
    largest = of_sources.max(axis=0).tolist()
    shares = np.bincount(predicted, minlength=sources.shape[1]) / len(predicted)
    sure = float(softmax(arrays["outputs"], axis=1).max(axis=1).mean())
    return _Summary(tuple(shares.tolist()), tuple(zip(least, largest, strict=True)), sure, right)


def _mean(summaries: Sequence[_Summary]) -> _Summary:
    by_class = zip(*(of_run.shares for of_run in summaries), strict=True)
    return _Summary(
        shares=tuple(map(mean_of, by_class)),
        sources=summaries[0].sources,
        sure=mean_of(of_run.sure for of_run in summaries),
        right=mean_of(of_run.right for of_run in summaries),
    )


def _sentences(target: str, methods: Mapping[str, _Summary], classes: Sequence[str] = ()) -> Iterator[str]:
    first = next(iter(methods.values()))
    if np.isnan(first.sure):
        yield from _sentences_on_numbers(target, methods)
        return
    doubted: dict[int, dict[str, float]] = {}
    for name, summary in methods.items():
        number = _farthest(summary)
        if number is not None:
            doubted.setdefault(number, {})[name] = summary.shares[number]
    for number in sorted(doubted):
        which = repr(classes[number]) if classes else f"class {number}"
        low, high = first.sources[number]
        least = f"{100 * low:.0f}"
        most = f"{100 * high:.0f}"
        usual = least if least == most else f"{least} to {most}"
        where = f"where the sources have {usual} %"
        yield f"answers for {target}: {which} for {_each(doubted[number])} of the rows, {where}; {_ADVICE}"
    sure = []
    for name, summary in methods.items():
        is_often_right = summary.right > RIGHT  # False where it is not known
        if summary.sure > SURE and not is_often_right:
            sure.append(f"{name_of(name)} {summary.sure:.3f}")
    if sure:
        yield (
            f"answers for {target}: a mean probability above {SURE:g} ({first_of(sure)}), more than models are right "
            "elsewhere; do not take it for the share that is right"
        )


def _sentences_on_numbers(target: str, methods: Mapping[str, _Summary]) -> Iterator[str]:
    outside = {}
    for name, summary in methods.items():
        (share,) = summary.shares
        if share > OUTSIDE:
            outside[name] = share
    if outside:
        low, high = next(iter(methods.values())).sources[0]
        where = f"lie outside the sources' labels, {low:.4g} to {high:.4g}"
        yield f"answers for {target}: {_each(outside)} {where}; {_ADVICE}"


def _farthest(summary: _Summary) -> int | None:
    """The class whose share is farthest outside its range in the sources, if it is far; of equal ones the larger."""
    away = []
    for share, (low, high) in zip(summary.shares, summary.sources, strict=True):
        away.append(max(low - share, share - high))
    farthest = max(range(len(away)), key=lambda number: (round(away[number], 9), summary.shares[number]))
    return farthest if away[farthest] > FAR else None


def _each(shares: Mapping[str, float]) -> str:
    return first_of(f"{100 * share:.0f} % ({name_of(name)})" for name, share in shares.items())
