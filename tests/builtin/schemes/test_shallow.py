"""Adapters of skada as rows: equal to its own pipeline, repeatable, and refused or recorded where they cannot work."""

import numpy as np
import pytest
import skada
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import msda_bench as mb
from msda_bench.api import DivergedError, DomainData, FitData, Task
from msda_bench.cli.main import main
from msda_bench.data.splits import split
from msda_bench.testing import examine
from msda_bench_builtin.datasets import Arrays
from msda_bench_builtin.schemes import Skada
from tests.own import refusal, results, suite

ROWS, SEED = 60, 3
DOMAINS = ("a", "b", "t")
EMPTY = dict.fromkeys(DOMAINS, DomainData(np.empty((ROWS, 0)), np.empty(ROWS)))
NEEDED = {
    "KLIEPReweight": {"gamma": 0.1},
    "MMDLSConSMapping": {"gamma": 0.1},
    "MMDTarSReweight": {"gamma": 0.1},
    "TransferSubspaceLearning": {"n_components": 6},
}
ADAPTERS = sorted({name.removesuffix("Adapter") for name in dir(skada) if name.endswith("Adapter")} - {"Base"})


def row(adapter, estimator="logistic_regression", **more):
    return {"scheme": {"skada": {"adapter": adapter, "estimator": estimator, **more}}}


def written(folder, *, classes=True):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(DOMAINS) * ROWS, 4)).astype(np.float32)
    domain = np.repeat(DOMAINS, ROWS)
    y = (x[:, 0] > x[:, 1]).astype(np.int64) if classes else x[:, 0] - x[:, 1]
    x[domain == "b"] *= 3
    x[domain == "t"] += 2
    np.savez(folder / "t.npz", x=x, y=y, domain=domain)
    return x, y


def mine(folder, methods, *, classes=True, **changes):
    """The path of a suite of these methods, beside its data."""
    written(folder, classes=classes)
    data = {"file": "t.npz", "train": 40, "standardise": "none"}
    return suite(folder, "arrays", data, targets=["t"], seeds=[SEED], methods=methods, **changes)


def test_a_row_is_skadas_pipeline_on_the_rows_of_every_method(tmp_path):
    methods = {"SRC": {"scheme": "pooled"}, "CORAL": row("CORAL"), "Multi": row("MultiLinearMongeAlignment")}
    runs = results(mine(tmp_path, methods))
    x, y = written(tmp_path)
    chosen = split(Arrays(train=40), "t", EMPTY, seed=SEED)
    places = [chosen[name].train + ROWS * number for number, name in enumerate(DOMAINS)]
    train, test = np.concatenate(places), chosen["t"].test + 2 * ROWS
    sample_domain = np.repeat([1, 2, -3], [len(part) for part in places])
    for method, adapter in {"CORAL": skada.CORALAdapter(), "Multi": skada.MultiLinearMongeAlignmentAdapter()}.items():
        pipeline = skada.make_da_pipeline(StandardScaler(), adapter, LogisticRegression(max_iter=1000))
        pipeline.fit(x[train].astype(float), np.where(sample_domain < 0, -1, y[train]), sample_domain=sample_domain)
        answers = pipeline.predict(x[test].astype(float), sample_domain=np.full(len(test), -3))
        assert runs.set_index("method").loc[method, "n_correct"] == (answers == y[test]).sum(), method


@pytest.mark.slow
@pytest.mark.parametrize("adapter", [*ADAPTERS, "JDOT", "none"])
def test_every_adapter_keeps_the_contract(adapter):
    scheme = Skada(adapter={adapter: NEEDED[adapter]} if adapter in NEEDED else adapter)
    findings = list(examine(scheme))
    assert [finding for finding in findings if finding.outcome == "broken"] == []
    assert len(findings) > 10


