"""The same training by others: skada's deep methods, and the code of DARN's authors in a clone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.reference import Domain, Networks, amazon_networks, table_networks
from benchmarks.synthetic import COLUMNS, WORDS, AmazonLike, TableLike
from benchmarks.workload import dense

Work: TypeAlias = Literal["table", "amazon"]
TRAIN = 200
"""Training examples of each domain."""


class Setting(NamedTuple):
    """What all train: the network's widths, its dropout, the batch of a domain, mu, gamma, and the optimiser."""

    widths: tuple[int, ...]
    dropout: float
    batch: int
    mu: float
    gamma: float
    optimizer: type[torch.optim.Optimizer]
    lr: float

    @property
    def steps(self) -> int:
        """In an epoch over the pooled sources."""
        return 3 * TRAIN // self.batch


SETTINGS: dict[Work, Setting] = {
    "table": Setting((COLUMNS, 64), 0.2, 32, 0.1, 1.0, torch.optim.Adam, 0.003),
    "amazon": Setting((WORDS, 1000, 500, 100), 0.7, 20, 0.01, 0.9, torch.optim.Adadelta, 1.0),
}


def domains(work: Work) -> list[Domain]:
    """The three sources and the target, dense."""
    dataset = TableLike(train=TRAIN) if work == "table" else AmazonLike(train=TRAIN)
    return [dense(dataset, name) for name in dataset.domains]


class _Module(nn.Module):
    def __init__(self, networks: Networks) -> None:
        super().__init__()
        self.features, self.predictor = networks.features, networks.predictor

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:  # noqa: ARG002 - skada passes it
        outputs: Tensor = self.predictor(self.features(x))
        return outputs


class _Critic(nn.Module):
    """A linear critic behind skada's reversal. The default one ends with a softmax of one number, which is always 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        from skada.deep.modules import GradientReversalLayer

        return self.linear(GradientReversalLayer.apply(x, 1.0)).squeeze(-1)


def skada_train(work: Work, method: Literal["DANN", "CORAL"]) -> Callable[[int], None]:
    """Trains a deep method of skada on the pooled sources and the target, for whole epochs."""
    from skada.deep import DANN, DeepCoral

    setting, (*sources, target) = SETTINGS[work], domains(work)
    x = np.concatenate([*(source.x for source in sources), target.x])
    y = np.concatenate([*(source.y for source in sources), np.full(len(target.y), -1)])
    domain = np.repeat([1, 2, 3, -4], TRAIN)

    def run(steps: int) -> None:
        torch.manual_seed(0)
        networks = table_networks(COLUMNS) if work == "table" else amazon_networks()
        options: dict[str, Any] = {
            "layer_name": "features",
            "reg": setting.mu,
            "batch_size": setting.batch,
            "max_epochs": steps // setting.steps,
            "optimizer": setting.optimizer,
            "lr": setting.lr,
            "train_split": None,
            "verbose": 0,
        }
        if method == "DANN":
            critic = _Critic(setting.widths[-1])
            net = DANN(_Module(networks), domain_classifier=critic, domain_criterion=nn.BCEWithLogitsLoss(), **options)
        else:
            net = DeepCoral(_Module(networks), **options)
        net.fit(x, y, sample_domain=domain)
        assert len(net.history) == steps // setting.steps
        assert np.isfinite(net.history[:, "train_loss"]).all()

    return run


def authors_train(clone: Path, work: Work, method: Literal["DANN", "DARN"]) -> Callable[[int], None]:
    """Trains with the model and the loader of DARN's authors, in the loop of their `main.py`.

    Args:
        clone: of https://github.com/junfengwen/DARN.
        work: the data and the setting.
        method: DANN pools the sources.
    """
    sys.path.insert(0, str(clone))
    from load_data import multi_data_loader  # type: ignore[import-not-found]
    from model import DarnMLP  # type: ignore[import-not-found]

    setting, (*sources, target) = SETTINGS[work], domains(work)
    xs, ys = [source.x for source in sources], [source.y for source in sources]
    if method == "DANN":
        xs, ys = [np.concatenate(xs)], [np.concatenate(ys)]
    configs = {
        "input_dim": setting.widths[0],
        "hidden_layers": [*setting.widths[1:]],
        "num_classes": 2,
        "drop_rate": setting.dropout,
        "mode": "L2",
        "mu": setting.mu,
        "gamma": setting.gamma,
        "num_src_domains": len(xs),
    }

    def run(steps: int) -> None:
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002 - what their loader draws from
        model = DarnMLP(configs).train()
        optimizer = setting.optimizer(model.parameters(), lr=setting.lr)  # type: ignore[call-arg]
        done, loss_sum = 0, 0.0
        while done < steps:
            for batches, labels in multi_data_loader(xs, ys, setting.batch):
                inputs = [torch.tensor(batch) for batch in batches]
                outputs = [torch.tensor(label) for label in labels]
                unlabelled = torch.tensor(target.x[np.random.choice(TRAIN, setting.batch), :])  # noqa: NPY002
                optimizer.zero_grad()
                loss, _ = model(inputs, outputs, unlabelled)
                loss.backward()
                optimizer.step()
                loss_sum += loss.item()
                done += 1
                if done == steps:
                    break
        assert np.isfinite(loss_sum)

    return run
