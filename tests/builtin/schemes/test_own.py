"""An estimator of the user's own as a row, of a file beside the suite or of the Python session."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import msda_bench as mb
from msda_bench.api import BenchError, component
from msda_bench.cli.main import main
from msda_bench_builtin.schemes import Own
from tests.own import broken, refusal, suite

ROWS = 60
FILE = """
import numpy as np
import sklearn.linear_model
from sklearn.preprocessing import StandardScaler


class Aligned:
    def fit(self, x, y, sample_domain):
        assert set(sample_domain) == {1, 2, -3} and (y[sample_domain < 0] == -1).all()
        self.model = sklearn.linear_model.LogisticRegression().fit(x[sample_domain > 0], y[sample_domain > 0])
        return self

    def predict(self, x):
        return self.model.predict(x)


def aligned():
    return Aligned()


def logistic(c=1.0, seed=0):
    return sklearn.linear_model.LogisticRegression(C=c, random_state=seed)


def either(task):
    return logistic() if task.kind == "classification" else sklearn.linear_model.Ridge()


def broken():
    return sklearn.linear_model.LogisticRegression(C=None)


def raises():
    return 1 / 0
"""


def data(folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3 * ROWS, 4)).astype(np.float32)
    np.savez(folder / "t.npz", x=x, y=(x[:, 0] > x[:, 1]).astype(int), domain=np.repeat(["a", "b", "t"], ROWS))
    (folder / "my_models.py").write_text(FILE)
    return {"file": "t.npz", "train": 40}


def row(function, **more):
    return {"estimator": f"my_models.py:{function}", **more}


def mine(folder, methods):
    return suite(folder, "arrays", data(folder), targets=["t"], methods=methods)


def trained(folder, path, *flags):
    code = main(["run", path, "--out", str(folder / "out"), "--trust-files", *flags])
    return code, mb.load_results(folder / "out" / "mine").set_index("method")


def test_a_file_beside_the_suite_is_a_row_in_a_worker_and_runs_by_the_users_word_alone(tmp_path, capsys):
    methods = {"LR": {"scheme": "logistic_regression"}, "Own": row("logistic")}
    path = mine(tmp_path, methods | {"Sees": row("aligned", sees="target")})
    assert main(["validate", path]) == 0
    assert main(["run", path, "--out", str(tmp_path / "out")]) == 2
    assert "my_models.py: look into it, then add --trust-files" in capsys.readouterr().err
    code, runs = trained(tmp_path, path, "--workers", "1")
    assert code == 0
    assert runs["n_correct"].nunique() == 1
    assert str(tmp_path) not in (tmp_path / "out" / "mine" / "plan.json").read_text()
    keys = runs["key"].to_dict()
    (tmp_path / "my_models.py").write_text(FILE + "# changed\n")
    changed = trained(tmp_path, path, "--executor", "inline")[1]["key"].to_dict()
    assert changed["LR"] == keys["LR"]
    assert changed["Own"] != keys["Own"]


def test_whatever_it_raises_names_the_users_file(tmp_path):
    path = mine(tmp_path, {"LR": {"scheme": "logistic_regression"}, "raises": row("raises"), "broken": row("broken")})
    code, runs = trained(tmp_path, path, "--keep-going", "--executor", "inline")
    assert code == 1
    assert runs.loc["raises", "message"] == "my_models.py:34: ZeroDivisionError: division by zero"
    assert runs.loc["broken", "message"].startswith("my_models.py:broken: InvalidParameterError: ")


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (row("logistik"), "my_models.py defines no logistik; it has Aligned, aligned, logistic, either, broken"),
        ({"estimator": "my_models.py"}, "must be FILE:FUNCTION, a Python file and what it defines, such as"),
        ({"estimator": "other.py:make"}, "other.py: no such file beside the suite"),
        (row("logistic", scheme="pooled"), "is a scheme of its own; remove scheme"),
        ({"sees": "target"}, "is of an own estimator; add estimator: FILE:FUNCTION"),
    ],
)
def test_a_row_that_cannot_be_gets_one_line(method, says, tmp_path, capsys):
    assert says in refusal(capsys, mine(tmp_path, {"SRC": {"scheme": "pooled"}, "mine": method}))


class Constant(BaseEstimator):
    def __init__(self, answer=0):
        self.answer = answer

    def fit(self, x, y):
        return self

    def predict(self, x):
        return np.full(len(x), self.answer)


def own(c):
    return {"Mine": make_pipeline(StandardScaler(), LogisticRegression(C=c)), "Zero": Constant()}


def test_an_estimator_of_the_session_is_a_row_beside_the_suites(tmp_path):
    path = mine(tmp_path, {"LR": {"scheme": "logistic_regression"}})
    runs = mb.run(path, tmp_path / "out", workers=1, methods=own(100), quiet=True).set_index("method")
    assert list(runs.index) == ["LR", "Mine", "Zero"]
    assert (runs["status"] == "ok").all()
    again = mb.run(path, tmp_path / "out", methods=own(100), quiet=True, limit=1).set_index("method")
    assert again["key"].equals(runs["key"])
    other = mb.run(path, tmp_path / "out", methods=own(1), quiet=True, only="method=LR").set_index("method")
    assert other["key"].drop("Mine").equals(runs["key"].drop("Mine"))
    assert other.loc["Mine", "key"] != runs.loc["Mine", "key"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (make_pipeline(FunctionTransformer(lambda x: x), LogisticRegression()), "cannot be described, since it has no"),
        (LogisticRegression, "methods: Mine: needs an object with fit and predict, not LogisticRegression"),
        (StandardScaler(), "methods: Mine: needs an object with fit and predict, not StandardScaler"),
    ],
)
def test_what_cannot_be_described_is_refused(given, says, tmp_path):
    with pytest.raises(BenchError, match=says):
        mb.run(mine(tmp_path, {"LR": {"scheme": "logistic_regression"}}), tmp_path / "out", methods={"Mine": given})


def test_a_suite_cannot_name_what_only_a_session_holds(tmp_path, capsys):
    method = {"scheme": {"estimator": {"described": {"class": "os.system"}}}}
    path = mine(tmp_path, {"LR": {"scheme": "logistic_regression"}, "mine": method})
    assert main(["run", path, "--out", str(tmp_path / "out"), "--executor", "inline"]) == 2
    assert "this one is of another Python session; give it to msda_bench.run" in capsys.readouterr().err


@component
class OfClasses(Own):
    """An estimator of classes."""

    tasks = ("classification",)


def test_both_forms_keep_the_contract(tmp_path):
    data(tmp_path)
    of_file = Own(file=str(tmp_path / "my_models.py"), function="either")
    held = OfClasses(described={"class": "bayes"})
    object.__setattr__(held, "held", LogisticRegression())
    for scheme in (of_file, held):
        assert broken(scheme) == []
