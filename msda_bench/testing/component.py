"""What every component promises, whatever its kind, and the assertions that contracts are made of."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import sys
import unittest
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from msda_bench.api import Backbone, Component, DataError, Dataset, Files, Metric, SchemeBase, Task, Validator
from msda_bench.errors import message_of
from msda_bench.plugins import Entry
from msda_bench.plugins.process_state import restored
from msda_bench.plugins.registry import fault_of
from msda_bench.testing import toy
from msda_bench.testing.broken import BrokenContractError, require

RUNS = 3
"""Number of runs in the stacks under test."""
TOLERANCE = 1e-5
"""Largest difference, absolute and relative, between two float32 computations of one value."""
_GENERATOR = "torch's global random generator"
_INITIAL = "draw initial weights only from torch's global random generator, which is seeded for each run"
_IN_MODULES = (
    "for dropout use msda_bench.api.Dropout in place of torch.nn.Dropout; for other random numbers "
    "msda_bench.functional.uniform with the key of a msda_bench.api.StepKey module"
)
_BRANCHES = (
    "The contract asks for no Python branch on tensor values, no .item() and no boolean indexing; a component that "
    "needs them sets `stackable = False`"
)
_FUNCTIONS = (
    "The contract asks for msda_bench.functional.reverse_gradient to reverse a gradient, and for any other "
    "torch.autograd.Function to have a forward without ctx, a setup_context and `generate_vmap_rule = True`"
)


class ComponentContract:
    """Base of all contracts; subclass the one for your component's kind.

    Each failure names the component, what broke and what the contract asks for.

    Attributes:
        component: the component under test.
        draws: advice for messages on how components of this kind draw random numbers.
    """

    component: ClassVar[Component]
    draws: ClassVar[str] = _IN_MODULES

    @property
    def who(self) -> str:
        """The component's kind and name, for messages."""
        return f"{self.component.kind} {self.component.name!r}"

    def holds(self, kept: object, failure: str) -> None:
        """Fails, naming the component, if `kept` is false."""
        require(kept, f"{self.who}: {failure}")

    def applies(self, here: object, otherwise: str) -> None:
        """Skips the clause if `here` is false."""
        if not here:
            raise unittest.SkipTest(f"{self.who} {otherwise}")

    def is_sound(
        self,
        actual: object,
        shape: tuple[int, ...],
        what: str,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Fails unless `actual` is a tensor of this shape and, if given, this dtype, without NaN or infinity."""
        if not isinstance(actual, Tensor):
            kind = type(actual).__name__
            raise BrokenContractError(f"{self.who}: the type of {what} is {kind}; the contract asks for a tensor")
        self.holds(
            actual.shape == shape, f"the shape of {what} is {tuple(actual.shape)}; the contract asks for {shape}"
        )
        failure = f"NaN or infinity in {what}: {brief(actual)}; the contract asks for finite numbers"
        self.holds(actual.isfinite().all(), failure)
        right = dtype in {None, actual.dtype}
        self.holds(right, f"the dtype of {what} is {actual.dtype}; the contract asks for {dtype}")

    def is_finite_float(self, actual: float, what: str, why: str = "") -> None:
        """Fails unless `actual` is a Python float other than NaN and infinity."""
        kind = type(actual).__name__
        self.holds(isinstance(actual, float), f"{what} is a {kind}; the contract asks for a float")
        self.holds(math.isfinite(actual), f"{what} is {actual}; the contract asks for a finite one{why}")

    def on_simplex(self, weights: Tensor, k: int, what: str) -> None:
        """Fails unless `weights` is (k,), non-negative and sums to 1."""
        self.is_sound(weights, (k,), what)
        negative = f"negative entry in {what}: {brief(weights)}; the contract asks for the simplex"
        self.holds(weights.min() >= 0, negative)
        total = weights.sum().item()
        sums = f"the sum of {what} is {total:.6g}; the contract asks for the simplex, a sum of 1"
        self.holds(abs(total - 1) <= TOLERANCE, sums)

    def close(
        self,
        actual: Tensor,
        expected: Tensor,
        failure: str,
        tolerance: float = TOLERANCE,
    ) -> None:
        """Fails unless both are equal up to rounding; bit for bit with a tolerance of 0."""
        same = actual.shape == expected.shape and torch.allclose(actual, expected, rtol=tolerance, atol=tolerance)
        self.holds(same, f"{failure}: {brief(actual)} against {brief(expected)}")

    def gradients(
        self,
        objective: Tensor,
        of: Mapping[str, Tensor],
        what: str,
        where: str = "",
    ) -> list[Tensor]:
        """The objective's gradients with respect to tensors, by name; fails unless each gets a finite one."""
        failure = f"no gradient flows from {what}{where}; the contract asks for one (was it detached?)"
        self.holds(objective.requires_grad, failure)
        gradients = torch.autograd.grad(objective, [*of.values()], allow_unused=True) if of else ()
        for name, gradient in zip(of, gradients, strict=True):
            self.holds(gradient is not None, f"no gradient reaches {name}{where}, so nothing would be learned")
            self.is_sound(gradient, gradient.shape, f"the gradient of {what} with respect to {name}{where}")
        return [*gradients]

    @contextlib.contextmanager
    def leaves_alone(self, *, torch_generator: bool = True) -> Iterator[None]:
        """Fails if the block changes something that all runs share, such as a global random generator.

        The change is undone, so that one fault is reported only once.

        Args:
            torch_generator: whether to watch torch's global generator too.
        """
        with restored() as changed:
            yield
        faults = [what for what in changed if torch_generator or what != _GENERATOR]
        advice = self.draws if torch_generator else _INITIAL
        how = f" ({advice})" if any("generator" in what for what in faults) else ""
        shared = "which all runs of the process share; the contract asks to leave it alone"
        self.holds(not faults, f"it changed {' and '.join(faults)}, {shared}{how}")

    def reaches_every_parameter(
        self,
        module: nn.Module,
        objective: Tensor,
        where: str = "",
    ) -> None:
        """Fails unless each parameter of the module gets a finite gradient from the objective."""
        parameters = {f"parameter {name}": parameter for name, parameter in module.named_parameters()}
        if parameters:
            self.gradients(objective, parameters, "the outputs", where)

    def same_weights(self, build: Callable[[], nn.Module]) -> None:
        """Fails unless two builds give equal weights, drawn only from torch's global generator."""
        with self.leaves_alone(torch_generator=False):
            first = build().state_dict()
            second = build().state_dict()
        for name, value in first.items():
            self.close(second[name], value, f"built twice with one seed, {name} differs", 0)

    def must_stack(self) -> None:
        """Skips the clause if the component declares that it cannot be stacked."""
        self.applies(self.component.stackable, "declares `stackable = False`")

    def must_replay(self) -> torch.device:
        """The GPU on which to check a `capturable` component; skips the clause for others, and without a GPU."""
        self.applies(self.component.capturable, "does not declare `capturable = True`")
        device = toy.gpu()
        self.applies(device, "declares `capturable = True`, which takes a GPU to check")
        return cast("torch.device", device)

    def vmapped(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """The results of a function for all runs at once, as the engine calls it on a GPU.

        Results and tensor inputs, alone or in a dict, have a leading axis of runs. All runs share the other inputs.
        """
        axes = tuple(0 if isinstance(one, Tensor | dict) else None for one in inputs)
        try:
            return torch.func.vmap(function, axes)(*inputs)
        except RuntimeError as error:
            raise BrokenContractError(f"{self.who} {self.not_stacked(message_of(error, 300))}") from error

    def not_stacked(self, why: str) -> str:
        """Says that runs cannot be stacked, why in torch's words, and what the contract asks for."""
        asked = _BRANCHES
        if "random operation" in why:
            asked = f"The contract asks to draw nothing from torch's global random generator; {self.draws}"
        elif "setup_context" in why or "generate_vmap_rule" in why:
            asked = _FUNCTIONS
        return f"cannot be stacked with other runs: {why}. {asked}"

    def same_in_a_stack(
        self,
        modules: Sequence[nn.Module],
        inputs: Sequence[Sequence[Any]],
        what: str,
    ) -> None:
        """Fails unless each run's module gives its outputs, up to rounding, in one stack with the others, too.

        Args:
            modules: one for each run.
            inputs: the inputs of each.
            what: the outputs, in a message.
        """
        parameters, buffers = torch.func.stack_module_state(list(modules))
        skeleton = copy.deepcopy(modules[0])  # a module that holds a weight twice may keep the stacked one

        def call(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *inputs: Any) -> Any:
            return torch.func.functional_call(skeleton, (parameters, buffers), inputs)

        joined = [None if column[0] is None else torch.stack(column) for column in zip(*inputs, strict=True)]
        together = self.vmapped(call, parameters, buffers, *joined)
        for outputs, module, own in zip(together, modules, inputs, strict=True):
            self.close(outputs, module(*own), f"stacking changes a run's {what}", 1e-4)

    def remade(self) -> Component:
        """The component made from its own parameters, as a suite makes it."""
        return Entry(self.component.kind, type(self.component), "", "").create(self.component.params())

    def test_is_described(self) -> None:
        """It has a name that a suite can use, a version of at least 1 and a docstring."""
        cls = type(self.component)
        fault = fault_of(cls, Component)
        require(fault is None, f"{cls.__name__} {fault}")
        described = cls.__doc__ or sys.flags.optimize >= 2  # python -OO drops docstrings
        self.holds(described, "it has no docstring; its first line is what `msda-bench plugins` shows")

    def test_parameters_round_trip(self) -> None:
        """A component made from its own parameters, as a suite makes it, equals the original."""
        again = self.remade()
        self.holds(again == self.component, f"made from its own params() {self.component.params()} it differs: {again}")

    def test_pickles(self) -> None:
        """Pickling does not change it, so that it can be sent to another process."""
        again = pickle.loads(pickle.dumps(self.component))  # noqa: S301 - bytes made in this very line
        self.holds(again == self.component, f"pickling changes it: {again}")


class FilesContract(ComponentContract):
    """Promises of components with files.

    Attributes:
        files: how to find its files; the data folders of the environment when None. Tests that need them are skipped
            with a reason if this machine does not have them.
    """

    component: ClassVar[Dataset | Backbone]
    files: ClassVar[Files | None] = None

    def reach(self) -> Files:
        """The component's files; skips the test if one is missing."""
        from msda_bench.data import LocalFiles

        files = self.files or LocalFiles(dataset=self.component.name)
        for file in self.component.files:
            try:
                files.path(file)
            except DataError as error:
                raise unittest.SkipTest(f"{self.who} cannot be checked here: {error}") from error
        return files


class Call(NamedTuple):
    """One call of a component, as the engine makes it.

    Attributes:
        outputs: makes the call and returns the results by name.
        given: the input tensors by name.
    """

    outputs: Callable[[], Mapping[str, Tensor]]
    given: Mapping[str, Tensor]

    def copies(self) -> dict[str, Tensor]:
        """Copies of the input tensors by name."""
        return {name: tensor.detach().clone() for name, tensor in self.given.items()}


class CalledContract(ComponentContract, ABC):
    """Promises of components that are called with tensors."""

    @abstractmethod
    def calls(self) -> Iterator[Call]:
        """Calls that must not change the process or their input; each has its own modules and tensors."""

    def test_leaves_the_process_alone(self) -> None:
        """It changes no global random generator, default dtype, number of threads or gradient mode."""
        for call in self.calls():
            with self.leaves_alone():
                call.outputs()

    def test_input_is_not_changed(self) -> None:
        """It does not change its input tensors in place."""
        for call in self.calls():
            kept = call.copies()
            call.outputs()
            for what, then in kept.items():
                failure = f"it changed its input, the {what}, in place; the contract asks for a new tensor"
                self.close(call.given[what].detach(), then, failure, 0)


class RepeatedContract(CalledContract):
    """Promises of components whose output depends only on their input."""

    def test_is_deterministic(self) -> None:
        """The same input gives the same output, bit for bit."""
        for call in self.calls():
            kept = call.copies()
            first = call.outputs()
            for what, then in kept.items():
                call.given[what].data.copy_(then)
            second = call.outputs()
            for what, output in first.items():
                self.close(second[what], output, f"a second call with the same input changes the {what}", 0)


class TaskContract(RepeatedContract):
    """Promises of components that list the kinds of task they support: schemes, validators and metrics."""

    component: ClassVar[SchemeBase | Validator | Metric]

    def tasks(self) -> list[Task]:
        """One task of each kind that it supports."""
        return [task for task in toy.TASKS if task.kind in self.component.tasks]


def brief(values: Tensor) -> str:
    """The first eight numbers of a tensor, for a message."""
    shown = ", ".join(f"{value:.6g}" for value in values.detach().flatten()[:8].tolist())
    return f"[{shown}{', ...' if values.numel() > 8 else ''}]"
