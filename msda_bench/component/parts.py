"""A run's parts as plain functions of tensors, so that the same step can be stacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from msda_bench.component.domain_data import Strength
from msda_bench.component.step import Batch, Carried, Examples, Pass
from msda_bench.component.weighing import Aggregate
from msda_bench.functional.random import split_key
from msda_bench.layers.step_key import StepKey


@dataclass(frozen=True, eq=False)
class Modules:
    """The modules of a run, by part, and tensors that replace theirs.

    Attributes:
        modules: features, predictor and critic.
        tensors: for each part, by name; the module keeps its own if none is given.
    """

    modules: Mapping[str, nn.Module]
    tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Each part as a function of its inputs; see `Parts.critic`."""
        functions: dict[str, Callable[..., Any]] = {}
        for part, module in self.modules.items():
            functions[part] = partial(_call, module, self.tensors.get(part, {}))
        return functions

    def live(self) -> dict[str, Tensor]:
        """The parameters of all parts, as `part.name`."""
        tensors: dict[str, Tensor] = {}
        for part, module in self.modules.items():
            given = self.tensors.get(part, {})
            for name, own in module.named_parameters():
                tensors[f"{part}.{name}"] = given.get(name, own)
        return tensors

    def having(self, tensors: Mapping[str, Tensor]) -> Modules:
        """These modules with tensors named `part.name` instead of their own."""
        given = {part: dict(self.tensors.get(part, {})) for part in self.modules}
        for full, value in tensors.items():
            part, _, name = full.partition(".")
            given[part][name] = value
        return Modules(self.modules, given)


def _call(module: nn.Module, tensors: Mapping[str, Tensor], *inputs: Any) -> Any:
    """The output of a module or a named submodule, never bfloat16, which is too coarse for risks, gaps and weights."""
    if inputs and isinstance(inputs[0], str):
        path, *inputs = inputs  # type: ignore[assignment]
        module = module.get_submodule(path)
        prefix = f"{path}."
        tensors = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    outputs = functional_call(module, dict(tensors), tuple(inputs)) if tensors else module(*inputs)
    if isinstance(outputs, Tensor) and outputs.dtype == torch.bfloat16:
        return outputs.float()
    return outputs


def same_view(x: Examples, strength: Strength, key: Tensor) -> Examples:  # noqa: ARG001 - as `Dataset.view`
    """The examples unchanged."""
    return x


@dataclass(frozen=True)
class Parts:
    """A run's parts as plain functions of tensors.

    Attributes:
        features: examples to features (n, d).
        predictor: features to outputs (n, outputs).
        critic: the module that `Scheme.build` made, as a function. With a submodule's path first, that submodule:
            `critic("heads.2", features)` of a critic `nn.ModuleDict({"heads": nn.ModuleList(...)})`.
        loss: outputs (n, outputs) and labels (n,) to losses (n,).
        aggregate: (risks, gaps, state) to `Aggregate`; the aggregator with its mu.
        mu: weight of the discrepancy.
        view: examples, "weak" or "strong", and a (2,) key to the same examples in another view (`Dataset.view`).
        modules: run by the functions; for `weights`, `with_weights`, `with_offsets` and `with_key`.
    """

    features: Callable[[Examples], Tensor]
    predictor: Callable[[Tensor], Tensor]
    critic: Callable[..., Any]
    loss: Callable[[Tensor, Tensor], Tensor]
    aggregate: Callable[[Tensor, Tensor, Tensor], Aggregate]
    mu: float | Tensor
    view: Callable[[Any, Any, Tensor], Any] = same_view
    modules: Modules = field(default_factory=lambda: Modules({}), repr=False)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The current parameters of all parts by name, such as "features.0.weight", without gradients.

        They change in place with the next update. The engine copies whatever a scheme returns to be carried, so `carry`
        may return them directly.
        """
        return {name: value.detach() for name, value in self.modules.live().items()}

    def with_weights(self, weights: Carried) -> Parts:
        """The same parts with other weights, such as a teacher's; no gradient reaches these.

        Args:
            weights: by name as in `weights`; missing ones keep their values, and other names are ignored, so that a
                scheme that carries a teacher along with other tensors may pass all of them.

        Raises:
            ValueError: no name is that of a weight.
        """
        known = sorted(self.modules.live().keys() & weights.keys())
        if not known:
            raise ValueError(f"none of these names a weight of the parts: {', '.join(weights) or 'there are none'}")
        return self._with({name: weights[name].detach() for name in known})

    def with_offsets(self, offsets: Carried) -> Parts:
        """The same parts with tensors added to weights; a gradient reaches the weights as if nothing were added.

        Weights change by updates only. With carried offsets a scheme moves them in other ways, such as to an average of
        several models.

        Args:
            offsets: by name as in `weights`; missing ones change nothing, and other names are ignored.
        """
        live = self.modules.live()
        return self._with({name: live[name] + offsets[name] for name in offsets if name in live})

    def with_key(self, key: Tensor) -> Parts:
        """The same parts, whose dropout and other random layers draw from this (2,) key instead of the phase's."""
        names = []
        for part, module in self.modules.modules.items():
            for name, inner in module.named_modules(prefix=part):
                if isinstance(inner, StepKey):
                    names.append(f"{name}.key")
        index = torch.arange(len(names), dtype=torch.int32, device=key.device)
        keys = split_key(key, index).unbind()
        return self._with(dict(zip(names, keys, strict=True)))

    def _with(self, tensors: Mapping[str, Tensor]) -> Parts:
        """The same parts with tensors named `part.name` instead of their own."""
        modules = self.modules.having(tensors)
        functions: dict[str, Any] = modules.functions()
        return replace(self, modules=modules, **functions)

    def forward(self, batch: Batch) -> Pass:
        """Features and risks of all domains in one pass.

        If each group draws m batches in a step (`training: {epoch: equal}` and groups of m domains), the target's
        features are repeated m times: no mean changes, and a discrepancy that pairs rows finds equally many on both
        sides.
        """
        k, size = batch.y.shape
        features = self.features(batch.x)
        labelled = features[: k * size]
        losses = self.loss(self.predictor(labelled), batch.y.reshape(-1))
        sources = labelled.reshape(k, size, features.shape[-1])
        risks = losses.view(k, size).mean(1)
        if len(batch.x) == k * size:
            return Pass(sources, None, risks)
        target = features[k * size :]
        if k and len(target) < size:
            target = target.repeat(size // len(target), 1)
        return Pass(sources, target, risks)
