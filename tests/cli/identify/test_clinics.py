"""`msda-bench data identify` of a table as clinics send it, from the file to a suite that can be trusted."""

import csv
import re

from msda_bench.cli.main import main
from tests.cli.identify.clinics import write

OPTIONS = ("--domain", "clinic", "--label", "readmitted", "--suite")


def test_a_table_of_four_clinics_gets_a_line_on_all_that_would_spoil_the_answer(identify, tmp_path, capsys):
    path, suite = tmp_path / "clinics.csv", tmp_path / "mine.yaml"
    write(path)
    days = {row["admitted"] for row in csv.DictReader(path.read_text().splitlines())}
    code, out, _ = identify(path, *OPTIONS, suite)
    said = "\n".join(out)
    assert (code, len(days) > 600) == (0, True)
    for line in (
        "odd: column 'id' has 1600 different texts, so it is in `drop`",
        "date: column 'admitted' holds dates or times, such as '20",
        "the shares of classes differ between domains, so the suite compares `balanced_accuracy`",
        "numbers: age, bmi, glucose, crp",
        "rows: hardly any that is tested on equals, or nearly equals, one that is trained on (`msda-bench data leaks ",
        "read 1600 of 1600 rows, 7 of 9 columns of inputs; not read: id, admitted",
    ):
        assert line in said, line
    (factor,) = re.findall(
        r"unit: column 'glucose' in Old Town is ([0-9.]+) times that in other domains \(medians", said
    )
    assert 12 < float(factor) < 20
    assert "`standardise: domain` makes them alike" in said
    assert 'drop: ["id", "admitted"]' in suite.read_text()
    assert main(["data", "leaks", str(suite)]) == 0
    capsys.readouterr()
    suite.write_text(suite.read_text().replace("    drop:", "    standardise: domain\n    drop:"))
    assert main(["validate", str(suite)]) == 0
    assert "glucose' in" not in capsys.readouterr().out


def test_rows_that_are_tested_on_and_trained_on_are_a_leak(identify, tmp_path, capsys):
    path, suite = tmp_path / "clinics.csv", tmp_path / "mine.yaml"
    write(path, rows=80)
    header, *lines = path.read_text().splitlines()
    moved = [line.replace("North", "Lakeside") for line in lines if "North" in line][:40]
    path.write_text("\n".join([header, *lines, *moved]))
    code, out, _ = identify(path, *OPTIONS, suite)
    said = "\n".join(out)
    assert code == 0
    whose = "0 in their own domain, 40 in another, none with another label"
    assert f"rows: 40 of 360 rows are copies of other rows, in North, Lakeside ({whose}); remove them" in said
    leak = "leak: rows that are tested on equal, or nearly equal, rows that are trained on: North in Lakeside "
    assert leak in said
    assert f"`msda-bench data leaks {suite}` counts them" in said
    assert main(["data", "leaks", str(suite)]) == 1
    assert "leak suspected: North in Lakeside" in " ".join(capsys.readouterr().out.split())


def test_rows_of_many_domains_are_left_to_the_command(identify, tmp_path):
    path, suite = tmp_path / "t.csv", tmp_path / "mine.yaml"
    lines = [f"s{row % 91},{row * 37 % 101 / 8},{row * 7 % 5 % 2}" for row in range(91 * 12)]
    path.write_text("\n".join(["site,x,y", *lines]))
    code, out, _ = identify(path, "--domain", "site", "--label", "y", "--suite", suite)
    said = "\n".join(out)
    assert code == 0
    assert f"rows: too many to compare here; `msda-bench data leaks {suite}` looks for those" in said
