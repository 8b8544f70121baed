"""Warns of doubtful predictions: a single class or, without labels, shares that differ widely from the sources'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from msda_bench.results.estimates import mean_of
from msda_bench.results.load import VALIDATOR, read_records, tested_classes
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


class _Answers(NamedTuple):
    """The answers of a method for a target, in means over its runs.

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


def doubted_answers(rows: pd.DataFrame) -> Iterator[str]:
    """Sentences on each target without labels whose answers differ widely from the sources' labels.

    `rows` are the selected runs of one experiment; runs without stored predictions are not judged.
    """
    is_unlabelled = (rows["status"] == "ok") & (rows["n_test"] == 0)
    unlabelled = rows[is_unlabelled.to_numpy(dtype=bool)]
    if unlabelled.empty:
        return
    by_target: dict[str, dict[str, list[_Answers]]] = {}
    for row, record, store in read_records(unlabelled):
        arrays = store.kept(record, "predictions")
        if arrays is None or "sources" not in arrays or not len(arrays["predicted"]):
            continue
        run = unlabelled.loc[row]
        right = float(run.get(f"{VALIDATOR}source_accuracy", np.nan))
        methods = by_target.setdefault(str(run["target"]), {})
        methods.setdefault(str(run["method"]), []).append(_answers(arrays, right))
    for target, methods in by_target.items():
        means = {method: _mean(answers) for method, answers in methods.items()}
        yield from _sentences(name_of(target), means)


def doubts_of(target: str, method: str, outputs: Array, sources: Array, classes: Sequence[str]) -> list[str]:
    """The sentences of `doubted_answers` on the predictions for a new domain.

    Args:
        target: the name of the domain.
        method: the name of the method.
        outputs: (n, outputs) logits or numbers.
        sources: the rows of each source with each class, (k, classes); or its least and largest label, (k, 2).
        classes: the names of the classes; none for numbers.
    """
    predicted = outputs.argmax(1) if classes else outputs[:, 0]
    arrays = {"predicted": predicted, "outputs": outputs, "sources": sources}
    answers = _answers(arrays, np.nan)
    return list(_sentences(name_of(target), {method: answers}, classes))


def lone_answers(rows: pd.DataFrame) -> Iterator[str]:
    """A sentence on the runs that predicted a single class where the test has several.

    `rows` are the selected runs of one experiment.
    """
    classifies = (rows["status"] == "ok") & (rows["task"] == "classification")
    ok = rows[(classifies & (rows["method"] != CHANCE_REFERENCE)).to_numpy(dtype=bool)]
    found: dict[str, list[tuple[str, int]]] = {}
    for row, record, _ in read_records(_may_answer_one_class(ok)):
        if record.outcome is None or record.outcome.confusion is None:
            continue
        answers = {predicted for _, predicted, _ in record.outcome.confusion}
        if len(answers) == 1:
            place = str(ok.loc[row, "target"]), answers.pop()
            found.setdefault(str(ok.loc[row, "method"]), []).append(place)
    if found:
        each = [_lone(method, places, ok) for method, places in found.items()]
        yield f"one class alone was answered for every test row: {first_of(each)}"


def _may_answer_one_class(ok: pd.DataFrame) -> pd.DataFrame:
    """The runs whose number of correct answers is that of one class; few, so that few records need to be read."""
    tested = tested_classes(ok)
    fits = []
    for target, seed, n_correct in ok[["target", "seed", "n_correct"]].itertuples(index=False):
        counts = tested.get((target, seed), {})
        fits.append(len(counts) > 1 and n_correct in counts.values())
    return ok[np.array(fits, bool)]


def _lone(method: str, found: Sequence[tuple[str, int]], ok: pd.DataFrame) -> str:
    """A method with its targets, and its class if it is the same at all of them."""
    targets = dict.fromkeys(target for target, _ in found)
    classes = {number for _, number in found}
    runs = int(((ok["method"] == method) & ok["target"].isin(targets)).sum())
    some = f"{len(found)} of {counted(runs, 'run')}"
    if len(classes) == 1:
        some = f"class {classes.pop()}, {some}"
    return f"{name_of(method)} at {first_of(map(name_of, targets))} ({some})"


