"""Equal steps, schedules, optimisers, clipping and averages."""

from dataclasses import replace

import pytest
import torch

from msda_bench.api import Discrepancy, Phase, PluginError, Scheme, Stage, Step, StepProgress, component
from msda_bench.engine.fit import fit
from msda_bench.engine.optim import clip_gradients
from msda_bench.engine.single import Single
from msda_bench.engine.stacked import Stacked
from msda_bench.suite.protocol import Splitting, TrainingConfig
from tests.engine.conftest import (
    CPU,
    METHODS,
    OwnStep,
    at_seeds,
    make_cell,
    run_of,
    stacked,
    swapped,
    train,
    train_with_weights,
)
from tests.engine.test_stacked import OPTIONS, Normed


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_changes_what_is_learned(name):
    """Each option changes the result, and a second run gives identical bits."""
    steps = {"epochs": 1, "steps": 8}
    cells = [make_cell(**steps | OPTIONS[name]), make_cell(**steps | OPTIONS[name]), make_cell(**steps)]
    one, again, plain = (train_with_weights(cell)["weights"] for cell in cells)
    assert one == again
    assert one != plain


# Equal steps


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_equally_many_steps_and_examples(method):
    """60 training examples of each of two sources, in batches of 10; pooled schemes and oracles too."""
    dataset = {"regression": True} if method == "SPECTRAL" else None
    run = run_of(make_cell(method, dataset=dataset, epoch="equal"))
    assert run.steps == 6
    assert run.batch * run.batches * len(run.groups) == 20
    assert train([run.cell])[0].timing["steps"] == 12


@pytest.mark.parametrize("given", [{"split_sources": Splitting(clusters=3)}, {"labelled_target": 7}, {}], ids=str)
def test_the_steps_are_those_of_the_largest_whole_source(given):
    run, pool = (run_of(make_cell(method, **given, epoch="equal")) for method in ("DARN", "SRC"))
    assert (run.steps, run.batches, pool.steps) == (6, 1, 6)
    assert pool.batches == (3 if "labelled_target" in given else 2)  # a batch for the target's labels


@component
class Uneven(OwnStep):
    name = "uneven"

    def groups(self, sources, target):
        return (sources[:1], sources)


def test_groups_that_cannot_see_equally_many_examples_are_refused():
    assert train([swapped(make_cell(epochs=1), Uneven)], Uneven)[0].status == "ok"
    with pytest.raises(PluginError, match="hold 1 and 2 domains; add epoch: scheme to training"):
        train([swapped(make_cell(epoch="equal"), Uneven)], Uneven)


# A number of steps


def test_steps_without_epochs_are_the_whole_training():
    """With six steps per epoch the last epoch is shorter, and the first two equal those of whole epochs."""
    counted, whole, brief = train(
        [
            make_cell(epochs=None, steps=15),
            make_cell(epochs=2),
            make_cell(epochs=None, steps=4, average={"over": "last_epoch"}),
        ]
    )
    assert (counted.timing["steps"], len(counted.curves.risks)) == (15, 3)
    assert counted.curves.risks[:2] == whole.curves.risks
    assert counted.curves.weights[:2] == whole.curves.weights
    assert (brief.status, brief.timing["steps"]) == ("ok", 4)


# Schedules and stages


@component
class Slide(OwnStep):
    """Its loss is the sum of the predictor's biases, whose gradient is 1."""

    name = "slide"
    stages = (Stage("a"), Stage("b", share=3, phases=(Phase("late"),)))

    def step(self, parts, batch, state, phase):
        return Step(parts.predictor(0 * parts.features(batch.x)).mean(0).sum())


FALL = [(1 + 10 * step / 8) ** -0.75 for step in range(8)]
FIRST, REST = ([(1 + 10 * step / steps) ** -0.75 for step in range(steps)] for steps in (2, 6))


def slid(legs):
    """How far SGD with momentum 0.9 has come after each step, from the learning rates of its legs."""
    place, places = 0.0, []
    for rates in legs:
        speed = 0.0
        for rate in rates:
            speed = 0.9 * speed + 1
            place += rate * speed
            places.append(place)
    return places