def test_what_is_not_finite_is_a_run_that_diverged_with_its_reason(tmp_path):
    methods = {"OT": row("EntropicOTMapping", "ridge"), "none": row("none", "ridge")}
    path = mine(tmp_path, methods, classes=False)
    assert main(["run", path, "--out", str(tmp_path / "out"), "--executor", "inline"]) == 1
    runs = mb.load_results(tmp_path / "out" / "mine").set_index("method")
    assert runs.loc["OT", "status"] == "diverged"
    assert "skada's EntropicOTMapping: the adapted inputs are not finite" in runs.loc["OT", "message"]
    assert runs.loc["none", "status"] == "ok"


def test_labels_are_propagated_by_a_whole_plan_whatever_the_order_of_rows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 2)), rng.integers(0, 4, 400)
    x += 2 * np.stack([y % 2, y // 2], axis=1)
    order, places = rng.permutation(300), np.arange(300)

    def answers(rows, adapter):
        data = FitData(x[rows], y[rows], rows % 3, x[300:])
        return Skada(adapter=adapter).fit(data, Task("classification", 4), 0)(x[300:])

    np.testing.assert_allclose(answers(order, "OTLabelProp"), answers(places, "OTLabelProp"))
    with pytest.raises(DivergedError, match="before optimality"):
        answers(places, {"OTLabelProp": {"n_iter_max": 200}})


def test_a_probability_of_0_does_not_stop_jdot(tmp_path):
    runs = results(mine(tmp_path, {"J": row("JDOT", {"random_forest": {"n_estimators": 10}})}))
    assert runs.loc[0, "n_correct"] > 0
    assert runs.loc[0, "status"] == "ok"


def test_weights_are_of_the_target_over_the_sources():
    adapter = Skada(adapter="DiscriminatorReweight").make(Task("classification", 2), 0)[0]
    x = np.random.default_rng(0).normal(size=(200, 1))
    x[100:] += 1
    domain = np.repeat([1, -2], 100)
    _, given = adapter.base_estimator.fit_transform(x, np.zeros(200), sample_domain=domain)
    assert np.corrcoef(x[:100, 0], given["sample_weight"][:100])[0, 1] > 0.5


@pytest.mark.parametrize(
    ("adapter", "estimator", "says"),
    [
        ("CORAAL", "logistic_regression", "has no adapter 'CORAAL'; did you mean CORAL?"),
        ("DASVM", "logistic_regression", "are those of the model before adaptation; use another"),
        ("KLIEPReweight", "logistic_regression", "adapter KLIEPReweight needs gamma, such as {KLIEPReweight: {gamma: "),
        (
            "TransferSubspaceLearning",
            "logistic_regression",
            "changes nothing if it keeps all columns, as skada",
        ),
        ({"CORAL": {"regg": 1}}, "logistic_regression", "adapter CORAL has no parameter 'regg'; did you mean reg?"),
        ("JCPOTLabelProp", "ridge", "adapter 'JCPOTLabelProp' needs classes, and ridge predicts numbers; change one"),
        ("CORAL", "rigde", "no estimator 'rigde'; did you mean ridge?"),
        ("CORAL", {"logistic_regression": {"c": -1}}, "must be greater than 0, not -1"),
        ("CORAL", "ridge", "skada trains regression; arrays is classification"),
    ],
)
def test_a_row_that_cannot_be_gets_one_line(adapter, estimator, says, tmp_path, capsys):
    assert says in refusal(capsys, mine(tmp_path, {"SRC": {"scheme": "pooled"}, "theirs": row(adapter, estimator)}))


def test_adapters_and_their_parameters_are_searched(tmp_path):
    method = row("CORAL") | {"search": {"scheme.skada.adapter": ["CORAL", {"CORAL": {"reg": 0.5}}, {"none": None}]}}
    select = {"how": "grid", "budget": 3, "by": "source_accuracy"}
    runs = results(mine(tmp_path, {"mine": method}, select=select))
    assert len(runs) == 3
    assert runs["n_correct"].nunique() > 1
