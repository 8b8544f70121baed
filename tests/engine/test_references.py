"""References with labels of the target: what they learn from, and the score on labels that they hold out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from msda_bench.api import DataError, component
from msda_bench.data.splits import split
from msda_bench_builtin.schemes import Joint, TargetOnly
from tests.engine.conftest import Toy, close, make_cell, prepare, ref, stacked, train, train_with_weights

TRAINED = split(Toy(), "c", {"c": Toy().load("c", None)}, seed=0)["c"].train
KEPT, HELD = (tuple(rows.tolist()) for rows in (TRAINED[:45], TRAINED[45:]))
ALL = set(range(150))


def cell(scheme: str, hold_out: float = 0.25, **options):
    return replace(make_cell("TAR", **options), scheme=ref("scheme", scheme, {"hold_out": hold_out}))


@pytest.mark.parametrize("scheme", ["target_only", "joint"])
@pytest.mark.parametrize("regression", [False, True])
def test_labels_held_out_score_the_run_and_do_not_train_it(scheme, regression):
    """Inverting them moves no weight and only their score; inverting the others moves the weights."""
    data = {"regression": regression}
    clean, scored, learned = (
        train_with_weights(cell(scheme, dataset=data | more))
        for more in (
            {},
            {"poison": "c", "spared": tuple(ALL - set(HELD))},
            {"poison": "c", "spared": tuple(ALL - set(KEPT))},
        )
    )
    assert (clean["weights"], clean["curves"], clean["outcome"]) == (
        scored["weights"],
        scored["curves"],
        scored["outcome"],
    )
    assert clean["weights"] != learned["weights"]
    mine, theirs = (dict(run["validation"]) for run in (clean, scored))
    right, wrong = mine.pop("target_accuracy"), theirs.pop("target_accuracy")
    assert mine == theirs
    assert right > wrong
    assert regression or right + wrong == pytest.approx(1)


def test_joint_gives_every_domain_a_batch_of_its_own():
    (record,) = train([cell("joint", 0.0)])
    assert record.curves.groups == [["a"], ["b"], ["c"]]
    assert record.curves.weights[-1] == pytest.approx([1 / 3] * 3)
    assert record.target_labels
    assert "target_accuracy" not in record.validation


@component
class Grouped(Toy):
    """Row i of every domain is of group i // 4."""

    name = "grouped"
    shared_groups = True
    test: float = 0.2

    def load(self, domain, files):
        return replace(super().load(domain, files), groups=np.arange(150) // 4)


def test_no_group_is_both_learned_from_and_scored():
    dataset = Grouped(train=60, sparse=False)
    prepared = prepare(make_cell(), dataset)
    parts = split(dataset, "c", {name: dataset.load(name, None) for name in "abc"}, seed=0)
    seen, (kept, places) = (
        ask(Joint(hold_out=0.25))
        for ask in (lambda joint: prepared.training_for(joint, make_cell()), prepared.labelled)
    )
    groups = parts["c"].train // 4
    scored = set(groups[places.numpy()].tolist())
    assert kept == 45
    assert 12 <= len(places) <= 15
    assert scored.isdisjoint(groups[:kept].tolist())
    for place, name in enumerate("ab"):
        learned = parts[name].train[seen.rows[name].numpy() - 60 * place] // 4
        assert scored.isdisjoint(learned.tolist())
        assert set(parts[name].train // 4) & scored
    assert seen.y[120:].tolist().count(-1) == 15


def test_holding_out_all_is_refused():
    prepared = prepare(make_cell(), Toy(train=1))
    with pytest.raises(DataError, match=r"'target_only' holds out 0\.5 of 1 labelled examples"):
        prepared.training_for(TargetOnly(hold_out=0.5), make_cell())


@pytest.mark.parametrize("scheme", ["target_only", "joint"])
def test_stacked_references_equal_each_alone(scheme):
    cells = [cell(scheme, seed=seed, epochs=1) for seed in range(2)]
    for together, alone in zip(stacked(cells), train(cells), strict=True):
        close(together, alone)
        assert "target_accuracy" in alone.validation
