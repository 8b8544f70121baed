"""Searches, pipelines and cross-validation select settings with validators that see no target label."""

import re
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from msda_bench.plugins import discover
from msda_bench.sklearn import DARN, SRC, Criterion, DARNRegressor, SRCRegressor
from tests.sklearn.conftest import BRIEF, trained


def folds(rows):
    return list(StratifiedKFold(3, shuffle=True, random_state=0).split(rows.X, rows.domain))


def search(rows, y, scoring):
    pipeline = make_pipeline(StandardScaler(), DARN(**BRIEF))
    grid = {"darn__optimizer": [{"sgd": {"lr": 1e-6}}, {"adam": {"lr": 0.02}}], "darn__mu": [0.0, 0.1]}
    made = GridSearchCV(pipeline, grid, scoring=scoring, cv=folds(rows), error_score="raise")
    return made.fit(rows.X * 10, y, sample_domain=rows.domain)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("validator", ["source_accuracy", {"importance_weighted_risk": {"ridge": 0.1}}])
def test_a_pipeline_search_selects_without_target_labels(rows, validator):
    masked = np.where(rows.target, -1, rows.y)
    found = search(rows, masked, Criterion(validator))
    assert found.best_params_["darn__optimizer"] == {"adam": {"lr": 0.02}}
    assert (found.predict(rows.X * 10)[rows.target] == rows.y[rows.target]).mean() > 0.75
    assert set(found.classes_) == {0, 1}
    other = search(rows, np.where(rows.target, 5, rows.y), Criterion(validator))
    np.testing.assert_array_equal(other.cv_results_["mean_test_score"], found.cv_results_["mean_test_score"])


@pytest.mark.usefixtures("routing")
def test_every_validator_works_as_a_criterion(rows):
    names = [entry.name for entry in discover().entries if entry.kind == "validator"]
    found = cross_validate(
        DARN(**BRIEF),
        rows.X,
        rows.y,
        scoring={name: Criterion(name) for name in names},
        params={"sample_domain": rows.domain},
        cv=folds(rows),
        error_score="raise",
    )
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in names)
    fitted = trained(DARN, rows)
    score = Criterion()(fitted, *rows)
    each = [(fitted.predict(rows.X) == rows.y)[rows.domain == source].mean() for source in (1, 2, 7)]
    assert score == pytest.approx(np.mean(each))


class Moved(TransformerMixin, BaseEstimator):
    """A step that moves the target's rows, as adapters of skada do."""

    __metadata_request__transform: ClassVar[dict[str, Any]] = {"sample_domain": True, "allow_source": True}

    def fit(self, X, y=None):  # noqa: N803
        return self

    def transform(self, X, sample_domain=None, allow_source=False):  # noqa: N803
        assert allow_source
        return X + (np.asarray(sample_domain) < 0)[:, None]


class Selected(BaseEstimator):
    """What skada's pipelines wrap around each estimator."""

    def __init__(self, base_estimator):
        self.base_estimator = self.base_estimator_ = base_estimator

    def fit(self, X, y):  # noqa: N803
        return self


@pytest.mark.usefixtures("routing")
def test_a_criterion_reads_a_pipeline_of_skada(rows):
    moved = rows.X + rows.target[:, None]
    fitted = trained(DARN, rows, X=moved)
    for steps in ([Moved(), "passthrough", Selected(fitted)], [Moved(), fitted]):
        made = Criterion("entropy")(make_pipeline(*steps), rows.X, rows.y, rows.domain.astype(float))
        assert made == Criterion("entropy")(fitted, moved, rows.y, rows.domain)


@pytest.mark.usefixtures("routing")
def test_folds_by_recording_show_that_nothing_was_learned():
    """Labels are drawn by chance for each recording, and each is in every domain: rows alone can only be remembered."""
    generator = np.random.default_rng(0)
    recordings, domains = np.tile(np.arange(90), 4), np.repeat([1, 2, 3, -1], 90)
    x = np.tile(generator.normal(size=(90, 30)), (4, 1)) + 0.1 * generator.normal(size=(360, 30))
    y = np.tile(generator.integers(0, 2, 90), 4)

    def score(folds):
        model = DARN(epochs=30, hidden=(32,), dropout=0.0, optimizer={"adam": {"lr": 0.01}}, random_state=0)
        params = {"sample_domain": domains}
        return cross_validate(model, x, y, scoring=Criterion(), params=params, cv=list(folds))["test_score"].mean()

    assert score(StratifiedKFold(3, shuffle=True, random_state=0).split(x, domains)) > 0.75
    by_recording = StratifiedGroupKFold(3, shuffle=True, random_state=0)
    assert score(by_recording.split(x, domains, recordings)) < 0.65


