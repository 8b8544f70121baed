"""What `validate` and `data leaks` say of the suite that `data identify` wrote."""

from tests.cli.identify.test_doubts import ROWS, measure, table

OPTIONS = ("--domain", "site", "--label", "y", "--suite")


def test_a_unit_of_one_domain_is_no_doubt_once_domains_are_standardised(identify, tmp_path, shown):
    path, suite = tmp_path / "t.csv", tmp_path / "mine.yaml"
    path.write_text(table(lambda site, row: measure(site, row, 18 if site == "c" else 1), header="glucose"))
    assert any("column 'glucose' in c is 18 times that in other" in line for line in identify(path, *OPTIONS, suite)[1])
    shown("data", "leaks", suite)
    for standardise, is_doubted in (("sources", True), ("domain", False)):
        text = suite.read_text().replace("    label:", f"    standardise: {standardise}\n    label:")
        (tmp_path / f"{standardise}.yaml").write_text(text)
        assert ("glucose' in" in shown("validate", tmp_path / f"{standardise}.yaml")) == is_doubted


def test_rows_that_are_tested_on_and_trained_on_are_a_leak(told, tmp_path, shown):
    path, suite = tmp_path / "t.csv", tmp_path / "mine.yaml"
    header, *lines = table(measure).splitlines()
    moved = [line.replace("a,", "b,", 1) for line in lines[: ROWS // 2]]
    path.write_text("\n".join([header, *lines, *moved]))
    said = told(path, *OPTIONS, suite)
    whose = "0 in their own domain, 30 in another, none with another label"
    assert f"rows: 30 of 210 rows are copies of other rows, in a, b ({whose}); remove them" in said
    leak = "leak: rows that are tested on equal, or nearly equal, rows that are trained on: a in b "
    assert leak in said
    assert f"`msda-bench data leaks {suite}` counts them" in said
    assert "leak suspected: a in b" in shown("data", "leaks", suite, code=1)


def test_rows_of_many_domains_are_left_to_the_command(told, tmp_path):
    path, suite = tmp_path / "t.csv", tmp_path / "mine.yaml"
    lines = [f"s{row % 91},{row * 37 % 101 / 8},{row * 7 % 5 % 2}" for row in range(91 * 12)]
    path.write_text("\n".join(["site,x,y", *lines]))
    said = told(path, *OPTIONS, suite)
    assert f"rows: too many to compare here; `msda-bench data leaks {suite}` looks for those" in said
