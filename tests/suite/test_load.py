"""The files of a suite: what it includes, suites that have names, files that cannot be read, recorded results."""

import os
import re
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.errors import SuiteError
from msda_bench.plugins import discover
from msda_bench.store import Store
from msda_bench.suite import files
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return path


def joined(*names, name="top", more=""):
    return f"schema: 1\nname: {name}\ninclude: [{', '.join(names)}]\n{more}"


def lines(path, registry):
    with pytest.raises(SuiteError) as caught:
        load_suite(path, registry)
    return list(caught.value.lines)


def test_mistakes_of_all_files_are_reported_together(folder, registry, good):
    write("a.yaml", good.replace("seeds: 2", "seeds: 0"))
    write("b.yaml", "a: [\n")
    assert lines(write("top.yaml", joined("a.yaml", "nope.yaml", "quickstart", "b.yaml")), registry) == [
        "top.yaml:3:19: include[1]: 'nope.yaml' no such file",
        "top.yaml:3:30: include[2]: 'quickstart' no such file",  # an include is never taken for a name
        "a.yaml:5:8: seeds: must be a count of at least 1, not 0; for one seed write [0]",
        "b.yaml:2:1: is not valid YAML: while parsing a flow node, expected the node content, but found '<stream end>'",
    ]


@pytest.mark.parametrize(
    ("include", "what"),
    {
        "[/etc/s.yaml]": "[0]: '/etc/s.yaml' must be relative to the file that includes it, not absolute",
        "['C:\\s.yaml']": "[0]: 'C:\\\\s.yaml' must be relative to the file that includes it, not absolute",
        "[../s.yaml]": "[0]: '../s.yaml' leaves the folder of the suite; move the file into it",
        "[in/../../s.yaml]": "[0]: 'in/../../s.yaml' leaves the folder of the suite; move the file into it",
        "[out/s.yaml]": "[0]: 'out/s.yaml' leaves the folder of the suite; move the file into it",
        "[top.yaml]": "[0]: 'top.yaml' is already included, or includes itself indirectly",
        "[in]": "[0]: 'in' is a folder; name a suite in it (b.yaml)",
        "[loop.yaml]": "[0]: 'loop.yaml' cannot be read (Too many levels of symbolic links)",
        "[3]": "[0]: must be text, not 3 (put it in quotes)",
        "[]": ": must have at least 1 item, not 0",
        "a.yaml": ": must be a list, not 'a.yaml'",
    }.items(),
)
def test_invalid_includes_are_refused(folder, registry, good, include, what):
    write("in/b.yaml", good)
    (folder / "suites").mkdir()
    os.chdir("suites")
    write("in/b.yaml", good)
    Path("out").symlink_to(folder / "in")
    Path("loop.yaml").symlink_to("loop.yaml")
    (line,) = lines(write("top.yaml", f"schema: 1\nname: top\ninclude: {include}\n"), registry)
    assert line == f"top.yaml:3:{11 if '[0]' in what else 10}: include{what}"


def test_files_included_by_others_are_of_one_folder_few_and_each_once(folder, registry, good):
    write("x.yaml", good)
    write("suites/b.yaml", joined("in/a.yaml", name="b"))
    write("suites/in/a.yaml", joined("../b.yaml", "../../x.yaml", name="a"))
    outside, cycle = lines(write("suites/top.yaml", joined("in/a.yaml")), registry)
    assert (
        cycle == "suites/in/../b.yaml:3:11: include[0]: 'in/a.yaml' is already included, or includes itself indirectly"
    )
    what = "'../../x.yaml' leaves the folder of the suite; move the file into it"
    assert outside == f"suites/in/a.yaml:3:22: include[1]: {what}"
    for number in range(3):
        write(f"many/{number}.yaml", joined(*(f"x{number}-{index}.yaml" for index in range(40))))
    reported = lines(write("many/top.yaml", joined("0.yaml", "1.yaml", "2.yaml")), registry)
    assert reported[-1] == "many/top.yaml: and 48 more mistakes"  # 97 files that are not there, and one too many


def test_names_and_keys_of_joined_experiments_are_their_own(folder, registry, good):
    write("a.yaml", good)
    write("b.yaml", good)
    assert lines(write("top.yaml", joined("a.yaml", "b.yaml")), registry) == [
        "b.yaml:2:7: name: another experiment is called 'good', too; rename one"
    ]
    assert lines(write("top.yaml", joined("a.yaml", more="seeds: 2\nsede: 1\n")), registry) == [
        "top.yaml:4:1: seeds: is not allowed with include; give the experiment its own file",
        "top.yaml:5:1: sede: unknown key (known: schema, name, description, include, metric, fetch)",
    ]


def test_the_metric_of_a_joining_suite_is_that_of_its_experiments(folder, registry, good):
    write("a.yaml", good)
    write("b.yaml", good.replace("name: ", "name: other-").replace("\nseeds", "\nmetric: accuracy\nseeds"))
    suite = load_suite(write("top.yaml", joined("a.yaml", "b.yaml", more="metric: auc\n")), registry)
    tables = expand(suite, registry).plan.experiments
    assert [(table.measure.name, table.metric is None) for table in tables] == [("auc", False), ("accuracy", True)]


