"""`msda-bench predict` and `mb.fit`: a method trained on all labelled rows answers new files."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.errors import BenchError

ROWS = 40
SUITE = """
schema: 1
name: clinics
dataset: {{table: {{file: {file}, domain: clinic, label: again, drop: [patient], {more}}}}}
targets: {targets}
seeds: [3]
backbone: {{mlp: {{hidden: [8], norm: batch}}}}
training: {{epochs: 2, batch: 10, steps: 8, optimizer: {{adam: {{lr: 0.01}}}}}}
keep: [predictions]
{select}
methods:
{methods}
"""
METHODS = """
  SRC: {scheme: pooled}
  DANN: {scheme: pooled, discrepancy: d_A, mu: 0.1}
  SHOT: {scheme: shot}
  AdaBN: {scheme: adabn}
  alike: {scheme: pooled, standardise: domain}
  shares: {scheme: pooled, prior_correction: em}
  logistic: {scheme: logistic_regression}
  boosting: {scheme: gradient_boosting, standardise: domain}
  CORAL: {scheme: {skada: {adapter: CORAL}}}
  Mine: {estimator: "mine.py:make"}
  Seeing: {estimator: "mine.py:make", sees: target}
"""
MINE = """
import numpy as np

class Nearest:
    # The class whose mean is nearest; of the rows of the target that it is given it keeps the number.
    def fit(self, X, y, sample_domain=None):
        known = y >= 0
        self.classes_, self.rows_ = np.unique(y[known]), int((~known).sum())
        self.means_ = np.stack([X[known & (y == label)].mean(0) for label in self.classes_])
        return self

    def predict_proba(self, X, sample_domain=None):
        away = ((X[:, None] - self.means_) ** 2).sum(2) * (1 + self.rows_)
        shares = np.exp(away.min(1, keepdims=True) - away)
        return shares / shares.sum(1, keepdims=True)

    def predict(self, X, sample_domain=None):
        return self.classes_[self.predict_proba(X).argmax(1)]

def make():
    return Nearest()
"""
NAMES = ("age", "crp", "bmi", "sex", "ward")


def clinics(seed=0):
    """Rows of four clinics; the last, `new`, has no extreme number and no value that the others lack."""
    rng = np.random.default_rng(seed)
    parts = []
    for clinic in ("North", "South", "East", "new"):
        z = rng.normal(size=(ROWS, 3)).clip(-2, 2)
        part = pd.DataFrame({
            "clinic": clinic,
            "patient": [f"{clinic}-{number}" for number in range(ROWS)],
            "age": (50 + 10 * z[:, 0]).round(1),
            "crp": np.exp(z[:, 1]).round(3),
            "bmi": (25 + 3 * z[:, 2]).round(1).astype(object),
            "sex": rng.choice(["f", "m"], ROWS),
            "ward": rng.choice(["1", "2", "3"], ROWS),
            "again": np.where(z[:, 0] + z[:, 1] + rng.normal(size=ROWS) > 0, "yes", "no"),
        })  # fmt: skip
        part.loc[0, "bmi"] = ""
        if clinic == "North":
            part.loc[1, ["age", "crp", "bmi"]] = [20.0, 0.01, 10.0]
            part.loc[2, ["age", "crp", "bmi"]] = [90.0, 30.0, 45.0]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with three labelled clinics, the rows of a fourth, and a suite."""
    monkeypatch.chdir(tmp_path)
    table = clinics()
    table[table["clinic"] != "new"].to_csv("known.csv", index=False)
    table[table["clinic"] == "new"].drop(columns="again").to_csv("lake.csv", index=False)
    write_suite("mine.yaml")
    Path("mine.py").write_text(MINE)
    return tmp_path


@pytest.fixture
def predict(said):
    """`predict("mine.yaml new.csv")`: what the command says beside the answers; or the line with which it refuses."""

    def run(words, *, code=0):
        ended, out, err = said(f"predict {words}")
        assert ended == code, err
        if code:
            assert (out, len(err)) == ([], 1)
        return err

    return run


