"""`msda-bench data identify` of folders and files with something beside, above or between their rows."""

import gzip

import numpy as np
import pytest
import scipy.sparse

from msda_bench.api import DataError
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench_builtin.datasets import Arrays, Table
from tests.cli.identify.conftest import refused

HEAD = "site,u,v,y\n"
ROLES = ("--domain", "site", "--label", "y")


def rows(site):
    return "".join(f"{site},{row * 37 % 11}.5,{row * 5 % 7},{'pn'[row * 7 % 5 % 2]}\n" for row in range(30))


def bare(text):
    """Without the first column."""
    return "".join(line.partition(",")[2] for line in text.splitlines(keepends=True))


def written(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


LINES = {
    "header": (
        HEAD + rows("a") + "\ufeff" + HEAD + rows("b"),
        "line 32 repeats the names of the columns, as `cat",
    ),
    "units": (
        HEAD + ",mV,m/s2,\n" + rows("a") + rows("b"),
        "row 1 has texts where all other rows have numbers ('u'",
    ),
    "questions": (
        HEAD + "where,how much,how fast,what\n,ID 7,ID 8,\n" + rows("a") + rows("b"),
        "rows 1 to 2 have",
    ),
    "decimal commas": (
        (HEAD + ",mV,,\n" + rows("a") + rows("b")).replace(",", ";").replace(".", ","),
        "row 1 has texts where all other rows have numbers ('u' 'mV')",
    ),
    "carriage return": (
        HEAD + rows("a") + rows("b").replace("b,", "b\r,", 1),
        "line 32 has 1 fields, but there are 4 columns: 'b'; a carriage return alone ends a line here",
    ),
    "none": (HEAD + "a,?,2,p\n" + "a,x,2,p\na,w,3,n\n" + rows("b").replace(".5", "x"), ""),
}


@pytest.mark.parametrize(("text", "says"), LINES.values(), ids=LINES)
def test_a_line_that_is_no_row_is_named(identify, tmp_path, text, says):
    (tmp_path / "t.csv").write_text(text, newline="")
    result = identify(tmp_path / "t.csv", *ROLES)
    assert says in refused(result) if says else result[0] == 0


def test_what_lies_beside_the_tables_of_a_folder_is_named(identify, tmp_path):
    folder = written(tmp_path / "sites", a=HEAD + rows("a"), b=HEAD + rows("b"))
    (folder / "codebook.xlsx").write_bytes(b"PK")
    (folder / ".hidden").write_text("x")
    assert identify(folder, *ROLES)[1][-1] == "read 60 of 60 rows, 2 of 2 columns of inputs; not read: codebook.xlsx"
    (folder / "README.csv").write_text("column,meaning\nu,voltage\n")
    line = refused(identify(folder, *ROLES))
    assert "README.csv: its columns (column, meaning) are not those of a.csv, site, u, v, y; move the file" in line
    (folder / "README.csv").unlink()
    (folder / "a.tsv").write_text((HEAD + rows("a")).replace(",", "\t"))
    assert "a.csv and a.tsv are two files of one name" in refused(identify(folder, *ROLES))
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "north.xlsx").write_bytes(b"PK")
    assert "north.xlsx: is a workbook" in refused(identify(tmp_path / "books", "--label", "y"))


@pytest.mark.parametrize("named_in_files", [True, False])
def test_folders_with_a_name_and_a_value_are_a_column(identify, tmp_path, named_in_files):
    for site in ("a", "b c"):
        folder = tmp_path / "hive" / f"site={site.replace(' ', '%20')}" / "year=2020"
        folder.mkdir(parents=True)
        text = HEAD + rows(site)
        (folder / "part-0.csv.gz").write_bytes(gzip.compress((text if named_in_files else bare(text)).encode()))
        (folder / "_SUCCESS").touch()
    suite = tmp_path / "mine.yaml"
    code, out, _ = identify(tmp_path / "hive", *ROLES, "--suite", suite)
    assert code == 0
    assert "the names of folders, such as site=a/year=2020, are the columns site, year" in out
    assert "all 30 30" in out
    assert any("not read: year, site=a/year=2020/_SUCCESS" in line for line in out)
    (tmp_path / "t.csv").write_text(HEAD + rows("a") + rows("b c"))
    whole, parts = (Table(file=str(tmp_path / name), domain="site", label="y") for name in ("t.csv", "hive"))
    for domain in ("a", "b c"):
        np.testing.assert_array_equal(whole.load(domain, LocalFiles()).x, parts.load(domain, LocalFiles()).x)
    (tmp_path / "hive" / "site=a").rename(tmp_path / "hive" / "site=d")
    if named_in_files:
        assert "column 'site' holds a, but its folder is site=d" in refused(identify(tmp_path / "hive", *ROLES))
    (tmp_path / "hive" / "site=d").rename(tmp_path / "hive" / "place=d")
    assert "lie in folders of different columns" in refused(identify(tmp_path / "hive", *ROLES))
    written(tmp_path / "deep", x="").rename(tmp_path / "hive" / "b")
    (tmp_path / "above").mkdir()
    (tmp_path / "hive" / "b").rename(tmp_path / "above" / "b")
    line = refused(identify(tmp_path / "above", *ROLES))
    assert "its files lie in folders, such as b/x.csv; put the files of all domains into one folder" in line


