"""The input and output of estimators, their one-line errors, and their page."""

import contextlib
import copy
import re
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import msda_bench.sklearn as found
from msda_bench.api import Predictor
from msda_bench.plugins import discover
from msda_bench.sklearn import DARN, MDAN, SRC, Criterion, MSDAClassifier, MSDARegressor, SRCRegressor
from tests.reader import text_of
from tests.sklearn.conftest import BRIEF, trained

NAMED = sorted(set(found.__all__) - {"Criterion", "MSDAClassifier", "MSDARegressor"})
PAGE = text_of("docs/sklearn.md")
NUMBERS = re.compile(r" *[0-9]*\.[0-9]*")


@pytest.mark.slow
@parametrize_with_checks([DARN(epochs=20), MSDARegressor(epochs=30)])
def test_scikit_learns_own_checks_hold(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", NAMED)
def test_each_named_method_trains_and_can_be_cloned(name, rows):
    made = getattr(found, name)(**BRIEF)
    y = rows.X[:, 0] * 2 if name.endswith("Regressor") else np.array(["no", "yes"])[rows.y]
    fitted = clone(made).fit(rows.X, y, sample_domain=rows.domain)
    assert fitted.get_params() == made.get_params()
    assert type(fitted).__name__ == name
    assert fitted.sources_.tolist() == [1, 2, 7]
    assert fitted.weights_.sum() == pytest.approx(1)
    assert np.isfinite(fitted.score(rows.X[rows.target], y[rows.target]))
    assert fitted.get_params().keys() >= SRC().get_params().keys()


@pytest.mark.parametrize("name", discover().names("scheme"))
def test_every_installed_scheme_works_in_an_estimator(name, rows):
    scheme = discover().entry("scheme", name).cls
    given = {"discrepancy": "d_A"} if scheme.uses_discrepancy else {}
    made = MSDAClassifier(scheme=name, **given, mu=0.1 if scheme.uses_mu else None, **BRIEF)
    step_free = issubclass(scheme, Predictor)
    if step_free or scheme.needs_target_labels:
        why = "trains no network|needs a Python file" if step_free else "needs labels of the target"
        with pytest.raises(ValueError, match=why):
            made.fit(*rows)
        return
    fitted = made.fit(rows.X, np.where(rows.target, -1, rows.y), rows.domain)
    assert (copy.deepcopy(fitted).predict_proba(rows.X) == fitted.predict_proba(rows.X)).all()
    assert fitted.weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", ["DARN", "MSDARegressor"])
def test_labels_and_number_of_the_target_do_not_change_the_model_but_its_rows_do(name, rows):
    estimator = getattr(found, name)(**BRIEF, discrepancy="d_A", mu=1.0) if name[0] == "M" else DARN(mu=1.0, **BRIEF)
    first = estimator.fit(rows.X, rows.y.astype(float), rows.domain).predict(rows.X).tolist()
    for poison in (-1.0, 1e30, np.nan, np.inf):
        y = np.where(rows.target, poison, rows.y.astype(float))
        assert estimator.fit(rows.X, y, np.where(rows.target, -99, rows.domain)).predict(rows.X).tolist() == first
    moved = rows.X + rows.target[:, None].astype(np.float32)
    model = estimator.model_.state
    changed = estimator.fit(moved, rows.y.astype(float), rows.domain).model_.state
    assert any((model[key] != changed[key]).any() for key in model)


@pytest.mark.parametrize("mask", [None, "?"])
def test_only_source_labels_decide_the_label_dtype(rows, mask):
    labels = [mask if target else int(label) for target, label in zip(rows.target, rows.y, strict=True)]
    plain = trained(SRC, rows)
    for given in (labels, np.array(labels, dtype=object)):
        fitted = trained(SRC, rows, y=given)
        assert fitted.classes_.tolist() == [0, 1]
        assert fitted.predict(rows.X).tolist() == plain.predict(rows.X).tolist()
        assert Criterion()(fitted, rows.X, given, rows.domain) == Criterion()(plain, *rows)
    words = np.where(rows.target, "poison", rows.y.astype(str))
    assert trained(SRC, rows, y=words).classes_.tolist() == ["0", "1"]


def test_whole_numbers_of_pandas_stay_whole_though_the_target_has_none(rows):
    y, domain = pd.Series(rows.y, dtype="Int64"), pd.Series(rows.domain, dtype="Int64")
    y[rows.target] = pd.NA
    large = 10**17 + y
    assert trained(SRC, rows, y=y, domain=domain).classes_.tolist() == [0, 1]
    assert trained(SRC, rows, y=large, domain=domain).classes_.tolist() == [10**17, 10**17 + 1]
    assert trained(SRC, rows, domain=domain.astype(object)).sources_.tolist() == sorted({*rows.domain[~rows.target]})


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_a_missing_label_of_a_source_is_no_class_and_two_kinds_of_labels_are_refused(rows, dtype):
    y = pd.Series(np.where(rows.y, "yes", "no"), dtype=dtype)
    y[np.flatnonzero(~rows.target)[:2]] = None
    mixed = [label or "none" for label in rows.y.tolist()]
    for labels, says in (
        (y, r"\Ay: 2 of 180 source rows have no label \(NaN or None\); leave them out\Z"),
        (mixed, "y: some labels are texts and some are not; make all of them texts, or all"),
    ):
        with pytest.raises(ValueError, match=says):
            trained(SRC, rows, y=labels)


def test_a_non_finite_output_raises(rows):
    fitted = trained(SRC, rows)
    fitted.model_.state["predictor.weight"][0, 0] = np.inf
    with pytest.raises(ValueError, match="an output is not finite; scale X as in training"):
        fitted.predict(rows.X)


def test_numpy_numbers_and_suite_settings_are_accepted(rows):
    given = {"mu": np.float32(0.5), "gamma": np.float64(2.0), "epochs": np.int64(2), "hidden": np.array([8, 4])}
    more = {"schedule": {"cosine": {"to": 0.1}}, "average": {"over": "last_epoch"}}
    fitted = DARN(**given, optimizer={"sgd": {"lr": 0.1}}, training=more).fit(*rows)
    cell = fitted.model_.cell
    assert (cell.mu, cell.aggregator.params["gamma"], cell.training.epochs) == (0.5, 2.0, 2)
    assert cell.backbone.params["hidden"] == [8, 4]
    assert (cell.training.optimizer.name, cell.training.schedule.name) == ("sgd", "cosine")
    linear = MSDAClassifier(backbone="linear", epochs=2).fit(*rows)
    assert linear.model_.cell.backbone.name == "linear"


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (DARN(gamma=-1.0), "aggregator.sharpmax.gamma: must be greater than 0, not -1.0"),
        (MSDAClassifier(discrepancy="d_A"), "discrepancy: needs a weight; add mu, such as mu: 0.01"),
        (MSDAClassifier(scheme="target_only"), "target_only needs labels of the target"),
        (MSDARegressor(scheme="mcd"), "scheme: mcd trains classification, not regression"),
        (SRC(optimizer="sdg"), "unknown optimizer (did you mean 'sgd'?)"),
        (SRC(training={"epohs": 3}), "training.epohs: unknown key (did you mean 'epochs'?)"),
        (SRC(random_state=-1), "random_state: must be a whole number from 0 to 2**31 - 1, not -1"),
        (SRCRegressor(optimizer={"sgd": {"lr": 1e6}}, epochs=20), "training diverged: a risk, gap or weight"),
        (SRC(hidden=(10**12,)), "backbone.mlp.hidden[0]: must be at most 2147483647, not 1000000000000"),
        (SRC(hidden=(10**6, 10**6)), "backbone mlp: its layers need 14901 GiB to train, and this machine has"),
        (SRC(batch=10**39), f"training.batch: must be at most 2147483647, not {10**39}"),
        (SRC(batch=2 * 10**9, epochs=1), "batch: 2000000000 examples of each domain need "),
        (SRC(training={"steps": 2 * 10**9}), "training.steps: an epoch of 2000000000 steps need "),
        (SRC(optimizer={"adam": {"lr": 1e300}}), "training.optimizer.adam.lr: must be at most 1e+30, not 1e+300"),
        (SRC(optimizer={"sgd": {"weight_decay": 1e300}}), "optimizer.sgd.weight_decay: must be at most 1e+30, not 1e"),
        (SRC(training={"lr_factors": {"features": 1e300}}), "training.lr_factors.features: must be at most 1e+30"),
        (SRC(training={"precision": "tf32"}), "precision tf32 is a GPU's; this run trains on the CPU"),
        (SRC(backbone="convnet"), "backbone convnet needs images (channels, height, width), not input of shape (4,)"),
        (SRC(device="tpu"), "device: must be 'cpu' or 'cuda', not 'tpu'"),
        (SRC(device="cuda"), "device: PyTorch finds no GPU here"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(estimator, said, rows, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 2**33}.__getitem__)  # 8 GiB
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as caught:
        estimator.fit(*rows)
    assert said in str(caught.value)


@pytest.mark.parametrize("scheme", ["shot", "decision", "wjdot", "simpal"])
def test_too_few_rows_for_the_stages_of_a_scheme_name_the_parameter(scheme, rows):
    few = np.concatenate([np.flatnonzero(rows.domain == number)[:6] for number in np.unique(rows.domain)])
    brief = MSDAClassifier(scheme=scheme, epochs=1)
    with pytest.raises(ValueError, match=rf"\Aepochs: scheme '{scheme}' trains in \d stages.* make 1 step;.*\Z"):
        brief.fit(rows.X[few], rows.y[few], rows.domain[few])


def test_rows_too_wide_for_memory_are_refused_before_anything_is_allocated():
    columns = 10**9
    x = scipy.sparse.csr_matrix((np.ones(4, np.float32), ([0, 1, 2, 3], [0, 5, 7, columns - 1])), shape=(4, columns))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"\AX: 1000000000 columns need \d+ GiB [^\n]+\Z"):
        SRC(hidden=(64,)).fit(x, [0, 1, 0, 1], [1, 1, -2, -2])
    assert tracemalloc.get_traced_memory()[1] < 2**27
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (np.abs, "holds no target"),
        (lambda d: -np.abs(d), "holds no source"),
        (lambda d: np.where(d == 7, 0, d), "holds 0"),
        (lambda d: d + 0.5, "must hold whole numbers, not float64"),
        (lambda d: np.where(d == 7, np.nan, d), "must hold whole numbers, not float64"),
        (lambda d: d[:-1], "inconsistent numbers of samples"),
        (lambda d: np.where(d == 7, 1e300, d), "must hold numbers of at most 64 bits; number the domains from 1"),
        (lambda d: np.where(d == 7, 2**63 + 1, 1).astype(np.uint64), "must hold numbers of at most 64 bits"),
        (lambda d: d.astype(str).astype(np.dtypes.StringDType()), "must hold whole numbers, not <U2"),
        (lambda d: np.ma.masked_array(d, d == 7), "sample_domain: 60 numbers are masked"),
    ],
)
def test_invalid_sample_domain_is_refused(change, said, rows):
    with pytest.raises(ValueError, match=said):
        SRC().fit(rows.X, rows.y, sample_domain=change(rows.domain))