def write_suite(name, file="known.csv", more="", targets="all", select="", methods=METHODS):
    text = SUITE.format(file=file, more=more, targets=targets, select=select, methods=methods)
    Path(name).write_text(text.replace(", }}}", "}}").replace(", }", "}"))


@pytest.mark.slow
def test_the_answers_are_those_of_the_suites_own_run_on_the_same_rows(folder, said, predict):
    table = clinics()
    table.loc[table["clinic"] == "new", "again"] = ""
    table.to_csv("all.csv", index=False)
    more = "unlabelled: target, protocol: transductive, train: all"
    write_suite("held.yaml", "all.csv", more, "[new]", "validators: [bnm]")
    assert said("run held.yaml --device cpu --executor inline --quiet --trust-files")[0] == 0
    runs = mb.load_results("results/clinics")
    recorded = mb.load_predictions(runs).set_index("row").sort_index()
    for method in runs["method"].unique():
        predict(f"mine.yaml lake.csv --method {method} --out {method}.csv --trust-files")
        answers = pd.read_csv(f"{method}.csv")
        mine = recorded[recorded["method"] == method]
        assert answers["patient"].tolist() == [f"new-{number}" for number in range(ROWS)]
        assert answers["predicted"].tolist() == mine["predicted"].map({0: "no", 1: "yes"}).tolist(), method
        np.testing.assert_allclose(answers["probability_yes"], mine["probability_1"], atol=1e-6, err_msg=method)


def changed(text, **columns):
    """The rows of lake.csv with other columns; `text` names a file that they are written to."""
    rows = pd.read_csv("lake.csv", dtype=str, keep_default_na=False).assign(**columns)
    rows.to_csv(text, index=False)
    return rows


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"age": None}, "no column 'age'"),
        ({"age": ["old"] * ROWS}, "'old' in row 1"),
        ({"crp": ["1,019"] * ROWS}, "thousands separators"),
        ({"bmi": ["1e40"] * ROWS}, "too large"),
        ({"sex": ["0", "1"] * (ROWS // 2)}, "none of the values that were learned from, 'f', 'm'"),
        ({"predicted": ["yes"] * ROWS}, "'predicted' is also the name"),
        ({"clinic": ["new", ""] * (ROWS // 2)}, "row 2 has no domain"),
    ],
    ids=lambda given: "" if isinstance(given, str) else next(iter(given)),
)
def test_rows_that_cannot_be_answered_right_are_one_line(folder, predict, columns, words):
    rows = changed("bad.csv", **columns)
    rows.dropna(axis=1).to_csv("bad.csv", index=False)
    (line,) = predict("mine.yaml bad.csv --method SRC --quiet", code=2)
    assert line.startswith("msda-bench: error: bad.csv: ")
    assert words in line
    assert not Path("answers.csv").exists()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"age": [str(24 * (30 + year)) for year in range(ROWS)]}, "column 'age' is 2"),
        ({"sex": ["d"] + ["f"] * (ROWS - 1)}, "column 'sex' has values that were never learned from in 1 rows: 'd'"),
        ({"crp": [""] + ["1.5"] * (ROWS - 1)}, "column 'crp' lacks a number in 1 rows"),
        ({"bmi": [""] * ROWS}, "column 'bmi' is empty"),
        ({"again": ["no"] * ROWS}, "column 'again' (label) is copied to the answers, and used for nothing"),
        (
            {"again": ["never"] * ROWS},
            "column 'again' (label) is copied to the answers, and used for nothing; 'never' in it is no class",
        ),
    ],
    ids=lambda given: "" if isinstance(given, str) else next(iter(given)),
)
def test_what_is_doubtful_about_new_rows_is_a_line(folder, predict, columns, words):
    changed("odd.csv", **columns)
    said = predict("mine.yaml odd.csv --method logistic --quiet")
    assert sum(f"odd.csv: {words}" in line for line in said) == 1
    assert np.isfinite(pd.read_csv("answers.csv")["probability_no"]).all()


