"""A multi-layer perceptron, for bags of words and other vectors."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import nn

from msda_bench.api import Backbone, BagLinear, Count, Dropout, Files, InputSpec, Network, Rate, Task, component


@component
class Mlp(Backbone):
    """Fully connected: input - hidden... with ReLU, dropout before every hidden layer; linear predictor.

    The defaults are the paper's network for Amazon, 5000-1000-500-100 and 100-2, with dropout 0.7 on the input and on
    every hidden layer's input (Wen et al. 2020, section 5.1). Takes sparse bags of words, or dense input of any shape.
    """

    name = "mlp"

    hidden: tuple[Count, ...] = (1000, 500, 100)
    dropout: Rate = 0.7

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The network; its features are the last hidden layer, or the input itself without hidden layers."""
        widths = [math.prod(input.shape), *self.hidden]
        layers: list[nn.Module] = [] if input.sparse else [nn.Flatten()]
        for number, (narrow, wide) in enumerate(pairwise(widths)):
            linear = BagLinear(narrow, wide) if number == 0 and input.sparse else nn.Linear(narrow, wide)
            layers += [Dropout(self.dropout), linear, nn.ReLU()]
        return Network(nn.Sequential(*layers), nn.Linear(widths[-1], task.outputs), widths[-1])
