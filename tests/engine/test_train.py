"""What a record of the engine may and may not depend on, and components that break their contract."""

import math
import platform
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn

from msda_bench.api import Aggregate, Aggregator, BagLinear, BenchError, Metric, Validator, component
from msda_bench.engine import machine, picker
from msda_bench.engine.settings import products
from msda_bench.suite.run_spec import ComponentSpec
from tests.engine.conftest import (
    METHODS,
    POOLED,
    OwnStep,
    aggregator,
    at_seeds,
    backbone,
    discrepancy,
    make_cell,
    result,
    swapped,
    train,
)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(method):
    (record,) = train([make_cell(method, epochs=8)])
    assert (record.status, record.outcome.n_test) == ("ok", 90)
    assert record.outcome.n_correct > 55
    k = len(record.curves.groups)
    assert k == (1 if METHODS[method][0] in POOLED else 2)
    assert [len(row) for row in record.curves.weights] == [k] * 8
    assert sum(record.curves.weights[-1]) == pytest.approx(1, abs=1e-5)
    assert record.curves.risks[-1][0] < record.curves.risks[0][0]
    assert record.target_labels == (method == "TAR")
    assert 0.5 < record.validation["source_accuracy"] <= 1


def test_regression_trains():
    (record,) = train([make_cell("DARN", dataset={"regression": True}, mu=0.001, epochs=8)])
    outcome = record.outcome
    assert outcome.n_correct is None
    assert outcome.sum_squared_error < outcome.sum_squared_labels - outcome.sum_labels**2 / outcome.n_test
    assert record.validation["source_risk"] < 0


def test_methods_of_a_seed_share_split_network_and_first_batch():
    """With mu = 0 and equal weights, two aggregators agree in a first epoch of one step."""
    first, second = train([make_cell(method, mu=0.0, epochs=1, steps=1) for method in ("DARN", "MDAN")])
    assert first.curves.risks == second.curves.risks


@component
class Counting(Aggregator):
    """Gives the second source a weight of n / 10 in step n, counted from 0."""

    name = "counting"

    def start(self, sizes):
        return torch.zeros(1)

    def __call__(self, risks, gaps, mu, state):
        weights = torch.cat([1 - state / 10, state / 10])
        return Aggregate((weights * risks).sum(), weights, state + 1)


@pytest.mark.parametrize("stack", [1, 2])
def test_an_aggregators_state_goes_from_step_to_step(stack):
    cells = at_seeds(swapped(make_cell(epochs=3, steps=2), Counting), stack)
    mean, means = 0.0, []  # the first weights
    for n in range(6):
        mean = 0.9 * mean + 0.1 * n / 10
        means.append(mean)
    for record in train(cells, Counting, stack=stack):
        assert [second for _, second in record.curves.weights] == pytest.approx(means[1::2])


@pytest.mark.parametrize("compiled", [True, False])
def test_sparse_bags_with_lazy_updates_train_like_dense_ones(monkeypatch, compiled):
    monkeypatch.setattr(machine, "can_compile", lambda: compiled)
    if not compiled:
        monkeypatch.setitem(sys.modules, "msda_bench.engine.compiled", None)  # as where numba is missing
    (sparse,) = train([make_cell(epochs=3)])
    monkeypatch.setattr(picker, "as_examples", lambda inputs, _: torch.from_numpy(inputs.toarray()))
    (dense,) = train([make_cell(epochs=3)])
    for one, other in zip(sparse.curves.risks, dense.curves.risks, strict=True):
        assert one == pytest.approx(other, rel=2e-3)