FOREIGN = (
    "a Criterion scores estimators from msda_bench.sklearn, not LogisticRegression; search over one of these, such as"
)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(
    ("estimator", "grid", "validator", "said"),
    [
        (LogisticRegression(), {"C": [1.0, 0.1]}, "source_accuracy", FOREIGN),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            {"logisticregression__C": [1.0]},
            "entropy",
            FOREIGN,
        ),
        (SRC(epochs=1, random_state=0), {"dropout": [0.0]}, "dve", "unknown validator 'dve'"),
        (SRCRegressor(epochs=1, random_state=0), {"dropout": [0.0]}, "entropy", "'entropy' scores classification"),
    ],
)
def test_a_search_stops_at_a_criterion_that_cannot_score_it(estimator, grid, validator, said, rows):
    """By default scikit-learn scores an exception NaN, and selects the first of candidates that are all NaN."""
    given, made = {"sample_domain": rows.domain}, Criterion(validator)
    calls = (
        lambda: cross_val_score(estimator, rows.X, rows.y, scoring=made, params=given, cv=folds(rows)),
        lambda: cross_validate(estimator, rows.X, rows.y, scoring={"a": made}, params=given, cv=folds(rows)),
        lambda: GridSearchCV(estimator, grid, scoring=made, cv=folds(rows)).fit(rows.X, rows.y, **given),
    )
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=re.escape(said)):
            call()


def test_a_search_without_routing_stops_too(rows):
    search = GridSearchCV(DARN(**BRIEF), {"mu": [0.1]}, scoring=Criterion(), cv=folds(rows))
    with pytest.raises(ValueError, match=r"needs sample_domain; call sklearn.set_config\(enable_metadata_routing=True"):
        search.fit(rows.X, rows.y, sample_domain=rows.domain)


def test_the_risk_of_a_regressor_has_the_unit_of_its_labels(rows):
    regressor = trained(DARNRegressor, rows)
    squares = (regressor.predict(rows.X) - rows.y) ** 2
    score = Criterion("source_risk")(regressor, *rows)
    assert score == pytest.approx(-np.mean([squares[rows.domain == source].mean() for source in (1, 2, 7)]), rel=1e-5)


def test_held_out_rows_that_cannot_be_scored_are_named(rows):
    fitted = trained(DARN, rows)
    whole = f"y: must have a label for each of the {len(rows.y)} rows of X, not"
    for y, line in (
        (rows.y[:-1], f"{whole} {len(rows.y) - 1} labels"),
        (None, f"{whole} NoneType"),
        (rows.y + 4, "class 4 occurs in held-out rows but in no training row"),
    ):
        with pytest.raises(ValueError, match=line):
            Criterion()(fitted, rows.X, y, rows.domain)
    with pytest.raises(ValueError, match=r"stratify by sample_domain"):
        Criterion()(fitted, rows.X[:180], rows.y[:180], rows.domain[:180])


@pytest.mark.usefixtures("routing")
def test_sample_domain_is_requested_by_default_and_can_be_declined(rows):
    assert DARN().get_metadata_routing().fit.requests == {"sample_domain": True}
    asked = make_pipeline(StandardScaler(), DARN(**BRIEF).set_fit_request(sample_domain=True))
    fitted = asked.fit(rows.X, rows.y, sample_domain=rows.domain)
    assert fitted[-1].sources_.tolist() == [1, 2, 7]
    refused = make_pipeline(StandardScaler(), DARN(**BRIEF).set_fit_request(sample_domain=False))
    with pytest.raises(TypeError, match="sample_domain"):
        refused.fit(rows.X, rows.y, sample_domain=rows.domain)
