"""Metrics of one class against all others, such as a rare one: at the predicted class, and over all thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from msda_bench.api import Metric, Tested, component
from msda_bench_builtin.optional import require


@component
class OneClass(Metric):
    """A metric of one class, the positive one; all others together are the negative one.

    Parameters:
        positive: the number of the class, from 0 in the order in which `validate` names them.
    """

    percent = True
    measure: ClassVar[str]
    """What tables call it, without the class."""

    positive: Annotated[int, Field(ge=0, lt=1_000_000)] = 1

    @property
    def label(self) -> str:  # type: ignore[override]
        """Names the class."""
        return f"{self.measure} of class {self.positive}"


@component
class Sensitivity(OneClass):
    """The share of the positive class that is predicted as such: recall, the true positive rate."""

    name = "sensitivity"
    measure = "sensitivity"

    def value(self, tested: Tested) -> float:
        """Undefined without an example of the class."""
        true, predicted, count = tested.confusion.unbind(-1)
        is_mine = true == self.positive
        return _share(count, is_mine, is_mine & (predicted == self.positive))


@component
class Specificity(OneClass):
    """The share of the other classes that is not predicted as the positive one: the true negative rate."""

    name = "specificity"
    measure = "specificity"

    def value(self, tested: Tested) -> float:
        """Undefined without an example of another class."""
        true, predicted, count = tested.confusion.unbind(-1)
        is_other = true != self.positive
        return _share(count, is_other, is_other & (predicted != self.positive))


def _share(counts: Tensor, asked: Tensor, right: Tensor) -> float:
    """The share of the examples asked for that are right; NaN if there are none."""
    total = int(counts[asked].sum())
    if not total:
        return math.nan
    return int(counts[right].sum()) / total


@component
class OfScores(OneClass):
    """A metric of scikit-learn that compares the scores of the positive class with its labels, at every threshold."""

    needs_outputs = True

    def __post_init__(self) -> None:
        """Refuses to be without scikit-learn."""
        require("scikit-learn", "sklearn", "sklearn")

    def _of_scores(self, tested: Tested, measure: Callable[[Any, Any], Any]) -> float:
        """The measure; NaN if all test examples are of the class, or none is."""
        if self.positive >= tested.outputs.shape[1]:
            return math.nan
        is_mine = (tested.labels == self.positive).numpy()
        if is_mine.all() or not is_mine.any():
            return math.nan
        # By log-probabilities, since probabilities of confident outputs would all round to 1.
        scores = tested.outputs.double().log_softmax(-1)[:, self.positive].numpy()
        return float(measure(is_mine, scores))


@component
class Auroc(OfScores):
    """The area under the ROC curve of one class against the others: sensitivity over 1 - specificity.

    It is the probability that an example of the class has a higher score than one of another class; 50 % by chance.

    Fawcett. An introduction to ROC analysis. Pattern Recognition Letters, 2006.
    """

    name = "auroc"
    measure = "AUROC"

    def value(self, tested: Tested) -> float:
        """scikit-learn's `roc_auc_score`."""
        from sklearn.metrics import roc_auc_score

        return self._of_scores(tested, roc_auc_score)


@component
class Auprc(OfScores):
    """The area under the curve of precision over sensitivity of one class, as average precision; for rare classes.

    By chance it is the share of the class. Precision is not interpolated.

    Davis and Goadrich. The Relationship Between Precision-Recall and ROC Curves. ICML 2006.
    """

    name = "auprc"
    measure = "AUPRC"

    def value(self, tested: Tested) -> float:
        """scikit-learn's `average_precision_score`."""
        from sklearn.metrics import average_precision_score

        return self._of_scores(tested, average_precision_score)
