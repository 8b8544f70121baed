"""Scores that need only the target's predictions."""

from __future__ import annotations

import math
from abc import ABC
from typing import Annotated

import torch
from pydantic import Field

from msda_bench.api import Count, NonNegative, Positive, ValidationView, Validator, component
from msda_bench_builtin.validators.held_out import probabilities


class _OfTarget(Validator, ABC):
    tasks = ("classification",)
    needs_sources = False


@component
class Entropy(_OfTarget):
    """Minus the mean entropy of the predictions on the target, in nats; 0 for a model that is certain of everything.

    Morerio, Cavazza, Murino. Minimal-entropy correlation alignment for unsupervised deep domain adaptation. ICLR, 2018.
    """

    name = "entropy"

    def score(self, view: ValidationView) -> float:
        """Minus the mean of -sum_c p_c log p_c."""
        return -float(torch.special.entr(probabilities(view.target_outputs)).sum(-1).mean())


@component
class Infomax(_OfTarget):
    """Entropy of the target's mean prediction minus the mean entropy of its predictions, in nats.

    The information of a prediction about its example: 0 for a model that predicts the same for all, and at most log C,
    for one that is certain of everything and gives each of C classes as often. All of the target's training examples
    are one batch. SHOT and DECISION lower minus this, plus the pseudo-labels' loss.

    Shi, Sha. Information-theoretical learning of discriminative clusters for unsupervised domain adaptation. ICML,
    2012.
    """

    name = "infomax"

    def score(self, view: ValidationView) -> float:
        """H(mean p) - mean H(p), in [0, log C]."""
        p = probabilities(view.target_outputs)
        of_mean = torch.special.entr(p.mean(0)).sum()
        return float(of_mean - torch.special.entr(p).sum(-1).mean())


@component
class Bnm(_OfTarget):
    """Nuclear norm of the target's predictions, relative to its maximum: high if they are confident and diverse.

    For n predictions of C classes the norm is at most sqrt(n min(n, C)), reached if all are confident and every class
    is equally frequent; confident predictions of a single class give 1 / sqrt(C). All of the target's training examples
    form one batch, as in the study of Musgrave, Belongie and Lim (2022).

    Cui, Wang, Zhuo, Li, Huang, Tian. Towards discriminability and diversity: batch nuclear-norm maximization under
    label insufficient situations. CVPR, 2020.
    """

    name = "bnm"

    def score(self, view: ValidationView) -> float:
        """The sum of the singular values, as a share of the maximum, in (0, 1]."""
        p = probabilities(view.target_outputs)
        return float(torch.linalg.svdvals(p).sum()) / math.sqrt(len(p) * min(p.shape))


@component
class Mano(_OfTarget):
    """Matrix norm: the norm of the target's normalised outputs, high if the outputs of each example differ much.

    The n outputs z of C classes are normalised to sigma, and the score is (mean over n C of sigma^order)^(1 / order):
    1 / C if every sigma is 1 / C, and C^(-1 / order) if all are certain. Where the mean over n C of -log softmax(z) is
    above the threshold, sigma is the softmax. Where the model is less sure, the softmax would magnify errors of the
    outputs exponentially, and sigma is 1 + z + z^2 / 2, scaled to add up to 1; a constant that is added to all outputs
    of an example changes it.

    Parameters:
        order: of the norm; a large one counts only the largest values.
        threshold: in nats; 0 normalises all models by the softmax.

    Xie, Odonnat, Feofanov, Deng, Zhang, An. MaNo: exploiting matrix norm for unsupervised accuracy estimation under
    distribution shifts. NeurIPS, 2024.
    """

    name = "mano"

    order: Positive = 4.0
    threshold: NonNegative = 5.0

    def score(self, view: ValidationView) -> float:
        """The norm, as a share of that of a matrix of ones, in (0, 1)."""
        z = view.target_outputs.detach().double().cpu()
        log_softmax = z.log_softmax(-1)
        if float(-log_softmax.mean()) > self.threshold:
            positive = log_softmax.exp()
        else:
            positive = 1 + z + z.square() / 2
        normalised = positive / positive.sum(-1, keepdim=True)
        return float(normalised.pow(self.order).mean().pow(1 / self.order))


@component
class Mixval(_OfTarget):
    """How often a mixture of two target examples is predicted as the one that has the larger share.

    The prediction of share x_a + (1 - share) x_b should be that of x_a. The score is the mean of two accuracies: over
    pairs of one predicted class, and over pairs of two. If there are no pairs of one kind, as for a model that predicts
    a single class, it is the accuracy over the other kind.

    Each example is mixed with the next of its class (the first follows the last), and with the example as far from the
    end as it is from the start, if that is of another class.

    Parameters:
        share: of the first example.
        examples: the maximum number of target examples.

    Hu, Liang, Liew, Xue, Bai, Wang. Mixed samples as probes for unsupervised model selection in domain adaptation.
    NeurIPS, 2023.
    """

    name = "mixval"

    share: Annotated[float, Field(gt=0.5, lt=1)] = 0.55
    examples: Count = 2000

    def score(self, view: ValidationView) -> float:
        """The mean of the two accuracies, in [0, 1].

        Raises:
            ValueError: there are fewer than two examples.
        """
        # Examples are in the random order of the split, so pairs from the start and the end are random ones.
        predicted = view.target_outputs[: self.examples].argmax(-1)
        if len(predicted) == 1:
            raise ValueError("a mixture needs two examples of the target")
        rows = torch.arange(len(predicted), device=predicted.device)
        following = rows.clone()
        for label in set(predicted.tolist()):
            of_class = rows[predicted == label]
            following[of_class] = of_class.roll(-1)
        within = following != rows
        between = predicted != predicted.flip(0)
        pairs = [(rows[within], following[within]), (rows[between], rows.flip(0)[between])]
        accuracies = []
        for first, second in pairs:
            if len(first):
                mixed = view.mix(first, second, self.share).argmax(-1)
                accuracies.append((mixed == predicted[first]).double().mean())
        return float(torch.stack(accuracies).mean())


@component
class Snd(_OfTarget):
    """Soft neighbourhood density: whether target examples have many others with similar predictions, in nats.

    Predictions p are scaled to length 1, and P_ij = softmax over j != i of <p_i, p_j> / temperature is the similarity
    of examples i and j; the score is the mean entropy of the rows of P. It is at most the log of the number of others,
    which a model that predicts the same for all examples reaches.

    Parameters:
        temperature: of the softmax.
        examples: the maximum number of target examples, since the cost is quadratic.

    Saito, Kim, Teterwak, Sclaroff, Darrell, Saenko. Tune it the right way: unsupervised validation of domain adaptation
    via soft neighborhood density. ICCV, 2021.
    """

    name = "snd"

    temperature: Positive = 0.05
    examples: Count = 2000

    def score(self, view: ValidationView) -> float:
        """The mean entropy.

        Raises:
            ValueError: there are fewer than two examples.
        """
        # Examples are in the random order of the split, so the first ones are a random sample.
        p = probabilities(view.target_outputs[: self.examples])
        if len(p) == 1:
            raise ValueError("a neighbourhood needs two examples of the target")
        p = p / torch.linalg.vector_norm(p, dim=-1, keepdim=True)
        near = (p @ p.T / self.temperature).fill_diagonal_(-torch.inf).softmax(-1)
        return float(torch.special.entr(near).sum(-1).mean())
