"""Code shared by schemes that adapt without the sources (Liang et al. 2020, SHOT)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from msda_bench.api import Phase, Stage

_SMALL = 1e-5


def sources_then_target(adapt: float, sources: Phase, target: Phase) -> tuple[Stage, ...]:
    """A stage that sees only the sources, and one of `adapt` times its steps that sees only the target."""
    start = Stage("start", sees=("sources",), phases=(sources,))
    return (start, Stage("adapt", share=adapt, sees=("target",), phases=(target,)))


def information(outputs: Tensor) -> Tensor:
    """Mean entropy of the predictions minus the entropy of their mean, of logits (n, classes), in nats.

    Low if predictions are confident and, together, of all classes: information maximisation (Liang et al. 2020).
    Logarithms of p + 1e-5, as in the authors' code.
    """
    answers = outputs.softmax(-1)
    return _entropy(answers).mean() - _entropy(answers.mean(0))


def _entropy(answers: Tensor) -> Tensor:
    return -(answers * (answers + _SMALL).log()).sum(-1)


def points(features: Tensor) -> Tensor:
    """Features (n, d) with a 1 appended, of unit length (n, d + 1)."""
    return functional.normalize(torch.cat([features, features.new_ones(len(features), 1)], 1), dim=1)


def centres(rows: Tensor, shares: Tensor) -> Tensor:
    """Each class's mean (classes, d) of rows (n, d), by their shares (n, classes) in it; 0 for a class without rows."""
    return shares.T @ rows / (shares.sum(0).unsqueeze(1) + 1e-8)


def nearest(rows: Tensor, middles: Tensor, there: Tensor) -> Tensor:
    """The class of the nearest centre by cosine (n,), among the classes that are `there` (classes,)."""
    close = rows @ functional.normalize(middles, dim=1).T
    return close.masked_fill(~there, -torch.inf).argmax(-1)


def one_hot(labels: Tensor, like: Tensor) -> Tensor:
    """Labels (n,) as one-hot rows (n, classes), of the dtype of `like`."""
    return functional.one_hot(labels, like.shape[-1]).to(like)


def pseudo_labels(features: Tensor, outputs: Tensor, rounds: int = 2) -> Tensor:
    """A class for each of n examples, by the nearest class centre (Liang et al. 2020).

    Centres weigh the examples by their probabilities in the first round, and by the found labels in later ones. Classes
    without examples are skipped.

    Args:
        features: (n, d).
        outputs: logits (n, classes).
        rounds: how often centres and labels are computed.

    Returns:
        (n,) int64.
    """
    rows, shares, labels = points(features), outputs.softmax(-1), outputs.argmax(-1)
    for _ in range(rounds):
        there = one_hot(labels, outputs).any(0)
        labels = nearest(rows, centres(rows, shares), there)
        shares = one_hot(labels, outputs)
    return labels
