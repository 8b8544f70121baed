"""Flaws of a table or of arrays that no training is needed to see: each a line with the right numbers."""

import numpy as np

KINDS = ("rows: ", "order: ", "constant: ", "telling: ", "classes: ")


def rows_of(site, ill, count, chol="", lab="1"):
    """So many different rows; `chol` and `lab` as they are, or numbers if they are None."""
    draw = np.random.default_rng([*site.encode(), *ill.encode()])
    lines = []
    for _ in range(count):
        numbers = [f"{draw.normal():.3f}" for _ in range(3)]
        values = [numbers[0], numbers[1] if chol is None else chol, numbers[2] if lab is None else lab]
        lines.append(",".join([site, ill, *values]))
    return lines


def usual(change=lambda place, fields: fields):
    """Two sites of 80 rows, half of them ill, with these changes; in the order of sites and labels."""
    lines = [line for site in "ab" for ill in ("no", "yes") for line in rows_of(site, ill, 40, None, None)]
    return [",".join(change(place, line.split(","))) for place, line in enumerate(lines)]


def copies():
    """13 copies in a, of which 3 have another label; and 4 of rows of b."""
    lines = usual()
    again = [*lines[:10], *(line.replace("a,no", "a,yes") for line in lines[10:13])]
    return [*lines, *again, *(line.replace("b,yes", "a,yes") for line in lines[120:124])]


def age_tells_the_label(place, fields):
    """In 19 of 20 rows."""
    site, ill, age, *rest = fields
    is_told = (ill == "yes") != (place % 20 == 0)
    return [site, ill, str(float(age) / 10 + 5 * is_told), *rest]


def lab_tells_the_label(_, fields):
    return [*fields[:4], "7" if fields[1] == "yes" else ""]


def followed():
    """A regression whose column `chol` is twice the label, and one."""
    draw = np.random.default_rng(0)
    lines = []
    for place in range(120):
        age, dose = draw.normal(size=2)
        lines.append(f"{'abc'[place % 3]},{dose:.4f},{age:.4f},{2 * dose + 1:.4f},{dose + draw.normal() / 2:.4f}")
    return lines


TABLES = {
    "none": usual(),
    "copies": copies(),
    # Zeros of `chol` share a bin with a twentieth of b's numbers. Where `lab` is there 80 of 120 rows are of b and 80
    # are healthy; where it is missing all are of a, and ill.
    "a column that is constant in a domain, and gaps": [
        *rows_of("a", "no", 40, "0", None),
        *rows_of("a", "yes", 40, "0", ""),
        *usual()[80:],
    ],
    "a column of one value in every domain, and gaps": usual(lab_tells_the_label),
    "a column that tells the label": usual(age_tells_the_label),
    "a column that follows a number": followed(),
    "classes that domains lack": [
        *usual(),
        *rows_of("a", "maybe", 40, None, None),
        *rows_of("c", "maybe", 40, None, None),
        *rows_of("c", "no", 40, None, None),
    ],
}


def test_each_flaw_is_a_line_with_its_numbers(identify, tmp_path, golden):
    said = []

    def look(name, path, label):
        code, out, errors = identify(path, "--domain", "site", "--label", label)
        assert (code, errors) == (0, [])
        said.extend([f"{name}:", *(line for line in out if line.startswith(KINDS)), ""])

    path, draw = tmp_path / "t.csv", np.random.default_rng(0)
    in_order = [*usual()[:80], *np.random.default_rng(1).permutation(usual()[80:])]
    shuffled = {name: draw.permutation(lines) for name, lines in TABLES.items()}
    for name, lines in {"rows of a in the order of labels": in_order, **shuffled}.items():
        path.write_text("\n".join(["site,ill,age,chol,lab", *lines]))
        look(name, path, "ill")
    x, y = draw.normal(size=(200, 5)), np.tile(np.repeat([0, 1], 50), 2)
    x[50:60] = x[:10]
    np.savez(tmp_path / "t.npz", x=x, y=y, site=np.repeat(["a", "b"], 100))
    look("arrays in the order of labels, with copies", tmp_path / "t.npz", "y")
    golden("flaws.txt", "\n".join(said))
