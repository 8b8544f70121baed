"""`msda-bench data identify` of tables and arrays, and the suites that it writes."""

import importlib.util
import re
import shlex

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.api import DataError
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench_builtin.datasets import Hospitals
from tests.reader import Reader, blocks


def table(folder, rows=60):
    """Three sites, of which one has one class alone and one no labels; a leak, an identifier and a damaged number."""
    path = folder / "t.csv"
    lines = ["site,ill,age,name,code,dose,empty,note,visit"]
    for site in "abcd":
        for row in range(rows):
            ill = {"c": "1", "d": ""}.get(site, str(row * 7 % 5 % 2))
            dose = "much" if row == 3 else str(row % 4)
            note = f"{'good' if row % 2 else 'bad'} day"
            fields = (site, ill, row * 3.5, f"{site}{row}", "xy"[ill == "1"], dose, "", note, f"{site}{row // 3}")
            lines.append(",".join(map(str, fields)))
    path.write_text("\n".join(lines))
    return path


def test_a_table_is_looked_through_and_its_first_suite_is_valid(identify, tmp_path, capsys, golden):
    suite = tmp_path / "suites" / "mine.yaml"
    suite.parent.mkdir()
    options = shlex.split("--domain site --label ill --text note --group visit --unlabelled drop --suite")
    code, out, _ = identify(table(tmp_path), *options, suite)
    assert code == 0
    golden("table.txt", "\n".join(out[1:-1]).replace(f"{tmp_path}/", ""))
    assert 'file: "../t.csv"' in suite.read_text()
    assert main(["validate", str(suite)]) == 0
    schemes = r"pooled|ensemble|adapt|target_only|joint|regularised|\w+_regression|\w+_boosting|\w+_forest|skada"
    methods = re.findall(rf"^  ([\w-]+) +(?:{schemes})", capsys.readouterr().out, re.MULTILINE)
    # One source alone: nothing to weigh.
    controls = ["SRC-domain", "logistic", "logistic-domain", "forest", "forest-domain"]
    assert methods == ["SRC", "CORAL", "DANN", *controls, "TAR"]
    suite.write_text(suite.read_text().replace('file: "../t.csv"', "file: 5"))
    assert main(["validate", str(suite)]) == 2
    assert "dataset.table.file: must be text, not 5 (put it in quotes)" in capsys.readouterr().err


@pytest.mark.parametrize("shared", [False, True])
def test_a_domain_without_labels_is_the_target_of_the_suite(told, tmp_path, shared):
    """If groups lie in several domains, the target is held out, and some of its rows alone are answered."""
    path, suite = table(tmp_path), tmp_path / "mine.yaml"
    path.write_text(re.sub(r",[abcd](\d+)$", r",\1" if shared else r",v\1", path.read_text(), flags=re.MULTILINE))
    options = shlex.split(f"--domain site --label ill {'--group visit' if shared else ''} --suite")
    said = told(path, *options, suite)
    assert "180 rows of 3 domains" in said
    assert "targets without labels: d; how good a method is there cannot be known, and validators choose" in said
    assert "(no label) 0 0 60" in said
    text = suite.read_text()
    assert ("transductive" in text, "TAR" in text, "compare" in text) == (not shared, False, False)
    assert main(["validate", str(suite)]) == 0


def test_following_the_page_on_own_data_ends_in_a_verdict(tmp_path, monkeypatch):
    monkeypatch.undo()  # the real folders of data
    data = Hospitals()
    try:
        [LocalFiles(dataset=data.name).path(file) for file in data.files]
    except DataError as error:
        pytest.skip(str(error))
    reader = Reader(tmp_path)
    lines = [
        block._replace(text=line)
        for block in blocks("own-data.md")
        for line in (block.text.splitlines() if block.language == "console" else [block.text])
    ]
    for line in lines:
        reader.follow(line)
        for suite in reader.place.glob("*.yaml"):  # smaller than the page's
            text = suite.read_text().replace("targets: all", "targets: [hungary]").replace("budget: 3", "budget: 1")
            text = re.sub(r"  (boosting|CORAL-logistic|\S+-domain): .*\n", "", text)
            text = re.sub(r"seeds: \d+", "seeds: 1", text).replace("0.001, 0.003, 0.01", "0.003")
            suite.write_text(text.replace("epochs: 8, steps: 30", "epochs: 2, steps: 10"))
    said = " ".join(reader.said.split())
    assert "table: 920 rows of 4 domains, classification, 2 classes" in said
    assert "is valid: 1 experiment, 10 runs" in said
    assert "balanced accuracy in percent" in said
    assert "10 of 10 runs selected: 10 trained" in said
    assert "wrote answers.csv: 200 answers of logistic" in said
    assert said.count("is valid: 1 experiment") == 1
    assert re.search(r"\[\[[\d. ]+\] \[[\d. ]+\]\] \['no' 'yes'\]", said)
    answers = pd.read_csv(reader.place / "answers.csv")
    assert [*answers] == ["hospital", "predicted", "probability_no", "probability_yes"]
    assert (answers["hospital"] == "long_beach").all()


