"""What `data identify` says of domains with few rows and of rare classes."""

import random

from msda_bench.cli.main import main


def usual(names, **counts):
    return dict.fromkeys(names, counts)


def rare(count, **third):
    """Two kinds of domains whose shares differ by less than 20 points, so that they are no reason."""
    first, second = {"no": 30 + count, "yes": 8} | third, {"no": 40 - count, "yes": count} | third
    return {"a": first, "b": second, "c": first}


MANY = {f"k{number}": 6 for number in range(20)}
SITES = {
    "a rare class": rare(3),
    "no rare class": rare(12),
    "a class that a domain lacks, and so has no score of": rare(0, third=4),
    "one of many classes is not rare for that": dict.fromkeys("abc", MANY),
    "unless it is": dict.fromkeys("ac", MANY) | {"b": MANY | {"k3": 2}},
    "domains of few rows": usual("abc", no=20, yes=20) | usual("de", no=2, yes=1),
    "all of few rows": usual("abc", no=4, yes=4),
    "none of few rows": usual("abc", no=20, yes=20),
}
"""The number of rows of each class of each site."""
SAID = ("hardly counts", "few rows", "balanced_accuracy", "keep: ")


def test_rare_classes_and_domains_of_few_rows_are_named_and_the_suite_compares_the_mean_over_classes(
    told, tmp_path, golden
):
    path, suite, draw, said = tmp_path / "t.csv", tmp_path / "mine.yaml", random.Random(3), []
    for name, sites in SITES.items():
        lines = ["site,x,z,y"]
        for site, counts in sites.items():
            for label, count in counts.items():
                lines += [f"{site},{draw.gauss(0, 1):.3f},{draw.gauss(0, 1):.3f},{label}" for _ in range(count)]
        path.write_text("\n".join(lines))
        text = told(path, "--domain", "site", "--label", "y", "--suite", suite)
        assert main(["validate", str(suite)]) == 0
        shown = [*text.splitlines(), *suite.read_text().splitlines()]
        said += [f"{name}:", *(line for line in shown if any(part in line for part in SAID)), ""]
        suite.unlink()
    golden("sizes.txt", "\n".join(said))


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
