"""Optimisers over a run's parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from msda_bench.api import BagLinear, Phase
from msda_bench.component.backbone import Trunk
from msda_bench.engine import machine
from msda_bench.engine.tensors import has_flat_view
from msda_bench.suite import protocol


class _Optimizer(Protocol):
    def zero_grad(self) -> None: ...

    def step(self) -> object: ...

    def set_lr(self, lr: float) -> None:
        """The learning rate of the steps to come."""
        ...


class _Decaying(_Optimizer, Protocol):
    """An optimiser that decays weights."""

    def decay(self, offsets: Mapping[int, Tensor]) -> None: ...


class Trainable(NamedTuple):
    """Tensors that an optimiser changes.

    Attributes:
        parameters: tensors.
        bags: bag-of-words layers whose weight is updated word by word.
        trunk: the parameters of a pretrained network among them.
    """

    parameters: list[Tensor]
    bags: list[BagLinear]
    trunk: list[Tensor] = []  # noqa: RUF012 - never modified

    @property
    def learning(self) -> list[Tensor]:
        """The tensors that get a gradient, including the bags' weights."""
        weights = [*self.parameters, *(bag.weight for bag in self.bags)]
        return [value for value in weights if value.requires_grad]

    def by_rate(self, trunk: float) -> list[tuple[float, Trainable]]:
        """One part for each learning rate, if the pretrained network's is multiplied by a factor."""
        if trunk == 1 or not self.trunk:
            return [(1.0, self)]
        apart = {id(value) for value in self.trunk}
        rest = [value for value in self.parameters if id(value) not in apart]
        return [(trunk, Trainable(self.trunk, [])), (1.0, Trainable(rest, self.bags))]

    @classmethod
    def of(
        cls,
        module: nn.Module,
        training: protocol.TrainingConfig,
        *,
        sparse: bool,
    ) -> Trainable:
        """A module's parameters.

        With examples in sparse rows compiled Adadelta updates the weights of occurring words only, unless other words'
        weights decay or the norm needs the whole gradient.
        """
        optimizer = training.optimizer
        lazy = sparse and training.clip is None and _fast(optimizer.name, optimizer.params)
        bags: list[BagLinear] = []
        trunk: list[Tensor] = []
        for part in module.modules():
            if isinstance(part, Trunk):
                trunk.extend(part.parameters())
            elif isinstance(part, BagLinear) and lazy and machine.can_compile():
                bags.append(part)
        apart = {id(bag.weight) for bag in bags}
        rest: list[Tensor] = [value for value in module.parameters() if id(value) not in apart]
        return cls(rest, bags, trunk)


class PhaseOptimizers:
    """Optimisers with which each phase trains its own parts (features, predictor, critic).

    Parts that the same phases train at the same learning rate share an optimiser: a scheme of one phase has one for
    all. Of a stack, `runs` is the size, the leading dimension of all its tensors.
    """

    def __init__(
        self,
        training: protocol.TrainingConfig,
        parts: Mapping[str, Trainable],
        phases: Sequence[Phase],
        runs: int | None = None,
    ) -> None:
        self._clip = training.clip
        self._runs = runs
        self._parts = parts
        factors = training.lr_factors
        optimizer = training.optimizer
        shared: dict[tuple[frozenset[str], float], list[Trainable]] = {}
        for name, whole in parts.items():
            trained_in = frozenset(phase.name for phase in phases if name in phase.trains)
            of_part = getattr(factors, name, 1.0)
            for factor, part in whole.by_rate(factors.trunk):
                shared.setdefault((trained_in, factor * of_part), []).append(part)
        self._inputs = {phase.name: self._inputs_of(phase) for phase in phases}
        self._optimizers: list[tuple[frozenset[str], float, _Optimizer]] = []
        for (trained_in, factor), group in shared.items():
            lr = optimizer.params["lr"] * factor
            params = optimizer.params | {"lr": lr}
            for one in _optimizers(optimizer.name, params, group):
                self._optimizers.append((trained_in, lr, one))

    def scale(self, share: float) -> None:
        """Sets every learning rate to a share of the protocol's."""
        for _, lr, optimizer in self._optimizers:
            optimizer.set_lr(lr * share)

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for _, _, optimizer in self._optimizers:
            optimizer.zero_grad()

    def inputs(self, phase: Phase) -> list[Tensor] | None:
        """The inputs of a phase's backward pass, so that it skips the other parts; None for all."""
        return self._inputs[phase.name]

    def _inputs_of(self, phase: Phase) -> list[Tensor] | None:
        learning = {name: part.learning for name, part in self._parts.items()}
        if not any(values for name, values in learning.items() if name not in phase.trains):
            return None
        return [value for name in phase.trains for value in learning[name]] or None

    def step(self, phase: Phase, offsets: Mapping[int, Tensor]) -> None:
        """Updates the parts that a phase trains.

        `offsets` are what the scheme adds to weights, by their `id`, if weight decay should act on the sums.
        """
        if self._clip is not None:
            trained = [value for name in phase.trains for value in self._parts[name].parameters]
            clip_gradients(trained, self._clip, self._runs)
        for phases, _, optimizer in self._optimizers:
            if phase.name not in phases:
                continue
            if offsets:  # there are some only where weights decay
                cast("_Decaying", optimizer).decay(offsets)
            optimizer.step()