def test_a_folder_of_archives_has_a_domain_for_each_file(identify, tmp_path, capsys):
    x, y = np.random.default_rng(0).normal(size=(60, 2, 9)).astype("float32"), np.arange(60) * 7 % 5 % 2
    folder = tmp_path / "subjects"
    folder.mkdir()
    for place, name in enumerate(("s1", "s2", "s3")):
        mine = slice(20 * place, 20 * place + 20)
        np.savez(folder / f"{name}.npz", x=x[mine], y=y[mine])
    (folder / "notes.txt").write_text("by me")
    suite = tmp_path / "mine.yaml"
    code, out, _ = identify(folder, "--label", "y", "--suite", suite)
    assert main(["validate", str(suite)]) == 0
    assert (code, "class s1 s2 s3" in out, "read 60 of 60 rows; not read: notes.txt" in out) == (0, True, True)
    capsys.readouterr()
    np.savez(tmp_path / "t.npz", x=x, y=y, site=np.repeat(["s1", "s2", "s3"], 20))
    whole = Arrays(file=str(tmp_path / "t.npz"), domain="site")
    parts = Arrays(file=str(folder))
    np.testing.assert_array_equal(whole.load("s2", LocalFiles()).x, parts.load("s2", LocalFiles()).x)
    before = parts.fingerprint()
    np.savez(folder / "s2.npz", x=x[:20], y=y[20:40])
    assert parts.fingerprint() != before
    np.savez(folder / "s2.npz", x=x[20:40, :1], y=y[20:40])
    line = refused(identify(folder, "--label", "y"))
    assert "s2.npz: array 'x' holds float32 of shape (20, 1, 9), but in s1.npz float32 of shape (20, 2, 9)" in line
    np.savez(folder / "s2.npz", x=x[20:40, :, :7], y=y[20:40])  # a shorter recording
    assert "padded series of 7 to 9 times" in "\n".join(identify(folder, "--label", "y")[1])
    longer = np.concatenate([x, np.full((60, 2, 3), np.nan)], axis=2)
    reader = Arrays(file=str(folder), signals="channels_first").new_rows_reader(LocalFiles())
    for padded in (x[:, :, :5], longer):
        np.savez(tmp_path / "new.npz", x=padded)
        new = reader.read(tmp_path / "new.npz", LocalFiles()).data.x
        np.testing.assert_array_equal(new[:, :, :5], x[:, :, :5])
        assert new.shape == x.shape


def test_padded_series_and_sparse_matrices_are_called_so(identify, tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3, 9)).astype("float32")
    roles = {"y": np.arange(40) % 2, "site": np.repeat([0, 1], 20)}
    ends = np.where(np.arange(9) < np.arange(40)[:, None, None] % 5 + 4, x, np.nan)
    holes = np.where(np.arange(9) == 4, np.nan, x)
    for padded, says in (
        (ends, "40 of 40 rows of array 'x', first row 0, begin or end in NaN, the padding of series"),
        (np.moveaxis(ends, 1, 2), "begin or end in NaN"),
        (holes, "40 of 40 rows of array 'x', first row 0, have missing values (NaN); fill them"),
    ):
        np.savez(tmp_path / "t.npz", x=padded, **roles)
        assert says in refused(identify(tmp_path / "t.npz", *ROLES, "--signals", "none"))
    scipy.sparse.save_npz(tmp_path / "counts.npz", scipy.sparse.random(30, 9, 0.2, format="csr"))
    assert "is a sparse matrix of scipy alone" in refused(identify(tmp_path / "counts.npz", *ROLES))
    np.savez(tmp_path / "t.npz", x=np.array(scipy.sparse.eye(40), object), **roles)
    with pytest.raises(DataError, match=r"Python objects, which are never read; save .* its toarray"):
        Arrays(file=str(tmp_path / "t.npz"), domain="site").contents()
