"""Says what is doubtful about answers: one class alone or, without labels, what differs widely from the sources."""

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
    """What a method answers for a target, means over its runs.

    Attributes:
        shares: the share of the rows that get each class, or of the numbers that lie `outside` the sources' labels.
        sources: the least and the largest share of each class in a source; or the least and the largest label.
        sure: the mean probability of the answered classes; NaN for numbers.
        right: the share that is right of the sources' held-out examples; NaN if it is not known.
    """

    shares: tuple[float, ...]
    sources: tuple[tuple[float, float], ...]
    sure: float
    right: float


def doubted_answers(rows: pd.DataFrame) -> Iterator[str]:
    """A sentence on the answers for each target without labels that differ widely from what the sources have.

    `rows` are the selected runs of one experiment; those that keep no predictions are not judged.
    """
    is_unlabelled = (rows["status"] == "ok") & (rows["n_test"] == 0)
    unlabelled = rows[is_unlabelled.to_numpy(dtype=bool)]
    if unlabelled.empty:
        return
    parts: dict[tuple[str, str], list[_Answers]] = {}
    for row, record, store in read_records(unlabelled):
        arrays = store.kept(record, "predictions")
        if arrays is None or "sources" not in arrays or not len(arrays["predicted"]):
            continue
        run = unlabelled.loc[row]
        right = run.get(f"{VALIDATOR}source_accuracy", np.nan)
        place = str(run["target"]), str(run["method"])
        parts.setdefault(place, []).append(_answers(arrays, float(right)))
    by_target: dict[str, dict[str, _Answers]] = {}
    for (target, method), answers in parts.items():
        by_target.setdefault(target, {})[method] = _mean(answers)
    for target, methods in by_target.items():
        yield from _sentences(name_of(target), methods)


def doubts_of(target: str, method: str, outputs: Array, sources: Array, classes: Sequence[str]) -> list[str]:
    """As `doubted_answers`, of a new domain.

    Args:
        target: its name.
        method: the method's.
        outputs: (n, outputs) logits or numbers.
        sources: how many rows of each source have a class, (k, classes); or the least and largest label, (k, 2).
        classes: the names of the classes; none for numbers.
    """
    predicted = outputs.argmax(1) if classes else outputs[:, 0]
    arrays = {"predicted": predicted, "outputs": outputs, "sources": sources}
    return [*_sentences(name_of(target), {method: _answers(arrays, np.nan)}, classes)]


def lone_answers(rows: pd.DataFrame) -> Iterator[str]:
    """A sentence on the runs that predicted a single class where the test has several.

    `rows` are the selected runs of one experiment.
    """
    classifies = (rows["status"] == "ok") & (rows["task"] == "classification")
    ok = rows[(classifies & (rows["method"] != CHANCE_REFERENCE)).to_numpy(dtype=bool)]
    classes = tested_classes(ok)
    several = {place: {*counts.values()} for place, counts in classes.items() if len(counts) > 1}
    # Such a run is right for all examples of one class, so only few records need to be read.
    places = zip(ok["target"].astype(object), ok["seed"], ok["n_correct"], strict=True)
    may_be = np.array([n_correct in several.get((target, seed), ()) for target, seed, n_correct in places], bool)
    found: dict[str, list[tuple[str, int]]] = {}
    for row, record, _ in read_records(ok[may_be]):
        confusion = (record.outcome and record.outcome.confusion) or ()
        answers = {predicted for _, predicted, _ in confusion}
        if len(answers) == 1:
            place = str(ok.loc[row, "target"]), answers.pop()
            found.setdefault(str(ok.loc[row, "method"]), []).append(place)
    if found:
        each = first_of(_lone(name, of, ok) for name, of in found.items())
        yield f"one class alone was answered for every test row: {each}"


def _lone(method: str, found: Sequence[tuple[str, int]], ok: pd.DataFrame) -> str:
    """A method with its targets, and its class if it is the same at all of them."""
    targets = dict.fromkeys(target for target, _ in found)
    classes = {number for _, number in found}
    runs = int(((ok["method"] == method) & ok["target"].isin(targets)).sum())
    which = f"class {classes.pop()}, " if len(classes) == 1 else ""
    return f"{name_of(method)} at {first_of(map(name_of, targets))} ({which}{len(found)} of {counted(runs, 'run')})"


def _answers(arrays: Mapping[str, Any], right: float) -> _Answers:
    predicted = arrays["predicted"]
    sources = np.asarray(arrays["sources"], float)
    if np.issubdtype(predicted.dtype, np.floating):
        low, high = float(sources[:, 0].min()), float(sources[:, 1].max())
        outside = (predicted < low) | (predicted > high)
        return _Answers((float(outside.mean()),), ((low, high),), np.nan, right)
    from scipy.special import softmax

    of_sources = sources / sources.sum(axis=1, keepdims=True)
    ranges = zip(of_sources.min(axis=0).tolist(), of_sources.max(axis=0).tolist(), strict=True)
    shares = np.bincount(predicted, minlength=sources.shape[1]) / len(predicted)
    sure = float(softmax(arrays["outputs"], axis=1).max(axis=1).mean())
    return _Answers(tuple(shares.tolist()), tuple(ranges), sure, right)


def _mean(answers: list[_Answers]) -> _Answers:
    by_class = zip(*(one.shares for one in answers), strict=True)
    return _Answers(
        shares=tuple(map(mean_of, by_class)),
        sources=answers[0].sources,
        sure=mean_of(one.sure for one in answers),
        right=mean_of(one.right for one in answers),
    )


def _sentences(target: str, methods: Mapping[str, _Answers], classes: Sequence[str] = ()) -> Iterator[str]:
    first = next(iter(methods.values()))
    if np.isnan(first.sure):
        low, high = first.sources[0]
        outside = {name: of.shares[0] for name, of in methods.items() if of.shares[0] > OUTSIDE}
        if outside:
            where = f"lie outside the sources' labels, {low:.4g} to {high:.4g}"
            yield f"answers for {target}: {_each(outside)} {where}; {_ADVICE}"
        return
    farthest = {name: _farthest(of) for name, of in methods.items()}
    for number, (low, high) in enumerate(first.sources):
        far = {name: methods[name].shares[number] for name, place in farthest.items() if place == number}
        if far:
            least, most = f"{100 * low:.0f}", f"{100 * high:.0f}"
            where = f"where the sources have {least if least == most else f'{least} to {most}'} %"
            which = repr(classes[number]) if classes else f"class {number}"
            yield f"answers for {target}: {which} for {_each(far)} of the rows, {where}; {_ADVICE}"
    sure = [
        f"{name_of(name)} {of.sure:.3f}"
        for name, of in methods.items()
        if of.sure > SURE and not of.right > RIGHT  # which may be unknown
    ]
    if sure:
        yield (
            f"answers for {target}: a mean probability above {SURE:g} ({first_of(sure)}), more than models are right "
            "elsewhere; do not take it for the share that is right"
        )


def _farthest(of: _Answers) -> int | None:
    """The class whose share is farthest outside its range in the sources, if it is far; of equal ones the larger."""
    away = [max(low - share, share - high) for share, (low, high) in zip(of.shares, of.sources, strict=True)]
    place = max(range(len(away)), key=lambda number: (round(away[number], 9), of.shares[number]))
    return place if away[place] > FAR else None


def _each(shares: Mapping[str, float]) -> str:
    return first_of(f"{100 * share:.0f} % ({name_of(name)})" for name, share in shares.items())