@torch.no_grad()
def clip_gradients(parameters: Sequence[Tensor], most: float, runs: int | None) -> None:
    """Scales each run's gradients down so that their joint norm is at most `most`; `runs` as in `PhaseOptimizers`."""
    gradients = [value.grad for value in parameters if value.grad is not None]
    if not gradients:
        return
    flat_gradients = [gradient.reshape(runs or 1, -1) for gradient in gradients]
    norms = torch.stack([torch.linalg.vector_norm(gradient, dim=1) for gradient in flat_gradients])
    norm = torch.linalg.vector_norm(norms, dim=0)
    share = (most / (norm + 1e-6)).clamp(max=1)
    if runs is None:
        torch._foreach_mul_(gradients, share.squeeze())
        return
    shares = []
    for gradient in gradients:
        ones = (1,) * (gradient.dim() - 1)
        shares.append(share.view(-1, *ones))
    torch._foreach_mul_(gradients, shares)


def _fast(name: str, params: Mapping[str, Any]) -> bool:
    """Whether weights without a gradient do not change and a compiled step exists: Adadelta without weight decay."""
    return name == "adadelta" and not params["weight_decay"]


def _optimizers(name: str, params: Mapping[str, Any], parts: Sequence[Trainable]) -> Iterator[_Optimizer]:
    """Optimisers for the parameters with a compiled step, for the others, and for each bag."""
    compiled: list[Tensor] = []
    plain: list[Tensor] = []
    bags: list[BagLinear] = []
    for part in parts:
        bags += part.bags
        for value in part.parameters:
            fitting = compiled if _in_one_pass(name, params, value) else plain
            fitting.append(value)
    if compiled:
        yield _one_pass(name, params, compiled)
    if plain:
        yield _dense(name, params, plain)
    for bag in bags:
        from msda_bench.engine.compiled import CompiledBag

        yield CompiledBag(bag, params)


def _in_one_pass(name: str, params: Mapping[str, Any], parameter: Tensor) -> bool:
    """Whether there is a step in one or two passes for a parameter: on a GPU of Adadelta alone."""
    device = parameter.device
    if not has_flat_view(parameter) or parameter.dtype not in {torch.float32, torch.float64}:
        return False
    if name in {"adam", "adamw", "sgd"}:
        return machine.compiles_for(device)
    return _fast(name, params) and (machine.compiles_for(device) or machine.fuses_for(device))


def _one_pass(name: str, params: Mapping[str, Any], parameters: list[Tensor]) -> _Optimizer:
    if parameters[0].is_cuda:
        from msda_bench.engine.fused import FusedAdadelta

        return FusedAdadelta(parameters, params)
    from msda_bench.engine.compiled import CompiledAdadelta, CompiledAdam, CompiledSgd

    if name == "sgd":
        return CompiledSgd(parameters, params)
    if name == "adadelta":
        return CompiledAdadelta(parameters, params)
    return CompiledAdam(parameters, params, decoupled=name == "adamw")


class _Dense:
    """An optimiser of torch."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self.zero_grad = optimizer.zero_grad
        self.step = optimizer.step

    def set_lr(self, lr: float) -> None:
        for group in self._optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr

    @torch.no_grad()
    def decay(self, offsets: Mapping[int, Tensor]) -> None:
        """Weight decay's share of the offsets in the coming step, beside that of the weights themselves."""
        decoupled = isinstance(self._optimizer, torch.optim.AdamW)
        for group in self._optimizer.param_groups:
            lr = group["lr"]
            decay = group["weight_decay"]
            for value in group["params"]:
                if value.grad is None or id(value) not in offsets:
                    continue
                offset = offsets[id(value)]
                if not decoupled:
                    value.grad.add_(offset, alpha=decay)
                elif isinstance(lr, Tensor):
                    value.sub_(offset * (lr * decay))
                else:
                    value.sub_(offset, alpha=lr * decay)


def _dense(name: str, params: Mapping[str, Any], parameters: list[Tensor]) -> _Optimizer:
    given = dict(params)
    if name in {"adam", "adamw"}:
        given["betas"] = given.pop("beta1"), given.pop("beta2")
    makers: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "adadelta": torch.optim.Adadelta,
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "sgd": torch.optim.SGD,
    }
    device = parameters[0].device
    if not machine.records_updates(device):
        return _Dense(makers[name](parameters, **given, foreach=True))
    given["lr"] = torch.full((), given["lr"], device=device)
    if name != "adadelta":
        given["fused"] = True
    if name != "sgd":
        given["capturable"] = True
    optimizer = makers[name](parameters, **given)
    if name == "sgd" and given["momentum"]:
        for value in parameters:  # torch's fused SGD fails where one has its first gradient later than the others
            optimizer.state[value]["momentum_buffer"] = torch.zeros_like(value)
    return _Dense(optimizer)