def test_domains_as_skada_packs_and_passes_them(rows):
    plain, floats = trained(DARN, rows), rows.domain.astype(np.float32)
    fitted = trained(DARN, rows, domain=floats)
    assert fitted.sources_.tolist() == [1, 2, 7]
    assert (fitted.predict_proba(rows.X, sample_domain=floats) == plain.predict_proba(rows.X)).all()
    assert (fitted.predict(rows.X, sample_domain=floats) == plain.predict(rows.X)).all()
    assert fitted.score(rows.X, rows.y, sample_domain=floats) == plain.score(rows.X, rows.y)


@pytest.mark.parametrize(("scale", "offset"), [(1e4, 0.0), (1.0, 1.7e9)])
def test_a_regressor_does_not_depend_on_the_unit_of_its_labels(rows, scale, offset):
    y = rows.X[:, 0].astype(float)
    plain = trained(SRCRegressor, rows, y=y)
    moved = trained(SRCRegressor, rows, y=scale * y + offset)
    np.testing.assert_allclose((moved.predict(rows.X) - offset) / scale, plain.predict(rows.X), atol=1e-3)
    one, other = (
        Criterion("source_risk")(model, rows.X, labels, rows.domain)
        for model, labels in ((plain, y), (moved, scale * y + offset))
    )
    assert other / scale**2 == pytest.approx(one, rel=1e-3)


