"""`msda-bench data identify` proposes and takes roles: official test rows, and rows that belong together."""

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench.data.splits import split
from msda_bench.plugins import discover
from msda_bench.running.data import used
from msda_bench_builtin.datasets import Arrays, Table
from tests.builtin.suites import loaded
from tests.cli.identify.conftest import refused

ROLES = ("--domain", "site", "--label", "y")
SITES, PATIENTS, VISITS = "abc", 20, 4


def visits(side="test"):
    """Of each visit its site, patient, label, two measurements, and the side it is on: `side` for a fifth of patients.

    A site with only one side is to be made by the caller.
    """
    rng = np.random.default_rng(0)
    patient = np.arange(len(SITES) * PATIENTS * VISITS) // VISITS
    site = np.array([*SITES])[patient // PATIENTS]
    x = rng.normal(size=(len(patient), 8)).round(3)
    y = np.where(np.arange(len(patient)) % 2, "ill", "well")
    return site, np.char.add("p", patient.astype(str)), y, x, np.where(patient % 5, "train", side)


def as_table(path, site, patient, y, x, part, name="split"):
    lines = [f"site,patient,y,u,v,{name}"]
    lines += [f"{s},{p},{c},{a},{b},{o}" for s, p, c, (a, b, *_), o in zip(site, patient, y, x, part, strict=True)]
    path.write_text("\n".join(lines))
    return path


def dataset(suite):
    """The dataset of a suite, and its domains."""
    registry = discover()
    ((data, _),) = used("dataset", loaded(suite, registry)[1].cells.values(), registry)
    return data, {name: data.load(name, LocalFiles()) for name in data.domains}


def sides(suite):
    """What the splits of a suite test on and train on at two seeds, by domain: places of rows."""
    data, domains = dataset(suite)
    for target in domains:
        for seed in (0, 1):
            parts = split(data, target, domains, seed=seed)
            for name in domains:
                yield name, name == target, {*parts[name].train.tolist()}, {*parts[name].test.tolist()}


@pytest.mark.parametrize("kind", ["table", "arrays"])
def test_an_official_split_and_patients_are_proposed_and_every_run_keeps_to_them(kind, told, tmp_path):
    site, patient, y, x, part = visits()
    path, suite = tmp_path / "t.npz", tmp_path / "mine.yaml"
    if kind == "arrays":
        np.savez(path, x=x, y=y, site=site, subject=patient, split=part, other=np.zeros((len(y), 2)))
    else:
        path = as_table(tmp_path / "t.csv", site, patient, y, x, part)
    said = told(path, *ROLES, "--suite", suite)
    assert "so the suite has `test_rows: split=test` (as by `--test split=test`); `--test=` draws" in said
    assert "official test rows: a 16 of 80, b 16 of 80, c 16 of 80" in said
    assert ("arrays not read: other (240, 2)" in said) == (kind == "arrays")
    groups = {"table": "group: patient", "arrays": "groups: subject"}[kind]
    assert f"the suite has `{groups}`" in said
    drawn = set()
    for name, is_target, trained, tested in sides(suite):
        official = {*np.flatnonzero(part[site == name] == "test").tolist()}
        assert len(trained) == round(0.9 * 64)
        assert not trained & official
        assert tested == official or not is_target
        drawn.add((name, frozenset(trained)))
    assert len(drawn) > len(SITES)  # other seeds draw other rows
    only = ["--only", "method=TAR,seed=0", "--executor", "inline", "--device", "cpu"]
    assert main(["run", str(suite), *only, "--out", str(tmp_path)]) == 0
    runs = mb.load_results(tmp_path / path.name.replace(".", "-"))
    assert set(runs["n_test"].dropna()) == {16}
    assert runs["n_train"].isna().all()  # no record has it, and a share of all rows is another number


@pytest.mark.parametrize(
    "name", ["{site}_{side}.csv", "{side}-{site}.npz", "site={site}/split={side}/part-0.npz", "{side}.csv"]
)
def test_names_of_files_and_folders_say_domain_and_side(name, told, tmp_path):
    site, patient, y, x, part = visits()
    folder, suite = tmp_path / "parts", tmp_path / "mine.yaml"
    for one in SITES:
        for side in ("train", "test"):
            rows = (part == side) & ((site == one) | ("{site}" not in name))
            path = folder / name.format(site=one, side=side)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".npz":
                np.savez(path, x=x[rows], y=y[rows], subject=patient[rows])
                continue
            lines = as_table(path, *(of[rows] for of in (site, patient, y, x, part))).read_text().splitlines()
            head, last = int("{site}" in name), -1  # a name says what no column does
            path.write_text("\n".join(",".join(line.split(",")[head:last]) for line in lines))
    said = told(folder, *(ROLES[2:] if "_" in name or "-{" in name else ROLES), "--suite", suite)
    assert "240 rows of 3 domains, classification, 2 classes" in said
    assert "official test rows: a 16 of 80, b 16 of 80, c 16 of 80" in said
    assert 'test_rows: "split=test"' in suite.read_text()
    assert main(["validate", str(suite)]) == 0


def test_the_user_says_which_values_are_the_test_or_that_none_are(identify, tmp_path):
    site, patient, y, x, _ = visits()
    fold = np.arange(len(y)) // VISITS % 5
    path, suite = as_table(tmp_path / "t.csv", site, patient, y, x, fold, "fold"), tmp_path / "mine.yaml"
    code, out, _ = identify(path, *ROLES)
    assert (code, "`--test fold=VALUE` makes rows with it the test" in "\n".join(out)) == (0, True)
    assert identify(path, *ROLES, "--test", "fold=1,3", "--suite", suite)[0] == 0
    for name, is_target, _, tested in sides(suite):
        assert tested == {*np.flatnonzero(np.isin(fold[site == name], (1, 3))).tolist()} or not is_target
    few = np.where((site == "c") & (np.arange(len(y)) % VISITS > 0), "ill", y)
    part = np.where((np.arange(len(y)) // VISITS % 5 == 0) & (few == "ill"), "test", "train")
    said = "\n".join(identify(as_table(path, site, patient, few, x, part), *ROLES, "--test", "split")[1])
    assert "the official test rows of c lack the classes well" in said
    path = as_table(tmp_path / "t.csv", *visits())
    code, out, _ = identify(path, *ROLES, "--test=")
    assert (code, "`test_rows:" in "\n".join(out), "`--test split=test`" in "\n".join(out)) == (0, False, True)


def test_a_domain_without_official_test_rows_draws_its_own(told, tmp_path):
    site, patient, y, x, part = visits("validation")
    part[site == "b"] = "train"
    path, suite = as_table(tmp_path / "t.csv", site, patient, y, x, part), tmp_path / "mine.yaml"
    said = told(path, *ROLES, "--suite", suite)
    assert "official test rows: a 16 of 80, c 16 of 80; none in b, where each run draws its own" in said
    sizes = {(name, is_target, len(trained), len(tested)) for name, is_target, trained, tested in sides(suite)}
    assert {(name, n, m) for name, is_target, n, m in sizes if is_target} == {
        ("a", 58, 16),
        ("b", 40, 40),
        ("c", 58, 16),
    }


def test_where_a_split_divides_patients_they_stay_together_unless_the_user_says_so(identify, told, tmp_path):
    site, patient, y, x, _ = visits()
    part = np.where(np.arange(len(y)) % 4, "train", "test")
    path = as_table(tmp_path / "t.csv", site, patient, y, x, part)
    said = told(path, *ROLES)
    assert "`test_rows:" not in said
    assert "the suite has `group: patient`" in said
    assert "as an official split does, but 60 groups of rows that belong together are on both sides" in said
    said = told(path, *ROLES, "--test", "split")
    assert "`group:" not in said
    assert "leak: 60 values of column 'patient' have training and test rows, so it is in `drop`" in said
    line = refused(identify(path, *ROLES, "--test", "split", "--group", "patient"))
    assert "group 'p0' of domain 'a' has training rows and official test rows by column 'split'" in line


def test_groups_that_are_tested_in_one_domain_are_trained_on_in_none(identify, tmp_path):
    """A subject's rows are official test rows at one site and others elsewhere: sources do without them."""
    site, _, y, x, _ = visits()
    subject = np.char.add("s", (np.arange(len(y)) // VISITS % PATIENTS).astype(str))
    part = np.where((site == "a") & np.isin(subject, ["s0", "s1", "s2", "s3"]), "test", "train")
    path, suite = as_table(tmp_path / "t.csv", site, subject, y, x, part), tmp_path / "mine.yaml"
    assert identify(path, *ROLES, "--group", "patient", "--suite", suite)[0] == 0
    data, domains = dataset(suite)
    parts = split(data, "a", domains, seed=0)
    tested = {*domains["a"].groups[parts["a"].test]}
    assert tested == {"s0", "s1", "s2", "s3"}
    assert not any(tested & {*domains[name].groups[parts[name].train]} for name in SITES)


def test_persons_of_several_domains_are_one_group_each(told, tmp_path):
    """Subjects wear each of three devices: none is tested with one device and trained on with another."""
    site, _, y, x, _ = visits()
    subject = np.arange(len(y)) // VISITS % PATIENTS
    path, suite = tmp_path / "t.npz", tmp_path / "mine.yaml"
    np.savez(path, x=x, y=y, site=site, subject=subject)
    said = told(path, *ROLES, "--suite", suite)
    assert "array 'subject' has 20 values, which recur in several domains" in said
    assert 'groups: "subject"' in suite.read_text()
    data, domains = dataset(suite)
    parts = split(data, "a", domains, seed=0)
    tested = {*domains["a"].groups[parts["a"].test]}
    assert tested
    assert not any(tested & {*domains[name].groups[parts[name].train]} for name in SITES)


def test_a_few_patients_who_came_twice_or_few_subjects_of_many_rows_are_kept_together(identify, tmp_path):
    """A fifth of the patients came twice; or there are four subjects in a domain. Rows of one need not be alike."""
    rng = np.random.default_rng(0)
    cases = {"patient_id": np.arange(240) // 6 * 5 + np.minimum(np.arange(240) % 6, 4), "subject": np.arange(240) // 20}
    for name, key in cases.items():
        path, suite = tmp_path / f"{name}.csv", tmp_path / f"{name}.yaml"
        made = zip(np.arange(240) // 80, key, np.arange(240) % 2, rng.normal(size=240), strict=True)
        path.write_text(f"site,{name},y,u\n" + "".join(f"s{s},p{k},c{y},{u:.3f}\n" for s, k, y, u in made))
        assert identify(path, *ROLES, "--suite", suite)[0] == 0
        data, domains = dataset(suite)
        assert data.group == name
        parts = split(data, "s0", domains, seed=0)
        for site, part in parts.items():
            groups = domains[site].groups
            assert not {*groups[part.train]} & {*groups[part.test]}


@pytest.mark.parametrize(("name", "asks"), [("patient_id", True), ("patient_age", False), ("code", False)])
@pytest.mark.parametrize("prefix", ["p", ""])
def test_a_column_called_like_a_key_that_stays_an_input_names_the_option(prefix, name, asks, told, tmp_path):
    """Forty patients, two or three rows of each in a site: no proof that they are keys, but only the user can know."""
    rng = np.random.default_rng(0)
    lines = [f"s{i % 3},{prefix}{i // 7 % 40},c{i % 2},{rng.normal():.3f}" for i in range(280)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([f"site,{name},y,u", *lines]))
    said = told(path, *ROLES)
    assert (f"`--group {name}` keeps the rows of one together" in said) == asks
    assert f"{name} (40)" in said if prefix else f"numbers: {name}, u" in said
    assert "key:" not in told(path, *ROLES, "--group", name)


def test_official_test_rows_that_cannot_be_used_are_one_line(identify, told, tmp_path):
    site, patient, y, x, part = visits()
    whole, gap = np.where(site == "b", "test", part), part.astype(object)
    gap[7] = ""
    cases = [
        (part, "split=tst", "`test_rows` names 'tst', but column 'split' holds 'test', 'train'; correct it"),
        (part, "splt", "no column 'splt' for `test_rows`; did you mean 'split'?"),
        (part, "patient", "which value of column 'patient' marks official test rows? `test_rows: patient=VALUE`"),
        (part, "site", "column 'site' is both domain and test_rows; name two columns"),
        (whole, "split", "all rows of domain 'b' are official test rows by column 'split'"),
        (gap, "split", "row 8 has no column 'split' (`test_rows`); say of each row whether it is for the test"),
    ]
    for values, test, says in cases:
        path = as_table(tmp_path / "t.csv", site, patient, y, x, values)
        assert says in refused(identify(path, *ROLES, "--test", test)), test
        if test == "split":  # nothing is proposed that could not be used
            said = told(path, *ROLES)
            assert "`test_rows:" not in said


def test_without_the_role_nothing_of_a_key_changes():
    assert "test_rows" not in {**Table().identity(), **Arrays().identity()}
    assert Table(test_rows="split").identity()["test_rows"] == "split"