def _answers(arrays: Mapping[str, Any], right: float) -> _Answers:
    predicted = arrays["predicted"]
    sources = np.asarray(arrays["sources"], float)
    if np.issubdtype(predicted.dtype, np.floating):
        low = float(sources[:, 0].min())
        high = float(sources[:, 1].max())
        outside = float(((predicted < low) | (predicted > high)).mean())
        return _Answers((outside,), ((low, high),), np.nan, right)
    from scipy.special import softmax

    of_sources = sources / sources.sum(axis=1, keepdims=True)
    least = of_sources.min(axis=0).tolist()
    largest = of_sources.max(axis=0).tolist()
    shares = np.bincount(predicted, minlength=sources.shape[1]) / len(predicted)
    sure = float(softmax(arrays["outputs"], axis=1).max(axis=1).mean())
    return _Answers(tuple(shares.tolist()), tuple(zip(least, largest, strict=True)), sure, right)


def _mean(answers: Sequence[_Answers]) -> _Answers:
    by_class = zip(*(of_run.shares for of_run in answers), strict=True)
    return _Answers(
        shares=tuple(map(mean_of, by_class)),
        sources=answers[0].sources,
        sure=mean_of(of_run.sure for of_run in answers),
        right=mean_of(of_run.right for of_run in answers),
    )


def _sentences(target: str, methods: Mapping[str, _Answers], classes: Sequence[str] = ()) -> Iterator[str]:
    first = next(iter(methods.values()))
    if np.isnan(first.sure):
        yield from _sentences_on_numbers(target, methods)
        return
    doubted: dict[int, dict[str, float]] = {}
    for name, answers in methods.items():
        number = _farthest(answers)
        if number is not None:
            doubted.setdefault(number, {})[name] = answers.shares[number]
    for number in sorted(doubted):
        which = repr(classes[number]) if classes else f"class {number}"
        low, high = first.sources[number]
        least = f"{100 * low:.0f}"
        most = f"{100 * high:.0f}"
        usual = least if least == most else f"{least} to {most}"
        where = f"where the sources have {usual} %"
        yield f"answers for {target}: {which} for {_each(doubted[number])} of the rows, {where}; {_ADVICE}"
    sure = []
    for name, answers in methods.items():
        is_often_right = answers.right > RIGHT  # False where it is not known
        if answers.sure > SURE and not is_often_right:
            sure.append(f"{name_of(name)} {answers.sure:.3f}")
    if sure:
        yield (
            f"answers for {target}: a mean probability above {SURE:g} ({first_of(sure)}), more than models are right "
            "elsewhere; do not take it for the share that is right"
        )


def _sentences_on_numbers(target: str, methods: Mapping[str, _Answers]) -> Iterator[str]:
    outside = {}
    for name, answers in methods.items():
        (share,) = answers.shares
        if share > OUTSIDE:
            outside[name] = share
    if outside:
        low, high = next(iter(methods.values())).sources[0]
        where = f"lie outside the sources' labels, {low:.4g} to {high:.4g}"
        yield f"answers for {target}: {_each(outside)} {where}; {_ADVICE}"


def _farthest(answers: _Answers) -> int | None:
    """The class whose share is farthest outside its range in the sources, if it is far; of equal ones the larger."""
    away = []
    for share, (low, high) in zip(answers.shares, answers.sources, strict=True):
        away.append(max(low - share, share - high))
    farthest = max(range(len(away)), key=lambda number: (round(away[number], 9), answers.shares[number]))
    return farthest if away[farthest] > FAR else None


def _each(shares: Mapping[str, float]) -> str:
    return first_of(f"{100 * share:.0f} % ({name_of(name)})" for name, share in shares.items())
