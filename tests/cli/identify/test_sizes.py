"""What `data identify` says of domains with few rows and of rare classes."""

import random

import pytest

from msda_bench.cli.main import main


def table(path, sites):
    """Rows of sites with so many of each class."""
    draw = random.Random(3)
    lines = ["site,x,z,y"]
    for site, counts in sites.items():
        for label, count in counts.items():
            lines += [f"{site},{draw.gauss(0, 1):.3f},{draw.gauss(0, 1):.3f},{label}" for _ in range(count)]
    path.write_text("\n".join(lines))
    return path


def looked(identify, tmp_path, sites):
    suite = tmp_path / "mine.yaml"
    code, out, _ = identify(table(tmp_path / "t.csv", sites), "--domain", "site", "--label", "y", "--suite", suite)
    assert code == 0
    assert main(["validate", str(suite)]) == 0
    return "\n".join(out), suite.read_text()


@pytest.mark.parametrize(
    ("rare", "line"),
    [
        (3, "class 'yes' is 7.5 % of domain 'b', which accuracy hardly counts, so the suite compares `balanced"),
        (12, None),
        (0, "class 'yes' is 0 % of domain 'b', which accuracy hardly counts, so the suite"),
    ],
)
def test_a_rare_class_calls_for_the_mean_over_classes(identify, tmp_path, rare, line):
    """The shares differ by less than 20 points, so that they are no reason."""
    third = {"third": 4} if rare == 0 else {}
    first, second = {"no": 30 + rare, "yes": 8}, {"no": 40 - rare, "yes": rare} | third
    sites = {"a": first | third, "b": {name: count for name, count in second.items() if count}, "c": first | third}
    said, suite = looked(identify, tmp_path, sites)
    assert ("balanced_accuracy" in said, "metric: balanced_accuracy" in suite) == (line is not None,) * 2
    assert (line or "") in said
    name = "third" if third else "yes"  # a domain without the class has no score of it
    keeps = f"keep: [predictions] # for --metric 'auprc(positive=1)' or auroc: of class {name}"
    assert (keeps in suite) == (line is not None)


def test_one_of_many_classes_is_not_rare_for_that(identify, tmp_path):
    sites = {site: {f"k{number}": 6 for number in range(20)} for site in "abc"}
    assert "balanced_accuracy" not in looked(identify, tmp_path, sites)[0]
    sites["b"]["k3"] = 2
    assert "class 'k3' is 1.7 % of domain 'b'" in looked_again(identify, tmp_path, sites)


def looked_again(identify, tmp_path, sites):
    (tmp_path / "mine.yaml").unlink()
    return looked(identify, tmp_path, sites)[0]


def test_domains_of_few_rows_are_named(identify, tmp_path):
    sites = {name: {"no": 20, "yes": 20} for name in "abc"} | {name: {"no": 2, "yes": 1} for name in "de"}
    said, _ = looked(identify, tmp_path, sites)
    assert (
        "few rows: 2 of 5 domains have 3 rows (d, e): good as sources, but scores there do not count in the average; "
        "to train no models for them, list the others in `targets`"
    ) in said
    small = {name: {"no": 4, "yes": 4} for name in "abc"}
    assert "few rows: 3 of 3 domains have 8 rows (a, b, c), too few" in looked_again(identify, tmp_path, small)
    assert "few rows" not in looked_again(identify, tmp_path, {name: {"no": 20, "yes": 20} for name in "abc"})


def test_too_few_domains_of_more_than_one_row_are_refused_with_the_reason_for_each(identify, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("site,a,ill\nn,1,no\ns,2,yes\n")
    code, _, errors = identify(path, "--domain", "site", "--label", "ill")
    assert code == 2
    assert errors == [
        f"msda-bench: error: {path}: 0 of 2 domains can be used; adaptation needs two or more",
        f"msda-bench: error: {path}: one row: domain 'n' has 1 row, such as a sum; this domain is left out",
        f"msda-bench: error: {path}: one row: domain 's' has 1 row, such as a sum; this domain is left out",
    ]