def test_labels_of_new_rows_are_used_for_nothing_and_their_order_of_columns_does_not_matter(folder, predict):
    changed("turned.csv", again=["no", "yes"] * (ROWS // 2)).iloc[:, ::-1].to_csv("turned.csv", index=False)
    for file in ("lake", "turned"):
        predict(f"mine.yaml {file}.csv --method DANN --out {file}-answers.csv --quiet")
    first, other = (pd.read_csv(f"{file}-answers.csv") for file in ("lake", "turned"))
    pd.testing.assert_frame_equal(first, other[[*first]])


def test_each_domain_of_a_new_file_is_a_target_of_its_own(folder, predict):
    lake = pd.read_csv("lake.csv", dtype=str)
    south = lake.iloc[:25].assign(clinic="South")
    answers = []
    for name, rows in (("two", pd.concat([lake, south])), ("lake", lake), ("south", south)):
        rows.to_csv(f"{name}.csv", index=False)
        said = predict(f"mine.yaml {name}.csv --method alike --out {name}-answers.csv")
        assert sum("trained on" in line for line in said) == rows["clinic"].nunique()
        answers.append(pd.read_csv(f"{name}-answers.csv"))
    pd.testing.assert_frame_equal(answers[0], pd.concat(answers[1:], ignore_index=True))
    with pytest.raises(BenchError, match="has 2 domains"):
        mb.fit("mine.yaml", "alike", "two.csv")


def test_domains_that_the_dataset_makes_alike_are_targets_of_every_method(folder, said):
    table = clinics()
    table.loc[table["clinic"] == "new", "again"] = ""
    table.to_csv("all.csv", index=False)
    methods = "\n  logistic: {scheme: logistic_regression}"
    held = "unlabelled: target, protocol: transductive, train: all, standardise: domain"
    write_suite("held.yaml", "all.csv", held, "[new]", "validators: [bnm]", methods)
    assert said("run held.yaml --device cpu --executor inline --quiet")[0] == 0
    recorded = mb.load_predictions("results/clinics").set_index("row").sort_index()
    write_suite("mine.yaml", more="standardise: domain", methods=methods)
    new = pd.read_csv("lake.csv", dtype={"ward": str}).assign(age=lambda rows: 18 * rows["age"])  # another unit
    model = mb.fit("mine.yaml", "logistic", new, device="cpu")
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], recorded["probability_1"], atol=1e-5)


