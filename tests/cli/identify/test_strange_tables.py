"""`msda-bench data identify` of tables as their owners have them: what is read, dropped, asked about, and said."""

import gzip
import re

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench_builtin.datasets import Table

N = 30


def lines(*, site=lambda site, row: site, label=lambda site, row: "yes" if row * 7 % 5 % 2 else "no", more=None):
    """Three sites of 30 rows with a number, and a column `more`."""
    made = ["site,x,y" + (",more" if more else "")]
    for place, name in enumerate("abc"):
        for row in range(N):
            extra = f",{more(name, row)}" if more else ""
            made.append(f"{site(name, row)},{(row * 37 % 11 + place) / 8},{label(name, row)}{extra}")
    return made


def quiet(row):
    return "yes" if row * 7 % 5 % 2 else "no"


def cut(text):
    """A label that is written otherwise in each fifth row."""
    return lambda site, row: text.format(quiet(row)) if row % 5 == 0 else quiet(row)


GAPS = (" ", "None", "<NA>", "#N/A", "n/a", "-nan", "NaT")
TABLES = {
    "blanks": lines(label=cut(" {} ")),
    "numbers": lines(label=lambda _, row: ["1", "1.0", "01", "2"][row % 4]),
    "forms": lines(site=lambda s, row: s + ["\u00e9", "e\u0301"][row % 2]),
    "case": lines(label=lambda _, row: ["yes", "Yes", "no"][row % 3]),
    "dot": lines(site=lambda s, row: s + "." * (row % 2)),
    "gaps": lines(label=lambda site, row: quiet(row) if row % 5 else GAPS[row // 5 + (site == "c")]),
    "dash": lines(label=cut("-")),
    "named gap": (lines(label=cut("-")), "--missing=-"),
    "mask": lines(label=lambda s, row: -1 if s == "c" else row % 2),
    "a mask of some rows": lines(label=lambda s, row: -1 if s == "c" and row % 3 else row % 2),
    "signs": lines(label=lambda _, row: "-1" if row % 2 else "1"),
    "masked": (lines(label=lambda s, row: -1 if s == "c" else row % 2), "--missing=-1"),
    "masked numbers": lines(label=lambda s, row: -1 if s == "c" else row / 7),
    "rows twice": [lines(more=lambda s, row: row)[0], *2 * lines(more=lambda s, row: ord(s) + row / 64)[1:]],
    "nothing but a leak": ["site,code,y", *(f"{'ab'[n % 2]},{'xy'[n // 2 % 2]},{n // 2 % 2}" for n in range(80))],
    "the mean's name": lines(site=lambda s, _: "average" if s == "c" else s),
    "NA as a name": (lines(site=lambda s, _: "NA" if s == "c" else s), "--missing="),
    "task": (lines(label=lambda _, row: row % 25), "--task regression"),
    "many numbers": lines(label=lambda _, row: row % 25),
    "semicolons": "\n".join(lines()).replace(",", ";").replace(".", ","),
    "dots between thousands": "\n".join(lines(more=lambda s, row: f"1.{row % 7}00,{ord(s)}" if row else "7"))
    .replace(",", ";")
    .replace("00;", "00,"),
    "no width": "\ufeff" + "\n".join(lines(site=lambda s, row: s + "\u200b" * (row % 2))),
    "groups": (lines(more=lambda _, row: ["101", "00101", "101.0", "102", "7"][row % 5]), "--group more"),
    "groups alike": (lines(more=lambda _, row: ["101", "00101", f"P{row}"][row % 3]), "--group more"),
    "gaps among numbers": lines(more=lambda _, row: ["-", "n.a.", row / 7][row % 3]),
    "no end": lines(more=lambda s, row: ["inf", "1", "2", "3"][row % 4]),
    "tabs": "\n".join(lines()).replace(",", "\t"),
    "sep": "sep=;\r\n" + "\r\n".join(lines()).replace(",", ";"),
    "UTF-16": "\n".join(lines()).encode("utf-16"),
    "Windows": "\n".join(lines(site=lambda s, _: s + "\u00e4")).encode("cp1252"),
    "old Mac": "\r".join(lines()),
    "separators at the end": ",\n".join([*lines(), ""]),
    "and in rows alone": [lines()[0], *(line + "," for line in lines()[1:])],
    "lines without values": [*lines(), ",,", "", ",,"],
    "a sum": [*lines(), "Total,99,"],
    "one label": lines(label=lambda s, row: "" if s == "c" and row else quiet(row)),
    "a sum of numbers": [*lines(label=lambda s, row: row / 7), "Total,99,7000"],
    "thousands": lines(more=lambda s, row: f'"{row * 97 % 31 + 1},{ord(s)}{row % 10}"'),
    "sentences": lines(more=lambda s, row: f"the {row} of {s}"),
    "decimal commas": lines(more=lambda s, row: f'"0,{(row * 5 + ord(s)) % 17 + 10}"'),
    "a word among numbers": lines(more=lambda s, row: "k. A." if row == 3 else 9 * ord(s) + row / 7),
    "percent": lines(more=lambda s, row: f"{row * 97 % 31}.{ord(s)}%"),
    "an index": [f"{n - 1 if n else ''},{line}" for n, line in enumerate(lines())],
    "names of rows as R writes them": [lines()[0], *(f"{n},{line}" for n, line in enumerate(lines()[1:]))],
    "two of them": [f"{n - 1 if n else ''},{n or 'Unnamed: 0'},{line}" for n, line in enumerate(lines())],
    "a numbering": [lines()[0] + ",row", *(f"{line},{n * 7 % 90}" for n, line in enumerate(lines()[1:]))],
    "one of each domain": lines(more=lambda _, row: row + 5),
    "identifiers in the order of labels": lines(
        more=lambda s, row: row * 97 % 1009 + 2000 * (quiet(row) == "yes") + ord(s)
    ),
    "and of a number": lines(label=lambda s, row: row / 7, more=lambda s, row: row * row * 9 + ord(s)),
    "no class of another domain": lines(label=lambda s, row: s + "uv"[row % 2]),
    "a class of one domain": lines(label=lambda s, row: "new" if s == "c" and row % 3 else quiet(row)),
}
"""The lines of a file, or its text or bytes, and perhaps an option."""


def test_tables_are_read_as_their_owners_mean_them(identify, tmp_path, golden):
    """Where that is in doubt, or cannot be, no suite is written; a doubt can be overruled."""
    path, suite = tmp_path / "t.csv", tmp_path / "mine.yaml"
    said = []
    for name, case in TABLES.items():
        content, *options = case if isinstance(case, tuple) else (case,)
        text = "\n".join(content) if isinstance(content, list) else content
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        words = [path, "--domain", "site", "--label", "y", *" ".join(options).split(), "--suite", suite]
        code, (_, *out), errors = identify(*words)
        every = (line for line in (*out, *errors) if not re.match("wrote |rows: .*data leaks", line))
        shown = (line.replace(f"{tmp_path}/", "") for line in every)
        said += [f"{name}:", *shown, ""]
        assert (code, suite.exists()) in {(0, True), (2, False)}, name
        doubted = any(line.endswith("--anyway writes it all the same") for line in errors)
        assert not doubted or identify(*words, "--anyway")[0] == 0
        assert suite.exists() == (code == 0 or doubted), name
        suite.unlink(missing_ok=True)
    golden("tables.txt", "\n".join(said))


def test_a_folder_of_tables_has_a_domain_for_each_file(identify, tmp_path, capsys):
    folder, header = tmp_path / "sites", lines()[0].partition(",")[2]
    folder.mkdir()
    for place, name in enumerate(("a.csv", "b.csv.gz", "c.v2.csv")):
        mine = [header, *(line.partition(",")[2] for line in lines()[1 + N * place : 1 + N * (place + 1)])]
        text = "\n".join(mine).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (folder / "notes.txt").write_text("by me")
    suite = tmp_path / "mine.yaml"
    code, out, _ = identify(folder, "--label", "y", "--suite", suite)
    assert (code, "class a b c.v2" in " ".join(out)) == (0, True)
    assert "read 90 of 90 rows, 1 of 1 columns of inputs; not read: notes.txt" in out
    assert main(["validate", str(suite)]) == 0
    (tmp_path / "t.csv").write_text("\n".join(lines()))
    whole = Table(file=str(tmp_path / "t.csv"), label="y", domain="site")
    parts = Table(file=str(tmp_path / "sites"), label="y", domain="domain")
    for domain, same in (("a", "a"), ("c", "c.v2")):
        mine, other = whole.load(domain, LocalFiles()), parts.load(same, LocalFiles())
        np.testing.assert_array_equal(np.asarray(mine.x), np.asarray(other.x))
    (folder / "d.csv").write_text("x,z\n1,2\n")
    assert "d.csv: has no column 'y', which another file" in identify(folder, "--label", "y")[2][-1]


def test_without_domain_and_label_the_columns_and_a_guess_are_said(identify, tmp_path):
    (tmp_path / "t.csv").write_text("\n".join(lines()))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress("\n".join(lines(more=lambda *_: "")).encode()))
    for name, more in (("t.csv", ""), ("t.csv.gz", ", more (empty)")):
        code, _, errors = identify(tmp_path / name)
        assert (code, len(errors)) == (2, 1)
        guess = "`--domain site --label y`; its columns are site (3 texts), x (13 numbers), y (2 texts)"
        assert errors[0].endswith(f"such as {guess}{more}")
    assert "a table needs both --domain and --label" in identify(tmp_path / name, "--domain", "site")[2][0]
    np.savez(tmp_path / "t.npz", x=np.zeros((2, 1)), y=[0, 1], site=[0, 1])
    (error,) = identify(tmp_path / "t.npz")[2]
    assert error.endswith("name the arrays of domains and labels by --domain and --label; it has x, y, site")
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04")
    assert identify(tmp_path / "t.xlsx")[2] == [
        f"msda-bench: error: {tmp_path}/t.xlsx: is a workbook; save the sheet with the rows as CSV (UTF-8)"
    ]


def test_a_row_that_is_not_read_changes_no_number(tmp_path):
    rest = ["z,1e300,no", "z,-1e12,yes", "z,many,yes"]
    for name, text in (("good", lines()), ("bad", [*lines(), *rest])):
        (tmp_path / f"{name}.csv").write_text("\n".join(text))
    made = [
        Table(file=str(tmp_path / f"{name}.csv"), domain="site", label="y", leave_out=("z",) if name == "bad" else ())
        for name in ("good", "bad")
    ]
    for domain in "abc":
        good, bad = (np.asarray(data.load(domain, LocalFiles()).x) for data in made)
        np.testing.assert_array_equal(good, bad)


def test_zeros_with_and_without_a_sign_are_one_domain(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"site": [0.0, -0.0] * 4 + [1.0] * 8, "y": [0, 0, 1, 1] * 4, "x": list(range(16))}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    data = Table(file=str(tmp_path / "t.parquet"), domain="site", label="y")
    assert data.sizes() == {"0": 8, "1": 8}


def test_the_row_of_a_prediction_is_its_place_in_the_owners_file(identify, tmp_path):
    path, suite = tmp_path / "t.csv", tmp_path / "mine.yaml"
    path.write_text("\n".join(lines(label=lambda s, row: "" if s == "c" and row < 10 else quiet(row))))
    assert identify(path, "--domain", "site", "--label", "y", "--suite", suite)[0] == 0
    text = re.sub(r"(?m)^  (?!SRC|table)\w+: .*\n", "", suite.read_text().replace("targets: all", "targets: [c]"))
    text = re.sub(r"compare: .*\n", "keep: [predictions]\n", re.sub("seeds: [0-9]+", "seeds: 1", text))
    suite.write_text(text.replace("epochs: 8, steps: 30", "epochs: 1, steps: 2"))
    assert main(["run", str(suite), "--executor", "inline", "--out", str(tmp_path / "out")]) == 0
    answers = mb.load_predictions(tmp_path / "out" / "t-csv")
    assert answers["row"].between(10, N - 1).all()
    wanted = np.array([quiet(row) == "yes" for row in answers["row"]], int)
    assert answers["label"].tolist() == wanted.tolist()
