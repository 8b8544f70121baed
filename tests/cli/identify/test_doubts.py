"""`msda-bench data identify` doubts inputs: a line on each doubt has the option that answers it, and stays in notes."""

import re

import numpy as np

from msda_bench.cli.main import main

SITES, ROWS = "abc", 60


def table(more, *, header="more", copies=0, slow=False, alike=False):
    """Three sites of 60 rows with two measurements and the column `more(site, row)`; perhaps three rows are alike."""
    rng = np.random.default_rng(0)
    lines = []
    for place, site in enumerate(SITES):
        for row in range(ROWS):
            x, z = rng.normal(place, 1, 2)
            angle = row / 9 + place
            if alike:
                x, z = row // 3 * 37 % 20 + x / 50, row // 3 * 13 % 7 + z / 50
            if slow:
                x, z = np.sin(angle), np.cos(angle)
            y = "yes" if rng.random() < 0.5 else "no"
            lines.append(f"{site},{y},{x:.3f},{z:.3f},{more(site, row)}")
    return "\n".join([f"site,y,x,z,{header}", *lines, *lines[:1] * copies])


def measure(site, row, scale=1.0):
    return round(scale * (50 + row * 37 % 60 / 3), 2)


def patient(site, row):
    return (ord(site) * 100 + row // 3) * 7 % 1009


TABLES = {
    "a code for a gap": table(lambda s, row: -9999 if row % 12 == 3 else measure(s, row)),
    "two of them": table(lambda s, row: {3: 999, 5: 888}.get(row % 12, measure(s, row))),
    "one that is written twice": table(lambda s, row: {3: "-1", 5: "-1.0"}.get(row % 12, measure(s, row))),
    "no code, though far": table(lambda s, row: 0 if row % 12 == 3 else measure(s, row)),
    "few other values": table(lambda s, row: 9 if row % 12 == 3 else row % 2),
    "numbers without a gap": table(lambda s, row: round(1.2 ** (row % 40), 1)),
    "the user's own gaps": (table(lambda s, row: -9999 if row % 12 == 3 else measure(s, row)), "--missing=NA"),
    "in one column": (table(lambda s, row: -1 if row % 12 == 3 else measure(s, row)), "--missing=more=-1"),
    "in none": (table(measure), "--missing=mroe=-1"),
    "a patient's visits": table(patient, header="patient_id"),
    "called otherwise, alike": table(lambda s, row: f"K{patient(s, row)}", header="kennung", alike=True),
    "called by two words": table(patient, header='"patient, id"'),
    "given as groups": (table(patient, header="patient_id"), "--group patient_id"),
    "other groups": (table(lambda s, row: f"{patient(s, row)},{s}{row // 6}", header="pid,ward"), "--group ward"),
    "days": table(lambda s, row: f"2021-{row % 12 + 1:02d}-{row % 28 + 1:02d}", header="admitted"),
    "days and times": table(lambda s, row: f"{row % 28 + 1}.{row % 12 + 1}.2021 {row % 24}:05", header="admitted"),
    "digits of days": table(lambda s, row: 20210100 + 100 * (row % 12) + row % 28 + 1, header="admitted"),
    "seconds since 1970": table(lambda s, row: 1_600_000_000 + row * 7919 % 61 * 86400 + ord(s), header="at"),
    "many texts": table(lambda s, row: f"w{row * 7 % 60}{'x' * (row % 2)}", header="ward"),
    "another unit": table(lambda s, row: measure(s, row, 18 if s == "c" else 1), header="glucose"),
    "a smaller one": table(lambda s, row: measure(s, row, 0.001 if s == "a" else 1), header="weight"),
    "a split": table(lambda s, row: "train" if row % 4 else "test", header="part"),
    "folds": table(lambda s, row: row % 5, header="fold"),
    "the same in a domain": table(lambda s, row: {"a": 120, "b": 8, "c": 700}[s], header="altitude"),
    "texts of one domain": table(lambda s, row: f"{s}{row * 7 % 5}", header="department"),
    "missing in a domain": table(lambda s, row: "" if s == "b" else measure(s, row), header="crp"),
    "oversampled": table(measure, copies=40),
    "a number to predict": re.sub("yes|no", lambda found: f"{found.start() % 97 / 8}", table(measure)).replace(
        ",1.25,", ",-9999,"
    ),
    "a recording": table(lambda s, row: row % 2, slow=True),
    "trials of a recording": table(lambda s, row: row // 12, header="trial", slow=True),
}
"""The text of a file, perhaps with an option."""
PARAMETERS = r"    (?:missing|group|test_rows|train|drop|categories): "


def test_each_doubt_about_inputs_is_a_line_with_the_option_that_answers_it(identify, tmp_path, golden):
    path, suite = tmp_path / "t.csv", tmp_path / "mine.yaml"
    said = []
    for name, case in TABLES.items():
        text, *options = case if isinstance(case, tuple) else (case,)
        path.write_text(text)
        code, out, errors = identify(
            path, "--domain", "site", "--label", "y", *" ".join(options).split(), "--suite", suite
        )
        kept = [line for line in out[2:-1] if not re.match(r"class|yes|no|all|wrote|rows: .*data leaks", line)]
        said += [f"{name}:", *(line.replace(f"{tmp_path}/", "") for line in (*kept, *errors))]
        if code == 0:
            said += [" ".join(line.split()) for line in suite.read_text().splitlines() if re.match(PARAMETERS, line)]
        said.append("")
        suite.unlink(missing_ok=True)
    golden("doubts.txt", "\n".join(said))


def test_doubts_that_a_suite_leaves_open_stay_below_its_results(tmp_path, capsys):
    """What `data identify` answers by a parameter is no doubt any more; a suite by hand has a note on each."""

    def both(site, row):
        return f"{patient(site, row)},{-9999 if row % 12 == 3 else measure(site, row)}"

    (tmp_path / "t.csv").write_text(table(both, header="patient_id,dose"))
    suite = tmp_path / "mine.yaml"
    answers = 'group: patient_id, missing: ["dose=-9999"]'
    for place, more in enumerate(("", answers)):
        data = f"{{file: {tmp_path / 't.csv'}, domain: site, label: y, {more}}}"
        training = "{epochs: 1, steps: 2, batch: 8, optimizer: {adam: {}}}"
        suite.write_text(
            f"schema: 1\nname: s{place}\ndataset: {{table: {data}}}\ntargets: [a]\nseeds: 1\nbackbone: mlp\n"
            f"training: {training}\nmethods: {{SRC: {{scheme: pooled}}}}\n"
        )
        assert main(["run", str(suite), "--executor", "inline", "--out", str(tmp_path / "out")]) == 0
        said = " ".join(capsys.readouterr().out.split())
        table_ends = said.index("SRC ")
        open_doubts = [said.find("-9999 repeats far outside"), said.find("`--group patient_id` (`group` in a suite)")]
        assert all(place > table_ends for place in open_doubts) == (not more)
        assert ("missing values are written dose=-9999" in said) == bool(more)


def test_arrays_are_doubted_as_tables_are(told, tmp_path, golden):
    rng, path, said = np.random.default_rng(1), tmp_path / "t.npz", []
    y, site = rng.integers(0, 2, 240), np.repeat(["a", "b", "c", "d"], 60)
    x = rng.normal(0, 1e-6, (240, 8, 64)).astype(np.float32)
    coded, scaled, twice, slow = x.copy(), x.copy(), x.copy(), np.cumsum(rng.normal(size=(240, 8)), axis=0)
    coded[::9, 3] = -9999
    scaled[60:120] *= 1e6
    twice[30:60] = twice[:30]
    for name, inputs in {"plain": x, "coded": coded, "scaled": scaled, "twice": twice, "slow": slow}.items():
        np.savez(path, x=inputs, y=y, subject=site, session=np.tile([0, 1], 120), trials=np.zeros((240, 2)))
        said += [f"{name}:", *told(path, "--domain", "subject", "--label", "y").splitlines()[1:], ""]
    grouped = told(path, "--domain", "subject", "--label", "y", "--group", "subject,session")
    said += ["slow, with groups:", *grouped.splitlines()[1:]]
    golden("array-doubts.txt", "\n".join(said).replace(f"{tmp_path}/", ""))
