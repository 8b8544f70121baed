"""Flaws of a table or of arrays that no training is needed to see: each a line with the right numbers."""

import numpy as np

HEAD = "site,ill,age,chol,lab"
KINDS = ("rows", "order", "constant", "telling", "classes")


def rows_of(site, ill, count, chol="", lab="1"):
    """So many different rows; `chol` and `lab` as they are, or numbers if they are None."""
    draw = np.random.default_rng([*site.encode(), *ill.encode()])
    lines = []
    for _ in range(count):
        numbers = [f"{draw.normal():.3f}" for _ in range(3)]
        values = [numbers[0], numbers[1] if chol is None else chol, numbers[2] if lab is None else lab]
        lines.append(",".join([site, ill, *values]))
    return lines


def said(identify, tmp_path, lines, *options):
    (tmp_path / "t.csv").write_text("\n".join([HEAD, *lines]))
    code, out, errors = identify(tmp_path / "t.csv", "--domain", "site", "--label", "ill", *options)
    assert (code, errors) == (0, [])
    return [line for line in out if line.startswith(KINDS)]


def shuffled(lines):
    return [lines[place] for place in np.random.default_rng(0).permutation(len(lines))]


def usual():
    return [line for site in "ab" for ill in ("no", "yes") for line in rows_of(site, ill, 40, None, None)]


def test_a_table_without_flaws_has_no_such_line(identify, tmp_path):
    assert said(identify, tmp_path, shuffled(usual())) == []


def test_rows_in_the_order_of_labels_are_named(identify, tmp_path):
    (line,) = said(identify, tmp_path, usual())
    what = "order: rows with the label of the row before, beside those in a random order: a 99 % (50 %), b 99 % (50 %)"
    assert line == f"{what}; runs draw their splits at random, and so should you"


def test_copies_are_told_apart_by_domain_and_label(identify, tmp_path):
    lines = usual()
    a_no, b_yes = lines[:40], lines[120:]
    again = [*a_no[:10], *(line.replace("a,no", "a,yes") for line in a_no[10:13])]
    elsewhere = [line.replace("b,yes", "a,yes") for line in b_yes[:4]]
    (line,) = said(identify, tmp_path, shuffled([*lines, *again, *elsewhere]))
    whose = "13 in their own domain, 4 in another, 3 with another label"
    assert line.startswith(f"rows: 17 of 177 rows are copies of other rows, in b, a ({whose}); remove them")
    assert line.endswith("`duplicates: drop` leaves out those in their own domain")


def test_a_column_that_is_constant_in_a_domain_and_gaps_that_tell_it_or_the_label_are_named(identify, tmp_path):
    lines = [*rows_of("a", "no", 40, "0", None), *rows_of("a", "yes", 40, "0", ""), *usual()[80:]]
    constant, by_chol, told = said(identify, tmp_path, shuffled(lines))
    what = "constant: a has one value alone in chol (0), other domains more"
    assert constant == f"{what}; that tells the domain; `drop` leaves such a column out"
    # Zeros of a share a bin with a twentieth of b's numbers.
    what = "telling: column 'chol' alone tells the domain of 98 % of the rows (always the most frequent: 50 %)"
    assert by_chol == f"{what}; `standardise: domain` evens out its scale, `drop` leaves it out"
    # Where `lab` is there 80 of 120 rows are of b and 80 are healthy; where it is missing all are of a, and ill.
    share = "75 % of the rows (always the most frequent: 50 %)"
    what = f"telling: which values are missing tells the domain of {share} and the label of {share}"
    assert told == f"{what}; `gaps: fill` hides it"


def test_a_column_of_the_same_value_in_every_domain_does_not_tell_the_domain(identify, tmp_path):
    lines = []
    for line in usual():
        site, ill, age, chol, _ = line.split(",")
        lines.append(",".join([site, ill, age, chol, "7" if ill == "yes" else ""]))
    found = said(identify, tmp_path, shuffled(lines))
    told = "tells the label of 100 % of the rows (always the most frequent: 50 %)"
    assert found == [
        f"telling: column 'lab' alone {told}; take it out only if it is known before the label is",
        f"telling: which values are missing {told}; `gaps: fill` hides it",
    ]


def test_a_column_that_tells_the_label_alone_is_named(identify, tmp_path):
    lines = []
    for place, line in enumerate(usual()):
        site, ill, age, *rest = line.split(",")
        told = 5 if (ill == "yes") != (place % 20 == 0) else 0
        lines.append(",".join([site, ill, str(float(age) / 10 + told), *rest]))
    (line,) = said(identify, tmp_path, shuffled(lines))
    what = "telling: column 'age' alone tells the label of 95 % of the rows (always the most frequent: 50 %)"
    assert line == f"{what}; take it out only if it is known before the label is"


def test_a_column_that_follows_the_label_of_a_regression_is_named(identify, tmp_path):
    draw = np.random.default_rng(0)
    lines = ["site,age,twice,noisy,dose"]
    for place in range(120):
        age, dose = draw.normal(size=2)
        lines.append(f"{'abc'[place % 3]},{age:.4f},{2 * dose + 1:.4f},{dose + draw.normal() / 2:.4f},{dose:.4f}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, out, _ = identify(tmp_path / "t.csv", "--domain", "site", "--label", "dose")
    assert code == 0
    what = "telling: column 'twice' puts the rows of a domain in the order of their labels (rank correlation 1.00)"
    (line,) = [line for line in out if line.startswith("telling")]
    assert line == f"{what}; take it out only if it is known before the label is"


def test_a_class_that_some_domains_lack_is_named(identify, tmp_path):
    lines = [*usual(), *rows_of("a", "maybe", 40, None, None), *rows_of("c", "maybe", 40, None, None)]
    lines += rows_of("c", "no", 40, None, None)
    (line,) = said(identify, tmp_path, shuffled(lines))
    assert line == "classes: b has no row of maybe, c has no row of yes; methods answer them there all the same"


def test_arrays_in_the_order_of_labels_with_copies_are_named(identify, tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 5))
    y = np.tile(np.repeat([0, 1], 50), 2)
    x[50:60] = x[:10]
    np.savez(tmp_path / "t.npz", x=x, y=y, site=np.repeat(["a", "b"], 100))
    code, out, _ = identify(tmp_path / "t.npz", "--domain", "site", "--label", "y")
    rows, order = [line for line in out if line.startswith(KINDS)]
    assert code == 0
    whose = "10 in their own domain, 0 in another, 10 with another label"
    assert rows.startswith(f"rows: 10 of 200 rows are copies of other rows, in a ({whose})")
    assert "a 99 % (50 %), b 99 % (50 %)" in order
