"""The contract of backbones."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from msda_bench.api import Backbone, Embedding, InputSpec, Network, PluginError, Task
from msda_bench.component.backbone import network_input
from msda_bench.errors import BlamedError
from msda_bench.functional import SparseRows
from msda_bench.plugin_errors import package_of, plugin_errors
from msda_bench.testing import toy
from msda_bench.testing.broken import BrokenContractError
from msda_bench.testing.component import RUNS, Call, CalledContract, FilesContract

_ROWS = 5
_TEXTS = ["A text.", "Another, which is longer.", "", "Two words", "Zwölf Boxkämpfer jagen Viktor."]


class Case(NamedTuple):
    """A task and the input that the network receives: vectors if the backbone has an embedding."""

    task: Task
    input: InputSpec

    def __str__(self) -> str:
        sparse = "sparse " if self.input.sparse else ""
        return f"a {self.task.kind} of {sparse}input {self.input.shape}"


class BackboneContract(FilesContract, CalledContract):
    """What every backbone promises.

    Attributes:
        inputs: the inputs to try. The backbone must accept at least one and raise `PluginError` for the others.
    """

    component: ClassVar[Backbone]
    inputs: ClassVar[tuple[InputSpec, ...]] = (
        InputSpec((12,)),
        InputSpec((12,), sparse=True, texts=True),
        InputSpec((3, 16, 16)),
        InputSpec((1, 32, 32)),
        InputSpec((3, 24)),
        InputSpec((6, 24), mask=3),
    )

    def network(self, case: Case, seed: int = 0) -> Network:
        """The network, with initial weights drawn from the seed."""
        files = self.reach()
        with toy.seeded(seed):
            parts = self.component.build(case.task, case.input, files)
        asked = "the contract asks for Network(features, predictor, dim)"
        self.holds(len(parts) == 3, f"it built {len(parts)} parts; {asked}")
        return Network(*parts)

    def cases(self) -> list[Case]:
        """The tasks and inputs that the backbone accepts."""
        cases = [case for task in toy.TASKS for spec in self.inputs for case in self._accepted(Case(task, spec))]
        self.holds(cases, f"it accepts none of the inputs {self.inputs}; set `inputs` to some that suit it")
        return cases

    def embeddings(self) -> Iterator[tuple[InputSpec, Tensor | list[str], Embedding]]:
        """The input, examples and the embedding, for each input of texts or dense input that has one."""
        for spec in self.inputs:
            with contextlib.suppress(PluginError):
                embedding = self.component.embedding(spec)
                if embedding is not None and (embedding.texts or not spec.sparse):
                    yield spec, _TEXTS if embedding.texts else toy.numbers(_ROWS, *spec.shape), embedding

    def batch(self, case: Case, stream: int = 0) -> Tensor | SparseRows:
        """A batch of five examples."""
        if case.input.sparse:
            return toy.bag(_ROWS, case.input.shape[0], stream)
        return self._dense(case, stream)

    def _dense(self, case: Case, stream: int) -> Tensor:
        """Five examples of numbers; those that may be missing are, at the end of each but the first example."""
        x = toy.numbers(_ROWS, *case.input.shape, stream=stream)
        if case.input.mask:
            known = torch.arange(x.shape[-1]) < x.shape[-1] - torch.arange(_ROWS)[:, None, None]
            x[:, -case.input.mask :] = 1
            x = x * known
        return x

    def features(
        self,
        network: Network,
        case: Case,
        batch: Tensor | SparseRows | None = None,
    ) -> Tensor:
        """The features of a batch; of `self.batch(case)` when None."""
        with self._plugin_errors(f"it can be built for {case}, but fails on it", case):
            features: Tensor = network.features(self.batch(case) if batch is None else batch)
        return features

    def calls(self) -> Iterator[Call]:
        """Forward passes in training mode, which may draw from the run's own stream only."""
        return map(self._call, self.cases())

    def test_shapes(self) -> None:
        """Features are (n, feature_dim), outputs (n, task.outputs), both finite and float32."""
        for case in self.cases():
            network = self.network(case)
            features = self.features(network, case)
            self.is_sound(features, (_ROWS, network.feature_dim), f"the features for {case}", torch.float32)
            outputs = network.predictor(features)
            self.is_sound(outputs, (_ROWS, case.task.outputs), f"the outputs for {case}", torch.float32)

    def test_gradient_reaches_every_parameter(self) -> None:
        """The outputs give each parameter a finite gradient."""
        for case in self.cases():
            network = self.network(case)
            objective = network.predictor(self.features(network, case)).square().sum()
            self.reaches_every_parameter(_module(network), objective, f" for {case}")

    def test_same_seed_same_weights(self) -> None:
        """The initial weights are drawn from torch's global generator, which the engine seeds for each run."""
        for case in self.cases():
            self.same_weights(lambda case=case: _module(self.network(case)))  # type: ignore[misc]
            state, otherwise = (self.network(case, seed).predictor.state_dict() for seed in (0, 1))
            differs = not state or any(not torch.equal(value, otherwise[name]) for name, value in state.items())
            asked = "the contract asks for weights that depend on the seed"
            self.holds(differs, f"seeds 0 and 1 give the same predictor; {asked}")

    def test_evaluation_is_deterministic(self) -> None:
        """In evaluation mode an example always has the same features, whatever else is in the batch."""
        for case in self.cases():
            network = self.network(case)
            batch = self.batch(case)
            network.features.eval()
            first = self.features(network, case)
            second = self.features(network, case)
            self.close(second, first, f"in evaluation mode a second call changes the features for {case}", 0)
            failure = "in evaluation mode an example's features depend on the rest of the batch"
            self.close(network.features(batch[:2]), first[:2], failure)

    def test_embeddings_are_vectors_of_one_example_each(self) -> None:
        """An embedding maps each example to `width` finite float32 numbers, whatever else is in the batch."""
        for _, examples, embedding in self.embeddings():
            module = embedding.module(self.reach()).eval()
            with self.leaves_alone(), torch.no_grad():
                first = module(examples)
                second = module(examples)
                few = module(examples[:2])
            self.is_sound(first, (_ROWS, embedding.width), "the embedding", torch.float32)
            self.close(second, first, "a second call changes the embedding", 0)
            self.close(few, first[:2], "an example's embedding depends on the rest of the batch")

    def test_embeddings_are_named(self) -> None:
        """An embedding's identity is fixed text, and its numbers depend only on that identity."""
        remade = cast("Backbone", self.remade())
        for spec, examples, embedding in self.embeddings():
            name = embedding.identity
            again = cast("Embedding", remade.embedding(spec))
            self.holds(isinstance(name, str) and name, f"the identity is {name!r}, not text")
            failure = "the same parameters give another identity, so cached features would be lost"
            self.holds(again.identity == name, failure)
            first, second = (embedding.module(self.reach()).eval() for _ in range(2))
            with torch.no_grad():
                self.close(second(examples), first(examples), "building the embedding again changes it", 0)

    def test_stacked_runs_equal_each_alone(self) -> None:
        """Each run of a stack gets the outputs that it gets alone (dense input only; sparse rows are never stacked)."""
        self.must_stack()
        for case in self.cases():
            if not case.input.sparse:
                modules = [nn.Sequential(*self.network(case, seed=run)[:2]) for run in range(RUNS)]
                inputs = [(self._dense(case, run),) for run in range(RUNS)]
                self.same_in_a_stack(modules, inputs, f"outputs for {case}")

    def test_recorded_steps_are_the_hosts(self) -> None:
        """If it is `capturable`: on a GPU, passes that a CUDA graph replays change no bit (dense input only)."""
        device = self.must_replay()
        for case in self.cases():
            if case.input.sparse:
                continue
            batches = [self._dense(case, stream) for stream in range(6)]
            asked, replayed = (
                _passes(nn.Sequential(*self.network(case)[:2]), batches, device, recorded=recorded)
                for recorded in (False, True)
            )
            failure = f"it declares `capturable = True`, but replayed passes are not the host's for {case}"
            self.close(replayed, asked, failure, 0)

    def _call(self, case: Case) -> Call:
        network = self.network(case)
        batch = self.batch(case)
        named = {"batch": batch} if isinstance(batch, Tensor) else vars(batch)
        given = {name: part for name, part in named.items() if isinstance(part, Tensor)}
        return Call(lambda: {"outputs": network.predictor(self.features(network, case, batch))}, given)

    def _accepted(self, case: Case) -> list[Case]:
        """The case as the network gets it; empty if the backbone refuses the input."""
        try:
            with self._plugin_errors(f"it cannot be built for {case}", case):
                seen = case._replace(input=network_input(self.component, case.input))
                self.network(seen)
        except PluginError:
            return []
        return [seen]

    @contextlib.contextmanager
    def _plugin_errors(self, fails: str, case: Case) -> Iterator[None]:
        bag = "; a bag of words is a SparseRows, which msda_bench.api.BagLinear accepts" if case.input.sparse else ""
        skips = (BrokenContractError, unittest.SkipTest)
        try:
            with plugin_errors({package_of(type(self.component))}, f"{self.who}: {fails}", skips):
                yield
        except BlamedError as fault:
            advice = f"to refuse this input, the contract asks build to raise PluginError{bag}"
            raise BrokenContractError(f"{fault}; {advice}") from fault


def _module(network: Network) -> nn.Module:
    return nn.ModuleDict({"features": network.features, "predictor": network.predictor})


def _passes(
    module: nn.Module,
    batches: Sequence[Tensor],
    device: torch.device,
    *,
    recorded: bool,
) -> Tensor:
    """Outputs and gradients of passes on a GPU, all asked for by the host or, after the first few, replayed."""
    from msda_bench.engine.graph import Replayed

    module = module.to(device)

    def take(given: Sequence[Tensor]) -> list[Tensor]:
        module.zero_grad()
        outputs = module(given[0])
        outputs.sum().backward()
        gradients = [value.grad.flatten() for value in module.parameters() if value.grad is not None]
        return [torch.cat([outputs.detach().flatten(), *gradients])]

    way = Replayed(take, device) if recorded else take
    return torch.stack([way([x.to(device)])[0].clone() for x in batches])