def test_rows_that_float32_blurs_are_refused(rows):
    x = rows.X.astype(float)
    x[rows.target, 2] += 1e9
    with pytest.raises(ValueError, match="X: float32 does not tell the numbers of column 2 apart; subtract their mean"):
        trained(SRC, rows, X=x)
    same = np.column_stack([x[:, :2], np.full(len(x), 1e9 + 0.1)])
    assert trained(SRC, rows, X=same).n_features_in_ == 3


def test_the_seed_alone_determines_the_model_in_threads_too(rows):
    def fitted(state):
        return DARN(**{**BRIEF, "random_state": state}).fit(*rows).predict_proba(rows.X).tolist()

    alone = [fitted(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(fitted, [*range(4)] * 2)) == alone * 2
    assert alone[2] != alone[3] == fitted(np.int64(3))
    assert fitted(np.random.RandomState(1)) == fitted(np.random.RandomState(1))


def test_without_domains_it_is_supervised_learning_on_one_source(rows):
    fitted = MDAN(random_state=0).fit(rows.X, rows.y)
    assert (fitted.sources_.tolist(), fitted.weights_.tolist()) == ([1], [1.0])
    assert fitted.score(rows.X, rows.y) > 0.8
    doubled = np.concatenate([rows.X, rows.X]), np.concatenate([rows.y, rows.y])
    named = clone(fitted).fit(*doubled, sample_domain=np.repeat([1, -1], len(rows.y)))
    assert (named.predict_proba(rows.X) == fitted.predict_proba(rows.X)).all()


def test_without_scikit_learn_one_line_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import msda_bench.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = "ImportError: msda_bench.sklearn needs scikit-learn; install it: pip install '.[sklearn]' in the clone"
    assert done.stderr.splitlines()[-1] == said


def test_every_estimator_is_named_on_its_page():
    assert [name for name in found.__all__ if f"`{name}`" not in PAGE] == []


@pytest.mark.slow
def test_the_pages_example_prints_what_the_page_says(capsys):
    (code,) = re.findall(r"^```python\n(import numpy.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with sklearn.config_context():
        exec(code, {})  # noqa: S102 - the page's own code
    printed = capsys.readouterr().out
    # Another CPU rounds otherwise, and a training shows it.
    assert NUMBERS.sub("#", printed) == NUMBERS.sub("#", shown)
    pooled, _, adapted, _ = printed.splitlines()
    assert float(adapted.split()[-1]) > float(pooled.split()[-1])
    assert float(NUMBERS.findall(printed)[-1]) < 0.1


def test_rows_are_standardised_as_their_domain_was_and_as_the_targets_without_one(rows):
    unit = np.array([1.0, 20.0, 0.3, 5.0])[rows.domain % 4][:, None].astype(np.float32)
    x, source = rows.X * unit + unit, rows.domain == 7
    model = SRC(standardise="domain", epochs=5, random_state=0).fit(x, rows.y, sample_domain=rows.domain)
    as_target = (x[source] - x[source].mean(0)) / x[source].std(0) * x[rows.target].std(0) + x[rows.target].mean(0)
    alone = model.predict_proba(as_target)
    np.testing.assert_allclose(model.predict_proba(x[source], sample_domain=rows.domain[source]), alone, atol=1e-4)
    mixed = model.predict_proba(x, sample_domain=rows.domain)
    np.testing.assert_allclose(mixed[source], alone, atol=1e-4)
    np.testing.assert_array_equal(mixed[rows.target], model.predict_proba(x[rows.target]))
    right = [(model.classes_[mixed.argmax(1)] == rows.y)[rows.domain == name].mean() for name in model.sources_]
    assert Criterion()(model, x, np.where(rows.target, -1, rows.y), rows.domain) == pytest.approx(np.mean(right))
    assert model.score(x, rows.y, sample_domain=rows.domain) > model.score(x, rows.y)
    with pytest.raises(ValueError, match="sample_domain holds 5, no source of the training"):
        model.predict(x[:2], sample_domain=[1, 5])
    with pytest.raises(ValueError, match="standardise: "):
        SRC(standardise="pooled").fit(x, rows.y, sample_domain=rows.domain)


def test_every_sparse_form_gives_the_model_of_csr(rows):
    plain = DARN(random_state=0).fit(scipy.sparse.csr_array(rows.X), rows.y, rows.domain)
    assert plain.score(rows.X[rows.target], rows.y[rows.target]) > 0.9
    for form in ("bsr_array", "coo_matrix", "csc_array", "lil_matrix"):
        given = getattr(scipy.sparse, form)(rows.X)
        fitted = DARN(random_state=0).fit(given, rows.y, rows.domain)
        assert fitted.predict_proba(given).tolist() == plain.predict_proba(rows.X).tolist()


TEXTS = np.dtypes.StringDType(na_object=None)


def test_labels_of_numpys_text_type_are_texts(rows):
    words = np.where(rows.y, "yes", "no").astype(TEXTS)
    words[rows.target] = None
    fitted, plain = (trained(SRC, rows, y=y) for y in (words, np.where(rows.y, "yes", "no")))
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.predict(rows.X).tolist() == plain.predict(rows.X).tolist()
    known = ~rows.target
    assert fitted.score(rows.X[known], words[known]) == plain.score(rows.X[known], words[known].astype("U3"))
    assert Criterion()(fitted, rows.X, words, rows.domain) == Criterion()(plain, rows.X, words, rows.domain)


@pytest.mark.parametrize(
    "state",
    [
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.device("meta"),
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: np.errstate(all="raise"),
        lambda: default_dtype(torch.float64),
    ],
)
def test_the_callers_state_changes_no_number_and_stays(state, rows):
    def numbers():
        fitted = trained(DARN, rows)
        return fitted.predict_proba(rows.X).tolist(), Criterion("dev")(fitted, *rows)

    def seen():
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")
        return *modes, torch.get_default_dtype(), torch.get_default_device(), np.geterr()

    plain = numbers()
    with state():
        before = seen()
        assert numbers() == plain
        assert seen() == before


@contextlib.contextmanager
def default_dtype(dtype):
    torch.set_default_dtype(dtype)
    yield
    torch.set_default_dtype(torch.float32)