def test_training_restores_process_settings():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    train([make_cell()])
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.tensor(1e-40) * 1 != 0  # denormals are back
    former = torch.get_float32_matmul_precision()
    with products("tf32", torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == former
    with products("float32", torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cudnn.allow_tf32


NanAtOnce = aggregator("nan", lambda risks, mu: (risks.sum() * torch.nan, risks.detach() * torch.nan))
NanLast = aggregator("nan_last", lambda risks, mu: (risks.sum() * torch.nan, torch.full_like(risks, 0.5)))


def test_a_run_that_is_not_finite_is_recorded_as_diverged():
    cell = make_cell(epochs=1, steps=1)
    (record,) = train([swapped(cell, NanAtOnce)], NanAtOnce)
    assert (record.status, record.outcome, record.curves.risks) == ("diverged", None, [])
    assert record.message == "a risk, gap or weight was not finite in epoch 1"
    (record,) = train([swapped(cell, NanLast)], NanLast)
    assert (record.status, record.outcome) == ("diverged", None)
    assert record.message == "an output on the target's test examples was not finite"


def narrow(width, outputs):
    return nn.Sequential(BagLinear(width, 4), nn.ReLU())


WrongShape = aggregator("wrong_shape", lambda risks, mu: (risks, risks.detach()))
OffSimplex = aggregator("off_simplex", lambda risks, mu: (risks.mean(), torch.full_like(risks, -5.0)))
NearSimplex = aggregator("near_simplex", lambda risks, mu: (risks.mean(), torch.tensor([-0.002, 1.002])))
WrongGap = discrepancy("wrong_gap", lambda source, target: source.mean(1) @ target.T[:, :8])
WrongWidth = backbone("wrong_width", lambda width, outputs: (narrow(width, outputs), nn.Linear(4, outputs), 5))


@component
class NoAggregate(Aggregator):
    name = "no_aggregate"

    def __call__(self, risks, gaps, mu, state):
        return risks.mean()


@component
class Detached(Aggregator):
    name = "detached"

    def __call__(self, risks, gaps, mu, state):
        return Aggregate(risks.detach().mean(), torch.full_like(risks, 0.5), state)


def scheme(label, result):
    """A scheme whose step gives this result."""

    def step(self, parts, batch, state, phase):
        return result(OwnStep.step(self, parts, batch, state, phase))

    return component(type(label, (OwnStep,), {"name": label, "step": step, "__module__": __name__}))


DetachedStep = scheme("detached_step", lambda step: step._replace(objective=step.objective.detach()))
NoStep = scheme("no_step", lambda step: None)
NumberStep = scheme("number_step", lambda step: step._replace(objective=0.5))
LINE = r"\(tests/engine/test_train.py:\d+\)"


@pytest.mark.parametrize(
    ("stranger", "told"),
    {
        Detached: rf"aggregator 'detached' of stranger {LINE} gave an objective without gradient.* do not detach the r",
        DetachedStep: rf"scheme 'detached_step' {LINE} gave an objective without gradient",
        NoStep: rf"scheme 'no_step' {LINE} gave a NoneType; the contract asks for a Step",
        NumberStep: rf"scheme 'number_step' {LINE} gave objective as float; the contract asks for a tensor",
        WrongShape: r"aggregator 'wrong_shape' of stranger .* shape \(2,\) .* asks for \(\) and",
        OffSimplex: r"aggregator 'off_simplex' of stranger left the simplex: weights from -5 to -5, sums -10 to -10",
        NearSimplex: r"left the simplex: weights from -0.002 to 1.002, sums 1 to 1",
        NoAggregate: r"aggregator 'no_aggregate' of stranger gave a Tensor; .* an Aggregate of three tensors",
        WrongGap: r"discrepancy 'wrong_gap' of stranger .*\(2, 8\).* asks for \(2,\)",
        WrongWidth: r"backbone 'wrong_width' of stranger gave features of shape \(30, 4\) for 30 .*\(30, 5\)",
    }.items(),
)
def test_a_component_that_breaks_its_contract_is_named(stranger, told):
    with pytest.raises(BenchError, match=told):
        train([swapped(make_cell(), stranger)], stranger)


@component
class Raises(Validator):
    name = "raises"

    def score(self, view):
        raise RuntimeError("boom")


@component
class Nan(Validator):
    name = "nan"

    def score(self, view):
        return float("nan")


def test_a_failing_validator_loses_only_its_score():
    (record,) = train([swapped(swapped(make_cell(), Nan), Raises)], Nan, Raises)
    assert record.status == "ok"
    assert list(record.validation) == ["source_accuracy"]
    raised, gave = str(record.message).split("; ")
    assert re.fullmatch(r"validator 'raises' at .*test_train\.py:[0-9]+ raised RuntimeError: boom", raised)
    assert gave == "validator 'nan' gave nan"
    assert record.provenance["distributions"]["stranger"] == "1.2"
    about = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*: (.*)", about.read_text()) if about.exists() else []
    assert record.provenance["device_name"] in (models or [platform.processor(), platform.machine()])


@component
class Mixing(Validator):
    name = "mixing"

    def score(self, view):
        outputs = view.target_outputs
        first = torch.arange(len(outputs)).repeat(6)
        second = first.flip(0)
        for share in (1.0, 0.25, 0.0):
            expected = share * outputs[first] + (1 - share) * outputs[second]
            torch.testing.assert_close(view.mix(first, second, share), expected, rtol=1e-4, atol=1e-5)
        return float(outputs.std())


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("stack", [1, 2])
def test_a_validator_sees_its_own_run_predict_mixtures(stack, sparse):
    mixing = (ComponentSpec("validator", "mixing", 1, "stranger", {}),)
    cell = replace(make_cell(dataset={"sparse": sparse}, backbone=("linear", {})), validators=mixing)
    records = train(at_seeds(cell), Mixing, stack=stack)
    assert [record.message for record in records] == [None, None]
    assert len({record.validation["mixing"] for record in records} - {0.0}) == 2


@component
class Asking(Metric):
    name = "asking"
    label = "asking"
    tasks = ("classification", "regression")
    needs_outputs = True
    seen: ClassVar = []

    def value(self, tested):
        self.seen.append(tested)
        return float(tested.outputs.mean())


@pytest.mark.parametrize("regression", [False, True])
def test_a_metric_sees_counts_sums_and_outputs_of_the_test(regression):
    Asking.seen.clear()
    cell = make_cell(dataset={"regression": regression}, mu=0.001, epochs=1)
    (record,) = train([replace(cell, metrics=(ComponentSpec("metric", "asking", 1, "stranger", {}),))], Asking)
    (tested,) = Asking.seen
    assert record.metrics == {"asking": float(tested.outputs.mean())}
    assert (tested.n, len(tested.outputs), len(tested.labels)) == (90, 90, 90)
    sums = (tested.sum_squared_error, tested.sum_absolute_error, tested.sum_labels, tested.sum_squared_labels)
    if regression:
        labels, errors = tested.labels.double(), (tested.outputs[:, 0] - tested.labels).double()
        expected = [errors.square().sum(), errors.abs().sum(), labels.sum(), labels.square().sum()]
        assert sums == pytest.approx([float(value) for value in expected], rel=1e-5)
        assert tested.confusion.shape == (0, 3)
    else:
        predicted = tested.outputs.argmax(1)
        for true, guess, count in tested.confusion.tolist():
            assert count == int(((tested.labels == true) & (predicted == guess)).sum())
        assert int(tested.confusion[:, 2].sum()) == 90
        assert all(map(math.isnan, sums))


@pytest.mark.parametrize("method", ["DARN", "MDMN", "DANN"])
def test_a_record_does_not_depend_on_order_other_cells_or_the_global_generator(method):
    cells = [*at_seeds(make_cell(method)), make_cell("TAR"), make_cell("SRC", target="a")]
    together = train(cells)
    torch.manual_seed(99)
    backwards = train(cells[::-1])[::-1]
    alone = [train([cell])[0] for cell in cells]
    assert list(map(result, together)) == list(map(result, backwards)) == list(map(result, alone))
    assert together[0].curves != together[1].curves