@pytest.mark.parametrize("missing", [0, 30])
def test_embeddings_of_a_data_frame_keep_whole_labels_and_missing_ones(missing, identify, tmp_path):
    """A missing label makes NumPy cut texts that come from pyarrow to one letter, so that sites and classes merge."""
    pytest.importorskip("pyarrow")
    made = pd.DataFrame({"label": ["benign", "broken"] * 120, "site": np.repeat(["north", "nord", "east"], 80)})
    made["embedding"] = list(np.random.default_rng(0).normal(size=(240, 4)))
    made.loc[np.arange(missing) * 8, "label"] = None
    made.to_parquet(tmp_path / "embeddings.parquet")
    code, out, _ = identify(tmp_path / "embeddings.parquet", "--domain", "site", "--label", "label")
    assert code == 0
    assert f"arrays: {240 - missing} rows of 3 domains, classification, 2 classes" in out
    each = missing // 3
    assert {f"benign {40 - each} {40 - each} {40 - each}", "broken 40 40 40"} <= set(out)
    said = [line for line in out if line.startswith("no label: ")]
    assert [line.partition(" rows ")[0] for line in said] == [f"no label: {missing}"] * bool(missing)


def test_given_predictions_are_a_reference_row_of_the_suite(identify, tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{site},{rng.random():.3f},{row % 2},{row % 3 % 2}" for site in "abc" for row in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["site,x,y,vendor", *lines]))
    site, y = np.repeat(["a", "b", "c"], 30), np.tile([0, 1], 45)
    np.savez(tmp_path / "t.npz", x=rng.normal(size=(90, 3)), y=y, site=site, vendor=y)
    for name in ("t.csv", "t.npz"):
        suite = tmp_path / f"{name}.yaml"
        options = shlex.split("--domain site --label y --predictions vendor --suite")
        code, out, _ = identify(tmp_path / name, *options, suite)
        assert (code, "vendor" in " ".join(out[2:-1])) == (0, False)  # no input, and so no leak
        assert main(["validate", str(suite)]) == 0
        (given,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  given ")]
        assert given.endswith("(reference)")


def test_a_suite_has_plain_models_with_and_without_adaptation_or_a_line_on_how_to_get_them(
    identify, tmp_path, monkeypatch
):
    known, missing = importlib.util.find_spec, []
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in missing else known(name, *rest)
    )

    def written(name, label):
        code, out, _ = identify(table(tmp_path), *options, "--label", label, "--suite", tmp_path / name)
        assert code == 0
        return (tmp_path / name).read_text(), " ".join(out)

    options = shlex.split("--domain site --unlabelled drop")
    classes, _ = written("classes.yaml", "ill")
    number, _ = written("number.yaml", "age")
    assert "logistic-domain: " in classes
    assert "CORAL-" not in classes  # one source alone
    assert "ridge-domain: " in number
    assert "CORAL-ridge: " in number
    missing.append("sklearn")
    without, said = written("without.yaml", "ill")
    assert "the suite has no plain models; pip install '.[sklearn]' in the clone, and write it again" in said
    assert "SRC-domain: " in without
    assert "logistic" not in without


@pytest.mark.parametrize("units", ["words", "characters"])
def test_texts_without_blanks_are_read_by_their_characters(units, identify, tmp_path, capsys):
    """Each text is a sentence without blanks of its own; what is good or bad is a pair of characters in it."""
    draw = np.random.default_rng(0)
    rows = ["shop,text,good"]
    for row in range(240):
        before, after = ("".join(map(chr, draw.integers(0x4E00, 0x4F00, 4))) for _ in range(2))
        pair, label = (("很差", "no"), ("不错", "yes"))[row // 3 % 2]
        rows.append(f"{'abc'[row % 3]},{before}{pair}{after},{label}")
    (tmp_path / "shops.csv").write_text("\n".join(rows) + "\n")
    suite = tmp_path / "shops.yaml"
    ask = [tmp_path / "shops.csv", "--domain", "shop", "--label", "good"]
    assert any("to learn from its words name it by --text" in line for line in identify(*ask)[2])
    code, out, err = identify(*ask, "--text", "text", "--suite", suite)
    assert (code, err) == (0, [])
    assert any(line.startswith("text: column 'text' puts no blanks") for line in out)
    table = suite.read_text()[: suite.read_text().index("targets:")]
    assert 'units: "characters"' in table
    table = table.replace('units: "characters"', f"units: {units}")
    rest = "targets: [a]\nseeds: 1\nbackbone: mlp\ntraining: {epochs: 1, batch: 16, optimizer: {adam: {lr: 0.01}}}\n"
    suite.write_text(f"{table}{rest}methods: {{logistic: {{scheme: logistic_regression}}}}\n")
    assert main(["run", str(suite), "--executor", "inline", "--out", str(tmp_path)]) == 0
    score = mb.load_results(tmp_path / "shops-csv")["score"].item()
    assert score > 95 if units == "characters" else score < 80
