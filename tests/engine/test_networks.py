"""Normalised networks train under every scheme, batch-norm sees the rows that it should, pretrained ones are tuned."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from msda_bench.api import InputSpec, Predictor, Pretrained, Task, component
from msda_bench.data import LocalFiles
from msda_bench.engine.fit import fit
from msda_bench.engine.single import Single
from tests.engine.conftest import CPU, at_seeds, close, installed, make_cell, ref, run_of, stacked, swapped, train
from tests.engine.test_data import Photos

DISCREPANCIES = {"pooled": "d_A", "adapt": "coral", "alternate": "wasserstein", "cdan": "d_A", "regularised": "none"}
SCHEMES = [entry.cls for entry in installed().entries if entry.kind == "scheme"]
TRAINED = sorted(scheme.name for scheme in SCHEMES if not issubclass(scheme, Predictor))


def cell_of(scheme, steps=8, **network):
    given = {
        "cdan": {"discrepancy": {"hidden": [8], "dropout": 0.5}},
        "wjdot": {"scheme": {"plan": "entropic"}},
        **{reference: {"scheme": {"hold_out": 0.25}} for reference in ("joint", "target_only")},
    }
    params = given.get(scheme, {})  # the exact plan of wjdot does not stack
    discrepancy = DISCREPANCIES.get(scheme)
    parts = {"scheme": scheme, "discrepancy": discrepancy, "aggregator": discrepancy and "uniform"}
    backbone = ("mlp", {"hidden": [12], "dropout": 0.3, **network})
    cell = make_cell("DARN", mu=0.05, dataset={"sparse": False}, backbone=backbone, epochs=1, steps=steps)
    return replace(cell, **{kind: ref(kind, name, params.get(kind)) for kind, name in parts.items()})


@pytest.mark.parametrize(("place", "scheme"), list(enumerate(TRAINED)))
def test_a_normalised_network_trains_in_a_stack_as_alone(place, scheme):
    norm = "domain" if place % 2 else "batch"
    cells = at_seeds(cell_of(scheme, norm=norm, bottleneck=6, weight_norm=True))
    for together, alone in zip(stacked(cells), train(cells), strict=True):
        close(together, alone)


@pytest.mark.parametrize(("norm", "passes"), [("batch", 1), ("domain", 3)])
def test_running_statistics_count_one_pass_of_all_rows_or_one_of_each_domain(norm, passes):
    tracked = [value for name, value in buffers(cell_of("adapt", steps=4, norm=norm)) if name.endswith("tracked")]
    assert [int(value) for value in tracked] == [4 * passes]


def test_what_a_scheme_looks_at_after_a_step_reaches_no_running_statistics():
    """best_single trains as ensemble does, and then looks at the other sources."""
    plain, looking = (dict(buffers(cell_of(scheme, norm="batch"))) for scheme in ("ensemble", "best_single"))
    means = [name for name in plain if name.endswith("running_mean")]
    assert means
    for name in means:
        assert torch.equal(plain[name], looking[name]), name


@pytest.mark.parametrize("norm", ["batch", "domain"])
def test_adabn_is_src_with_the_statistics_of_the_targets_inputs(norm):
    (_, plain), (run, adapted) = fitted(src(norm)), fitted(cell_of("adabn", norm=norm))
    for one, other in zip(plain.parameters(), adapted.parameters(), strict=True):
        assert torch.equal(one, other)
    _, _, linear, layer, _ = adapted["features"]
    inputs = linear(run.data.x[run.target_rows])
    found = getattr(layer, "norm", layer)
    torch.testing.assert_close(found.running_mean, inputs.mean(0))
    torch.testing.assert_close(found.running_var, inputs.var(0))
    assert (found.momentum, adapted.training) == (0.1, True)


def test_a_batch_that_passes_through_changes_only_what_normalises():
    """Without batch normalisation the target's rows reach nothing, to rounding; with it they change what is trained."""
    for norm, same in (("none", True), ("batch", False)):
        (_, plain), (_, passed) = fitted(src(norm)), fitted(cell_of("pass_through", norm=norm))
        pairs = zip(plain.parameters(), passed.parameters(), strict=True)
        most = max(float((one - other).detach().abs().max()) for one, other in pairs)
        assert (most < 1e-5) == same, most


def src(norm):
    return replace(cell_of("pooled", norm=norm), discrepancy=ref("discrepancy", "none"))


def fitted(cell):
    run = run_of(cell)
    program = Single(run, CPU)
    fit([run], program)
    return run, program.modules


def buffers(cell):
    return fitted(cell)[1].named_buffers()


@component
class Colours(Pretrained):
    """A pretrained network with batch normalisation."""

    name = "colours"
    width = 6
    hidden: tuple[int, ...] = (16,)
    dropout: float = 0.0

    def trunk(self, files):
        layers = nn.Conv2d(3, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 3, 2), nn.BatchNorm2d(6)
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def tuned(batch_norm="frozen", steps=4, **training):
    """The modules after fine-tuning, and their initial state."""
    cell = make_cell(epochs=1, steps=steps, optimizer={"sgd": {"lr": 0.02, "momentum": 0.9}}, **training)
    for stranger, params in ((Photos, {}), (Colours, {"trainable": "all", "batch_norm": batch_norm})):
        cell = swapped(cell, stranger, **params)
    run = run_of(cell, Photos, Colours)
    program = Single(run, CPU)
    before = {name: value.clone() for name, value in program.modules.state_dict().items()}
    fit([run], program)
    return program.modules, before


@pytest.mark.parametrize("batch_norm", ["frozen", "train"])
def test_fine_tuning_trains_every_weight_and_keeps_or_learns_statistics(batch_norm):
    assert not Colours(trainable="all").stackable
    modules, before = tuned(batch_norm)
    weights = {name for name, _ in modules.named_parameters()}
    for name, value in modules.state_dict().items():
        assert torch.equal(value, before[name]) == (name not in weights and batch_norm == "frozen"), name


def test_training_normalises_by_frozen_statistics():
    frozen, learning = (
        Colours(trainable="all", batch_norm=how).build(Task("classification", 2), InputSpec((3, 32, 32)), LocalFiles())
        for how in ("frozen", "train")
    )
    x = torch.rand(4, 3, 32, 32)
    wanted = frozen.features.eval()(x)
    for mode in (True, False, True):
        torch.testing.assert_close(frozen.features.train(mode)(x), wanted)
    assert not torch.allclose(learning.features.train()(x), learning.features.eval()(x))


def test_the_trunk_has_its_own_learning_rate():
    modules, before = tuned(lr_factors={"trunk": 0.0})
    for name, value in modules.named_parameters():
        assert torch.equal(value, before[name]) == (".trunk." in name), name
    slow, before = tuned(steps=1, lr_factors={"trunk": 0.5, "features": 0.2})
    plain, _ = tuned(steps=1)
    for name, value in slow.named_parameters():
        share = 0.1 if ".trunk." in name else 0.2 if name.startswith("features") else 1.0
        moved = plain.state_dict()[name] - before[name]
        torch.testing.assert_close(value - before[name], share * moved, atol=2e-7, rtol=1e-3)
