"""The label firewall: which labels training sees, that no other affects it, and references that see the target's."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from msda_bench.api import DataError, component
from msda_bench.data.splits import split
from msda_bench.suite.protocol import Splitting
from msda_bench_builtin.schemes import Adapt, Joint, TargetOnly
from tests.engine.conftest import (
    METHODS,
    POOLED,
    Toy,
    make_cell,
    prepare,
    ref,
    run_of,
    train,
    train_with_weights,
)

LABELS = 12
HONEST = [method for method in METHODS if method != "TAR"]
TRANSDUCTIVE = {"protocol": "transductive"}
SEEN = ("weights", "curves", "bound", "validation")
TRAINED = split(Toy(), "c", {"c": Toy().load("c", None)}, seed=0)["c"].train.tolist()
ROWS = set(range(150))
LABELLED, KEPT, HELD = TRAINED[:LABELS], TRAINED[:45], TRAINED[45:]


def inverted(rows):
    """The dataset with the labels of these rows of the target inverted."""
    return {"poison": "c", "spared": tuple(ROWS - set(rows))}


SETTINGS = {
    "held out": (HONEST, {}, 0),
    "regression": (["DARN", "MDMN", "SPECTRAL", "SRC"], {"regression": True}, 0),
    "transductive": (["DARN", "MDMN", "MCD", "SRC"], TRANSDUCTIVE, 0),
    "labelled": (HONEST, {}, LABELS),
    "labelled regression": (["DARN", "MDMN", "SRC"], {"regression": True}, LABELS),
}


@pytest.mark.parametrize(
    ("method", "setting"), [(method, setting) for setting, (methods, *_) in SETTINGS.items() for method in methods]
)
def test_target_labels_affect_only_the_test_result(method, setting):
    _, dataset, labels = SETTINGS[setting]
    clean, poisoned = (
        train_with_weights(make_cell(method, dataset=dataset | more, mu=0.001, epochs=1, labelled_target=labels))
        for more in ({}, inverted(ROWS - set(TRAINED[:labels])))
    )
    assert clean["outcome"] != poisoned["outcome"]
    assert {name for name in SEEN if clean[name] != poisoned[name]} == set()


@pytest.mark.parametrize(("method", "labels"), {"TAR": 0, "SRC": LABELS, "DARN": LABELS, "MDMN": LABELS}.items())
def test_labels_that_a_run_asks_for_affect_it(method, labels):
    one, other = (
        train_with_weights(make_cell(method, dataset=data, labelled_target=labels, epochs=1))
        for data in ({}, inverted(LABELLED if labels else ROWS))
    )
    assert one["weights"] != other["weights"]


def test_training_sees_source_labels_and_none_of_the_target_but_for_the_oracle():
    prepared = prepare(make_cell(), Toy())
    data, oracle = (prepared.training_for(scheme, make_cell()) for scheme in (Adapt(), TargetOnly()))
    assert len(data.x) == 180
    assert data.y[:120].unique().tolist() == oracle.y[120:].unique().tolist() == [0, 1]
    assert data.y[120:].tolist() == [-1] * 60
    regression = prepare(make_cell(), Toy(regression=True)).training_for(Adapt(), make_cell())
    assert regression.y[120:].isnan().all()


def test_a_transductive_run_trains_on_its_test_examples_and_no_scheme_gets_their_labels():
    prepared = prepare(make_cell(), Toy(sparse=False, **TRANSDUCTIVE))
    data = prepared.training_for(Adapt(), make_cell())
    assert torch.equal(data.x[data.rows["c"]], prepared.test.x)
    assert len(prepared.test.y) == 150
    assert data.y[data.rows["c"]].unique().tolist() == [-1]
    for scheme, cell in ((TargetOnly(), make_cell()), (Adapt(), make_cell(labelled_target=3))):
        with pytest.raises(DataError, match=r"^c: no method may see labels of the test; use `protocol: held_out`$"):
            prepared.training_for(scheme, cell)


@pytest.mark.parametrize("method", ["SRC", "DARN", "MDMN", "CDAN"])
def test_the_record_names_the_labelled_target(method):
    more, plain = train([make_cell(method, labelled_target=LABELS, epochs=1), make_cell(method, epochs=1)])
    assert (more.target_labels, more.cell["labelled_target"]) == (True, LABELS)
    assert (plain.target_labels, plain.cell.get("labelled_target")) == (False, None)
    pooled = METHODS[method][0] in POOLED
    assert more.curves.groups == ([["a", "b", "c/labelled"]] if pooled else [["a"], ["b"], ["c/labelled"]])
    (split,) = train([make_cell(split_sources=Splitting(clusters=2), labelled_target=LABELS, epochs=1)])
    assert split.curves.groups == [["a/0"], ["a/1"], ["b/0"], ["b/1"], ["c/labelled"]]


def test_labelled_examples_are_shared_by_methods_nested_and_stay_unlabelled_training_data():
    runs = [run_of(make_cell(method, labelled_target=LABELS)) for method in ("SRC", "DARN")]
    assert [run.data.rows["c/labelled"].tolist() for run in runs] == [list(range(120, 120 + LABELS))] * 2
    fewer, plain = (run_of(make_cell(labelled_target=count, dataset={"sparse": False})) for count in (5, 0))
    assert fewer.data.rows["c/labelled"].tolist() == list(range(120, 125))
    assert (fewer.data.y[120:] >= 0).nonzero().flatten().tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(fewer.data.rows["c"], plain.data.rows["c"])
    assert torch.equal(fewer.prepared.test.x, plain.prepared.test.x)
    assert torch.equal(fewer.prepared.test.y, plain.prepared.test.y)


def test_a_pool_includes_the_labelled_target():
    pooled, apart = (run_of(make_cell(method, labelled_target=40)) for method in ("SRC", "DARN"))
    assert (pooled.sizes, pooled.steps) == (((60, 60, 40),), 16)
    assert (apart.sizes, apart.steps) == (((60,), (60,), (40,)), 6)


def test_requests_beyond_the_training_examples_are_refused():
    prepared = prepare(make_cell(), Toy(train=0.1))
    with pytest.raises(DataError, match="labelled_target is 16, but it trains on 15 examples"):
        prepared.training_for(Adapt(), make_cell(labelled_target=16))
    with pytest.raises(DataError, match="split_sources needs 20 training examples of 'a', which has 15; set a larger"):
        prepared.training_for(Adapt(), make_cell(split_sources=Splitting(clusters=2)))


def cell(scheme: str, hold_out: float = 0.25, **options):
    return replace(make_cell("TAR", **options), scheme=ref("scheme", scheme, {"hold_out": hold_out}))


@pytest.mark.parametrize("scheme", ["target_only", "joint"])
@pytest.mark.parametrize("regression", [False, True])
def test_labels_held_out_score_the_run_and_do_not_train_it(scheme, regression):
    """Inverting them moves no weight and only their score; inverting the others moves the weights."""
    data = {"regression": regression}
    clean, scored, learned = (
        train_with_weights(cell(scheme, dataset=data | more)) for more in ({}, inverted(HELD), inverted(KEPT))
    )
    assert all(clean[seen] == scored[seen] for seen in ("weights", "curves", "outcome"))
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
