"""`msda-bench data identify` of Parquet files with lists of numbers, as hubs store embeddings."""

import numpy as np
import pytest

from msda_bench.data import LocalFiles
from msda_bench_builtin.datasets import Arrays
from tests.cli.identify.conftest import refused
from tests.own import results

pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
ROLES = ("--domain", "site", "--label", "label")
ROWS, WIDTH = 60, 12
SITE = np.repeat(["a", "b", "c"], ROWS // 3)
LABEL = np.arange(ROWS) % 2
X = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)


def lists(kind="list", x=X):
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(x.reshape(-1), x.shape[1])
    if kind == "signals":
        return pa.array(x.reshape(len(x), 2, -1).tolist(), pa.list_(pa.list_(pa.float64())))
    return pa.array(list(x), pa.large_list(pa.float32()) if kind == "large" else pa.list_(pa.float32()))


def written(path, embedding, rows=slice(None), **more):
    columns = {"row": [f"r{row}" for row in range(ROWS)], "label": LABEL, "site": SITE, "weight": X[:, 0]} | more
    held = {name: pa.array(column)[rows] for name, column in columns.items()} | {"embedding": embedding[rows]}
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(held), path)
    return path


@pytest.mark.parametrize("kind", ["list", "large", "fixed", "signals"])
def test_a_column_of_lists_is_the_inputs_and_the_rest_is_named_with_shapes(kind, told, tmp_path):
    path, suite = written(tmp_path / "t.parquet", lists(kind)), tmp_path / "mine.yaml"
    said = told(path, *ROLES, "--suite", suite)
    assert f"arrays not read: row ({ROWS},), weight ({ROWS},)" in said
    assert ("signals: array 'embedding' (2, " in said) == (kind == "signals")
    data = Arrays(file=str(path), inputs="embedding", labels="label", domain="site")
    x = data.load("b", LocalFiles()).x
    assert x.reshape(len(x), -1).tolist() == X[SITE == "b"].tolist()
    assert data.load("b", LocalFiles()).y.tolist() == LABEL[SITE == "b"].tolist()


@pytest.mark.parametrize("hive", [False, True])
def test_a_folder_of_such_files_is_one_a_domain_and_trains(hive, identify, tmp_path):
    folder, suite = tmp_path / "hub", tmp_path / "mine.yaml"
    for place, site in enumerate("abc"):
        rows = slice(20 * place, 20 * place + 20)
        path = folder / f"site={site}" / "part-0.parquet" if hive else folder / f"{site}.parquet"
        parquet.write_table(
            parquet.read_table(written(path, lists(), rows), partitioning=None).drop(["site"]),
            path,
        )
    code, out, _ = identify(folder, *(ROLES if hive else ROLES[2:]), "--suite", suite)
    assert (code, "arrays: 60 rows of 3 domains, classification, 2 classes" in out) == (0, True)
    text = suite.read_text()
    few = text[: text.index("targets:")] + (
        "targets: [b]\nseeds: 1\nbackbone: {mlp: {hidden: [4]}}\nmethods: {SRC: {scheme: pooled}}\n"
        "training: {epochs: 1, batch: 4, optimizer: {adam: {}}}\n"
    )
    suite.write_text(few.replace('name: "hub"', "name: mine"))
    runs = results(str(suite))
    assert (runs["target"].tolist(), runs["status"].tolist()) == (["b"], ["ok"])


def test_lists_that_are_no_rows_of_numbers_are_one_line(identify, tmp_path):
    short, none, words = list(X), list(X), [["a", "b"]] * ROWS
    short[7], none[7] = X[7, :5], None
    numbers = pa.list_(pa.float32())
    cases = {
        "column 'embedding' holds lists of 5 to 12 numbers; make all of one length": pa.array(short, numbers),
        "row 7 of column 'embedding' has no list of numbers; remove the row": pa.array(none, numbers),
        "column 'embedding' holds list<": pa.array(words),
    }
    for says, column in cases.items():
        assert says in refused(identify(written(tmp_path / "t.parquet", column), *ROLES))
    two = written(tmp_path / "t.parquet", lists(), other=lists())
    line = refused(identify(two, *ROLES))
    held = f"row ({ROWS},), weight ({ROWS},), other ({ROWS}, ...), embedding ({ROWS}, ...)"
    assert f"which array holds the inputs? call it 'x'; it has {held}" in line
    assert "name the arrays of domains and labels by --domain and --label; it has row, label" in refused(identify(two))