@pytest.mark.parametrize("stack", [1, 2])
@pytest.mark.parametrize(
    ("options", "legs"),
    [
        ({"schedule": "none"}, [[1] * 8]),
        ({"schedule": {"cosine": {"to": 0.5}}, "warmup": 4}, [[0.2, 0.4, 0.6, 0.8, 1, 0.926777, 0.75, 0.573223]]),
        ({"schedule": "none", "warmup": 0.35}, [[0.25, 0.5, 0.75, 1, 1, 1, 1, 1]]),
        ({"warmup": 99}, [[step / 9 for step in range(1, 9)]]),
        ({}, [FALL]),
        ({"stages": {"a": {}}}, [FALL]),
        ({"stages": {"b": {}}}, [FIRST, REST]),
        ({"stages": {"a": {"lr_factors": {"predictor": 0.5}}, "b": {}}}, [[rate / 2 for rate in FIRST], REST]),
        (
            {"stages": {"b": {"lr_factors": {"predictor": 0.1}, "schedule": "none", "warmup": 1}}},
            [FIRST, [0.05] + 5 * [0.1]],
        ),
    ],
    ids=["constant", "warmed", "share", "warming", "no stage", "the first", "the second", "both", "another course"],
)
@pytest.mark.parametrize("average", [None, {"over": "last_epoch"}, {"ema": 0.5}], ids=str)
def test_schedules_and_named_stages_follow_their_formulas(stack, options, legs, average):
    """Two epochs of four steps, of which stage b has six: momentum, schedule and average start again with it."""
    sgd = {"sgd": {"lr": 1.0, "momentum": 0.9}}
    given = {"epochs": 2, "steps": 4, "optimizer": sgd, "schedule": "polynomial", "average": average, **options}
    runs = [run_of(cell, Slide) for cell in at_seeds(swapped(make_cell(**given), Slide), stack)]
    program = Single(runs[0], CPU) if stack == 1 else Stacked(runs, CPU)
    start = [program.weights(run)["predictor.bias"].clone() for run in range(stack)]
    fit(runs, program)
    places = torch.tensor(slid(legs))
    kept = places[-len(legs[-1]) :]
    mean = kept[0]
    for place in kept:
        mean = mean + 0.5 * (place - mean)
    wanted = {None: places[-1], "over": places[4:].mean(), "ema": mean}[next(iter(average or {}), None)]
    for run in range(stack):
        moved = start[run] - program.weights(run)["predictor.bias"]
        torch.testing.assert_close(moved, wanted.expand(2))


# Optimisers


@pytest.mark.parametrize("most", [0.5, 2.5, 100.0])
@pytest.mark.parametrize("runs", [None, 3])
def test_each_run_of_a_stack_is_clipped_as_torch_clips_a_single_run(most, runs):
    drawn = torch.Generator().manual_seed(3)
    ours = [torch.zeros(runs or 1, *shape) for shape in ((4, 3), (4,), ())]
    for value in ours:
        value.grad = torch.randn(value.shape, generator=drawn)
    theirs = []
    for run in range(runs or 1):
        alone = [torch.zeros_like(value[run]) for value in ours]
        for one, value in zip(alone, ours, strict=True):
            one.grad = value.grad[run].clone()
        torch.nn.utils.clip_grad_norm_(alone, most)
        theirs.append([one.grad for one in alone])
    clip_gradients(ours, most, runs)
    for run, expected in enumerate(theirs):
        torch.testing.assert_close([value.grad[run] for value in ours], expected)


# Progress


class _Grows(StepProgress):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, source, target):
        return self.progress + 0 * (source.mean() + target.mean()) * torch.ones(self.k)


@component
class Grows(Discrepancy):
    name = "grows"

    def build(self, feature_dim, k):
        return _Grows(k)


@component
class Watch(Scheme):
    name = "watch"

    def step(self, parts, batch, state, phase):
        risks = parts.forward(batch).risks
        k, size = batch.y.shape
        inputs = batch.x[: k * size].reshape(k, -1).mean(1)
        return Step(risks.mean(), inputs, torch.ones(k) * batch.progress)


@pytest.mark.parametrize("stack", [1, 2])
@pytest.mark.parametrize("stranger", [Grows, Watch])
def test_progress_goes_from_0_towards_1_over_the_whole_run(stranger, stack):
    """Of eight steps: the means over the steps of each epoch are of 0, 1, 2, 3 and of 4, 5, 6, 7."""
    cells = at_seeds(swapped(make_cell(steps=4, dataset={"sparse": False}), stranger), stack)
    for record in stacked(cells, stranger):
        torch.testing.assert_close(torch.tensor(record.curves.gaps), torch.tensor([[1.5, 1.5], [5.5, 5.5]]) / 8)


@pytest.mark.parametrize("stack", [1, 2])
def test_a_batch_of_all_examples_is_identical_in_every_step(stack):
    for batch in ("all", 10):
        given = {"batch": batch, "steps": 2, "dataset": {"sparse": False}}
        for record in stacked(at_seeds(swapped(make_cell(**given), Watch), stack), Watch):
            first, second = map(torch.tensor, record.curves.risks)
            assert torch.allclose(first, second) == (batch == "all")


# Averages


@pytest.mark.parametrize("stack", [1, 2])
def test_batch_norm_statistics_are_averaged_too_and_its_count_of_batches_is_not(stack):
    plain = at_seeds(swapped(make_cell("TAR", dataset={"sparse": False}), Normed), stack)
    means = []
    for training in ({"steps": 1}, {"steps": 3}, {"steps": 2}, {"steps": 3, "average": {"over": "last_epoch"}}):
        update = TrainingConfig.model_validate(dict(plain[0].training) | {"epochs": None, **training})
        runs = [run_of(replace(cell, training=update), Normed) for cell in plain]
        program = Single(runs[0], CPU) if stack == 1 else Stacked(runs, CPU)
        fit(runs, program)
        assert all(value.is_floating_point() for value in program.averaged)
        means.append(program.weights(stack - 1)["features.1.running_mean"].clone())
    torch.testing.assert_close(means[3], (means[0] + means[1] + means[2]) / 3)
    counts = program.modules.buffers() if stack == 1 else program._buffers["features"].values()
    assert {int(value.max()) for value in counts if value.dtype == torch.int64} == {3}
