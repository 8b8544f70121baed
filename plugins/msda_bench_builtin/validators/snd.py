"""Soft neighbourhood density."""

from __future__ import annotations

import torch

from msda_bench.api import Count, Positive, ValidationView, Validator, component
from msda_bench_builtin.validators.losses import probabilities


@component
class Snd(Validator):
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
    tasks = ("classification",)
    needs_sources = False

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