LOADED = """
import sys, joblib
model = joblib.load(sys.argv[1])
model.answers("lake.csv").to_csv(sys.argv[2], index=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DANN", "Mine"])
def test_a_stored_model_predicts_the_same_in_another_process_without_the_suite(folder, predict, method):
    predict(f"mine.yaml lake.csv --method {method} --quiet --trust-files")
    model = mb.fit("mine.yaml", method, "lake.csv", device="cpu", trust_files=True)
    answers = pd.read_csv("answers.csv")
    assert model.predict("lake.csv").tolist() == answers["predicted"].tolist()
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba("lake.csv")[:, 1], answers["probability_yes"], atol=1e-12)
    joblib = pytest.importorskip("joblib")
    joblib.dump(model, "model.joblib")
    assert b"North-1" not in Path("model.joblib").read_bytes()
    for name in ("mine.yaml", "known.csv", "mine.py"):
        Path(name).unlink()
    subprocess.run([sys.executable, "-c", LOADED, "model.joblib", "loaded.csv"], check=True, timeout=120)
    pd.testing.assert_frame_equal(pd.read_csv("loaded.csv"), answers)


def test_what_cannot_be_trained_for_new_rows_is_one_line(folder, predict):
    methods = "\n  TAR: {scheme: target_only, reference: true}\n  Mine: {estimator: 'mine.py:make'}"
    write_suite("other.yaml", methods=f"\n  SRC: {{scheme: pooled}}{methods}")
    Path("there.csv").write_text("x")
    for words, expected in {
        "--method SCR": "no method 'SCR' (did you mean 'SRC'?)",
        "--method TAR": "TAR: learns from labels of the target",
        "--method Mine": "add --trust-files",
        "--method SRC --out there.csv": "there.csv: already there",
    }.items():
        assert expected in predict(f"other.yaml lake.csv {words}", code=2)[0]
    assert Path("there.csv").read_text() == "x"
    assert "known.csv: " not in predict("other.yaml none.csv --method SRC", code=2)[0]
    with pytest.raises(BenchError, match="give its rows as `target`"):
        mb.fit("mine.yaml", "DANN")


SELECT = "select: {how: grid, budget: 2, by: source_accuracy, space: {training.optimizer.adam.lr: [0.00001, 0.1]}}"


def test_selected_settings_are_those_that_were_selected_most_often(folder, said, predict):
    write_suite("search.yaml", select=SELECT, methods="\n  SRC: {scheme: pooled}")
    search = "search.yaml lake.csv --method SRC"
    assert "run `msda-bench run search.yaml` first" in predict(search, code=2)[0]
    assert said("run search.yaml --device cpu --executor inline --quiet")[0] == 0
    assert "SRC: training.optimizer.adam.lr 0.1; selected in 2 of 3 (source_accuracy)" in predict(search)[0]
    write_suite("fixed.yaml", methods="\n  SRC: {scheme: pooled}")
    Path("fixed.yaml").write_text(Path("fixed.yaml").read_text().replace("lr: 0.01", "lr: 0.1"))
    predict("fixed.yaml lake.csv --method SRC --out fixed.csv --quiet")
    assert Path("fixed.csv").read_text() == Path("answers.csv").read_text()


def test_numbers_are_answered_in_the_users_unit_and_text_is_read_as_in_training(folder, predict):
    rng = np.random.default_rng(1)
    words = np.array(["bad", "fair", "good"])
    table = clinics()
    price = rng.integers(0, 3, len(table))
    table["note"] = [f"{words[number]} stay {rng.integers(9)}" for number in price]
    table["again"] = (1000 + 200 * price + rng.normal(size=len(table))).round(2)
    table[table["clinic"] != "new"].to_csv("known.csv", index=False)
    new = table[table["clinic"] == "new"]
    new.drop(columns="again").to_csv("lake.csv", index=False)
    write_suite("price.yaml", more="text: note", methods="\n  ridge: {scheme: ridge}")
    predict("price.yaml lake.csv --method ridge --quiet")
    answers = pd.read_csv("answers.csv")
    assert [*answers] == ["clinic", "patient", "predicted"]
    assert np.abs(answers["predicted"] - new["again"].to_numpy()).mean() < 30
    table.loc[3, "note"] = "good stay zanzibar"
    table[table["clinic"] != "new"].to_csv("known.csv", index=False)
    stored = pickle.dumps(mb.fit("price.yaml", "ridge", quiet=True))
    assert (b"good stay" in stored, b"zanzibar" in stored) == (True, False)
    assert np.abs(pickle.loads(stored).predict("lake.csv") - answers["predicted"]).max() < 30  # noqa: S301 - our own


@pytest.mark.parametrize("shape", [(6,), (2, 16)], ids=["features", "signals"])
def test_arrays_are_answered_with_their_other_arrays_beside(tmp_path, monkeypatch, predict, shape):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    x = (rng.normal(size=(120, *shape)) + y.reshape(-1, *[1] * len(shape))).astype(np.float32)
    person, name = np.repeat(["a", "b", "c"], 40), np.array(["rest", "walk"])
    if len(shape) > 1:
        x[::7, :, 12:] = np.nan  # shorter ones
    np.savez("known.npz", x=x, y=name[y], person=person)
    np.savez(
        "new.npz",
        x=x[:30],
        window=np.arange(30),
        y=name[1 - y[:30]],
        more=x[:30, ..., :2],
        names=np.array(["a", 1, None], object),
    )
    signals = ", signals: channels_first" if len(shape) > 1 else ""
    network = "convnet1d" if len(shape) > 1 else "linear"
    Path("mine.yaml").write_text(f"""
