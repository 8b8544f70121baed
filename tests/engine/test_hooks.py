"""Hooks of a scheme other than its step: stages with restricted data, rows, own extractors and predictions."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from msda_bench.api import PluginError, Stage, Step, component
from msda_bench.engine.tensors import dense
from msda_bench.functional import drop_entries
from tests.engine.conftest import OwnStep, Toy, at_seeds, make_cell, run_of, stacked, swapped, train
from tests.strangers.source_free import SourceFree


@pytest.mark.parametrize("sparse", [True, False])
def test_a_stage_without_sources_receives_no_source_data(sparse):
    seen = []

    @component
    class Cheat(OwnStep):
        name = "cheat"
        stages = (Stage("train", sees=("sources",)), Stage("adapt", sees=("target",)))

        def carry(self, parts, sizes, stage):
            return {"kept": torch.zeros(20, 30)} if stage.name == "train" else {"n": torch.zeros(())}

        def step(self, parts, batch, state, phase):
            stage, x = "train" if len(batch.y) else "adapt", dense(batch.x)
            seen.append((stage, (x, batch.y, dict(batch.carried), getattr(self, "stolen", None))))
            object.__setattr__(self, "stolen", x)
            if stage == "train":
                return super().step(parts, batch, state, phase)._replace(carried={"kept": x})
            return Step(parts.predictor(parts.features(batch.x)).square().mean())

        def at_epoch(self, parts, target, carried, stage):
            seen.append((f"epoch {stage.name}", target.features))
            return {}

    (record,) = train([swapped(make_cell(epochs=3, dataset={"sparse": sparse}), Cheat)], Cheat)
    assert record.status == "ok"
    assert record.provenance["stages"] == [
        {"name": "train", "share": 1.0, "sees": ["sources"]},
        {"name": "adapt", "share": 1.0, "sees": ["target"]},
    ]
    steps = {name: [given for stage, given in seen if stage == name] for name in ("train", "adapt")}
    # The toy's words count 1, 2 and 3 in domains a, b and c.
    for name, values, groups, kept in (("train", {1, 2}, 2, "kept"), ("adapt", {3}, 0, "n")):
        assert len(steps[name]) == 9
        for x, y, carried, stolen in steps[name]:
            assert set(x.unique().tolist()) - {0} == values
            assert (y.shape, [*carried], stolen) == ((groups, 10), [kept], None)
    assert [(name, given.shape) for name, given in seen if "epoch" in name] == [("epoch adapt", (60, 8))] * 2


@component
class Surveys(OwnStep):
    """Its risks are those at a stage's start; its gaps the share of a batch whose labels it had then."""

    name = "surveys"
    stages = (Stage("train", sees=("sources",)), Stage("adapt", sees=("target",)))

    def carry(self, parts, sizes, stage):
        return {"y": torch.zeros(sum(sizes.groups), dtype=torch.int64), "risks": torch.full((len(sizes.groups),), -1.0)}

    def at_stage(self, parts, sources, carried, stage):
        groups = nn.functional.one_hot(sources.groups, 2).float()
        return {"y": sources.y, "risks": parts.loss(sources.outputs, sources.y) @ groups / groups.sum(0)}

    def step(self, parts, batch, state, phase):
        k, size = batch.y.shape
        outputs, risks = parts.predictor(parts.features(batch.x)), batch.carried["risks"]
        if not k:
            return Step(outputs.square().mean(), risks)
        places = torch.arange(k).view(-1, 1) * (len(batch.carried["y"]) // k) + batch.rows.view(k, size)
        same = (batch.carried["y"][places] == batch.y).float().mean(1)
        return Step(parts.loss(outputs, batch.y.flatten()).mean(), risks, same)


def test_rows_are_the_places_of_examples_within_their_domains():
    seen = []

    @component
    class Watching(OwnStep):
        name = "watching"

        def step(self, parts, batch, state, phase):
            seen.append((batch.x, batch.rows))
            return super().step(parts, batch, state, phase)

    cell = swapped(make_cell(dataset={"sparse": False}), Watching)
    assert train([cell], Watching)[0].timing["steps"] == len(seen) > 0
    data = run_of(cell, Watching).data
    for x, rows in seen:
        for domain, examples, places in zip("abc", x.split(10), rows.split(10), strict=True):
            assert torch.equal(examples, data.x[data.rows[domain][places]])


@component
class Wrong(OwnStep):
    name = "wrong"
    how: str = "predict"

    def carry(self, parts, sizes, stage):
        return {"mean": torch.zeros(3)}

    def after_step(self, parts, batch, phase):
        return {"shape": {"mean": torch.zeros(4)}, "name": {"other": torch.zeros(3)}}.get(self.how, {})

    def predict(self, parts, x, carried):
        features, outputs = super().predict(parts, x, carried)
        return features, torch.cat([outputs, outputs], 1) if self.how == "predict" else outputs


@component
class Viewed(Toy):
    name = "viewed"

    def view(self, x, strength, key):
        return drop_entries(x, key, {"weak": 0.1, "strong": 0.4}[strength])


def test_dropout_is_off_where_a_scheme_looks_at_the_target_and_on_again_in_the_steps():
    seen = []

    @component
    class Looks(OwnStep):
        name = "looks"

        def step(self, parts, batch, state, phase):
            other = parts.with_key(batch.key)
            seen.append(torch.equal(parts.features(batch.x), other.features(batch.x)))
            return super().step(parts, batch, state, phase)

        def at_epoch(self, parts, target, carried, stage):
            other = parts.with_key(target.key)
            seen.append(torch.equal(parts.features(torch.ones(4, 30)), other.features(torch.ones(4, 30))))
            return {}

    train([swapped(make_cell(steps=2), Looks)], Looks)
    assert seen == [True, False, False] * 2


@pytest.mark.parametrize("rows", [0, 1])
def test_weights_that_a_step_carries_are_not_changed_by_updates(rows):
    """Updates change weights in place, but not carried copies or views of them."""
    seen = []

    @component
    class Former(OwnStep):
        name = "former"

        def carry(self, parts, sizes, stage):
            return {"former": parts.weights["predictor.weight"][rows:]}

        def step(self, parts, batch, state, phase):
            return super().step(parts, batch, state, phase)._replace(carried=self.carry(parts, None, None))

        def after_step(self, parts, batch, phase):
            seen.append((batch.carried["former"], self.carry(parts, None, None)["former"].clone()))
            return {}

    train([swapped(make_cell(epochs=1), Former)], Former)
    for (_, after), (carried, now) in pairwise(seen):
        torch.testing.assert_close(carried, after, rtol=0, atol=0)
        assert not torch.equal(carried, now)
    assert len(seen) > 1


def test_a_stage_that_sees_the_sources_starts_with_a_pass_over_them():
    cells = at_seeds(swapped(make_cell(epochs=2, dataset={"sparse": False}), Surveys))
    alone = train(cells, Surveys)
    for record, together in zip(alone, stacked(cells, Surveys), strict=True):
        assert record.curves.gaps[0] == together.curves.gaps[0] == [1, 1]
        assert record.curves.risks[0] == pytest.approx(together.curves.risks[0], rel=1e-5)
        assert min(record.curves.risks[0]) > 0.3
        assert len(set(record.curves.risks[0])) == 2
        assert record.curves.risks[1] == together.curves.risks[1] == [-1, -1]
    assert alone[0].curves.risks[0] != alone[1].curves.risks[0]


@pytest.mark.parametrize(
    ("how", "says"),
    {
        "predict": r"predicted features and outputs of shapes \(90, 8\) and \(90, 4\) for 90 examples",
        "shape": r"gave float32 of shape \(4,\) to carry as 'mean', where `carry` gave float32 of shape \(3,\)",
        "name": r"gave float32 of shape \(3,\) to carry as 'other', where `carry` gave nothing",
    }.items(),
)
def test_contract_violations_are_named(how, says):
    with pytest.raises(PluginError, match=f"scheme 'wrong' {says}"):
        train([swapped(make_cell(steps=1), Wrong, how=how)], Wrong)


def test_a_run_too_short_for_its_stages_is_refused():
    with pytest.raises(PluginError, match="has 2 stages, more than the 1 training steps; train for longer"):
        train([swapped(make_cell(epochs=1, steps=1), SourceFree)], SourceFree)


@pytest.mark.parametrize("given", [{"share": 0}, {"phases": ()}, {"sees": ()}, {"sees": ("labels",)}])
def test_an_invalid_stage_is_refused(given):
    with pytest.raises(ValueError, match="stage 'a'"):
        Stage("a", **given)