def test_unreadable_files_are_refused_with_a_suggestion(folder, registry, good):
    write("suites/paper.yaml", good)
    write("long.yaml", "#" * 250_001)
    os.mkfifo("pipe")
    Path("empty").mkdir()
    for path, what in {
        "suites/papr.yaml": "no such file (did you mean 'suites/paper.yaml'?)",
        "papr": "no such file (did you mean 'suites/paper.yaml'?)",
        "suits/paper.yml": "no such file (did you mean 'suites/paper.yaml'?)",
        "quickstrat": "no such file (did you mean 'quickstart'?)",
        "watch": "no such file (did you mean 'leaderboard/watch' or 'registered-2/watch' or 'registered-3/watch' or "
        "'sensitivity/watch' or 'tasks/watch'?)",
        "nowhere/quickstart.yaml": "no such file (did you mean 'quickstart'?)",
        "zzz": "no such file; `msda-bench suites list` shows the suites that have names",
        "nowhere/x.yaml": "no such file",
        "suites": "is a folder; name a suite in it (paper.yaml)",
        "empty": "is a folder without suites; name a file, such as mine.yaml",
        "suites/paper.yaml/x": "cannot be read (Not a directory)",
        "x" * 5000: "cannot be read (File name too long)",
        "pipe": "is not a regular file",
        "long.yaml": "is larger than 250000 bytes; a suite is a few thousand",
    }.items():
        assert lines(path, registry) == [f"{path}: {what}"]


def test_a_name_is_loaded_from_anywhere_with_all_that_it_includes(folder, registry, monkeypatch):
    suite = load_suite("quickstart", registry)
    names = [experiment.file.name for experiment in suite.experiments]
    assert (suite.name, names) == ("quickstart", ["fonts", "opinions"])
    assert load_suite("ablations/mu", registry).name == "ablation-mu"
    monkeypatch.setattr(files, "home", lambda: folder / "home")
    write("home/bad.yaml", joined("parts/worse.yaml", name="bad"))
    write("home/parts/worse.yaml", "schema: 1\nname: worse\nseedz: 3\n")
    place = f"{folder}/home/parts/worse.yaml:3:1"
    assert f"{place}: seedz: unknown key (did you mean 'seeds'?)" in lines("bad", registry)


def test_a_file_at_that_path_takes_precedence_and_a_copy_is_never_ignored(folder, registry):
    write("quickstart", files.shipped("smoke").read_text().replace("name: smoke", "name: mine"))
    (folder / "smoke").mkdir()
    assert [load_suite(name, registry).name for name in ("quickstart", "smoke")] == ["mine", "smoke"]
    copy = folder / "smoke.yaml"
    shutil.copy(files.shipped("smoke"), copy)
    (line,) = lines("smoke", registry)
    assert line.startswith("smoke: is a suite that comes with msda-bench, and smoke.yaml is another one here; ")
    assert load_suite("smoke.yaml", registry).name == "smoke"
    copy.unlink()
    copy.symlink_to(files.shipped("smoke"))
    assert load_suite("smoke", registry).name == "smoke", "where both are one file there is nothing to choose"


ROOT = Path(__file__).parents[2]
NAME = re.compile(r"^name: (\S+)$", re.MULTILINE)
SUITES = {NAME.search(path.read_text())[1]: path for path in ROOT.glob("suites/**/*.yaml")}
OTHER_RECIPES = ("field", "leaderboard-sources")
"""Recorded before a default changed, which recipes leave out."""
RECORDED = sorted(path.parent for path in ROOT.glob("results/*/plan.json"))


def without_versions(table):
    return replace(table, methods=tuple(replace(method, distributions=()) for method in table.methods))


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)
def test_suites_plan_the_recorded_tables_and_cells(folder, install):
    for path in ROOT.glob("plugins/*/src/*.py"):  # of third parties, whose weights no key needs
        project = tomllib.loads((path.parents[1] / "pyproject.toml").read_text())["project"]
        install(project["name"], path.read_text(), version=project["version"])
    registry = discover()
    try:
        suite = load_suite(SUITES.get(folder.name, folder / "suite.yaml"), registry)
    except SuiteError as error:
        if missing := [line for line in error.lines if ": requires." in line]:
            pytest.skip(missing[0])  # a stranger's method, which is not installed here
        raise
    plan, planned = Store(folder).read_plan(), expand(suite, registry).plan
    kept = {*plan.cells}
    assert plan.cells == tuple(cell for cell in planned.cells if cell in kept)
    tables = {table.name: table for table in planned.experiments}
    for table in plan.experiments:
        now = tables[table.name]
        now = replace(now, methods=table.methods) if folder.name in OTHER_RECIPES else now
        assert without_versions(table) == without_versions(now)