schema: 1
name: arrays
dataset: {{arrays: {{file: known.npz, domain: person{signals}}}}}
seeds: 1
backbone: {network}
training: {{epochs: 2, batch: 10, steps: 10, optimizer: {{adam: {{lr: 0.01}}}}}}
methods: {{SRC: {{scheme: pooled}}, DANN: {{scheme: pooled, discrepancy: d_A, mu: 0.1}}}}
""")
    for method in ("SRC", "DANN"):
        said = predict(f"mine.yaml new.npz --method {method} --out {method}.csv --quiet")
        assert any("'y' (label) is copied to the answers" in line for line in said)
        assert any(line.endswith("are not copied to the answers: more, names") for line in said)
        answers = pd.read_csv(f"{method}.csv")
        assert [*answers] == ["window", "y", "predicted", "probability_rest", "probability_walk"]
        assert (answers["predicted"] == name[y[:30]]).mean() > 0.8  # labels of new rows, all wrong, are not used
    np.savez("wide.npz", x=np.zeros((5, *shape[:-1], 40)))
    np.savez("large.npz", x=1000 * x[:30])
    np.savez("none.npz", y=y)
    wrong = {"wide.npz": "rows of shape", "none.npz": "no array 'x'", "mine.yaml": "is no npz archive"}
    for file, words in wrong.items():
        assert words in predict(f"mine.yaml {file} --method SRC", code=2)[0]
    said = predict("mine.yaml large.npz --method SRC --quiet")
    assert sum("in another unit?" in line for line in said) == 1


def test_images_are_answered_by_their_paths(tmp_path, monkeypatch, said, predict):
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))
    rng = np.random.default_rng(0)

    def draw(path, colour):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = (rng.integers(0, 60, (9, 9, 3)) + 150 * np.eye(3, dtype=int)[colour]).astype(np.uint8)
        Image.fromarray(pixels).save(path)

    for number in range(24):
        for domain in ("photo", "sketch"):
            draw(Path("pictures", domain, ("Red", "green")[number % 2], f"{number}.png"), number % 2)
    for number in range(8):
        draw(Path("new", "day", f"{number}.png"), number % 2)
    Path("new", "notes.txt").write_text("x")
    assert said("data identify pictures --suite mine.yaml")[0] == 0
    head, _, _ = Path("mine.yaml").read_text().partition("targets:")
    Path("mine.yaml").write_text(
        head.replace("side: 224", "side: 8")
        + """
seeds: 1
backbone: {mlp: {hidden: [8]}}
training: {epochs: 3, batch: 8, steps: 20, optimizer: {adam: {lr: 0.01}}}
methods: {SRC: {scheme: pooled}, DANN: {scheme: pooled, discrepancy: d_A, mu: 0.1}}
"""
    )
    for method in ("SRC", "DANN"):
        said_beside = predict(f"mine.yaml new --method {method} --out {method}.csv --quiet")
        assert any("not read, since they are no images: 1 .txt" in line for line in said_beside)
        answers = pd.read_csv(f"{method}.csv")
        assert [*answers] == ["file", "predicted", "probability_green", "probability_Red"]
        assert answers["file"].tolist() == [f"day/{number}.png" for number in range(8)]
        assert answers["predicted"].tolist() == ["Red", "green"] * 4
    Path("new", "day", "0.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    code, out, err = said("predict mine.yaml new --method SRC --quiet")
    assert (code, out) == (2, [])
    assert "day/0.png" in err[-1]
