from __future__ import annotations

import os
from pathlib import Path

import pytest

from msda_bench.errors import SuiteError
from msda_bench.plugins import BrokenPlugin, Entry, Registry, discover
from msda_bench.suite.expand import expand
from msda_bench.suite.load import MAX_LINES, load_suite


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return Path(path)


def joined(*names: str, name: str = "top", more: str = "") -> str:
    return f"schema: 1\nname: {name}\ninclude: [{', '.join(names)}]\n{more}"


def lines(path: Path, registry: Registry) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load_suite(path, registry)
    return list(caught.value.lines)


def test_includes_are_joined_in_order(folder, registry, good):
    write("a.yaml", good.replace("name: good", "name: a"))
    write("deep/b.yaml", joined("c.yaml", "./d.yaml", name="b"))
    write("deep/c.yaml", good.replace("name: good", "name: c\nfetch: true"))
    write("deep/d.yaml", good.replace("name: good", "name: d"))
    top = write("top.yaml", joined("deep/b.yaml", "a.yaml", more="description: all\n"))
    suite = load_suite(top, registry)
    assert suite.name == "top"
    assert [experiment.name for experiment in suite.experiments] == ["c", "d", "a"]
    assert suite.fetch


def test_mistakes_of_all_files_are_reported_together(folder, registry, good):
    write("a.yaml", good.replace("seeds: 2", "seeds: 0"))
    write("b.yaml", "a: [\n")
    top = write("top.yaml", joined("a.yaml", "nope.yaml", "b.yaml", more="fetch: yes\n"))
    assert lines(top, registry) == ["top.yaml:4:8: fetch: must be true or false, not 'yes'"]
    write("top.yaml", joined("a.yaml", "nope.yaml", "b.yaml"))
    assert lines(top, registry) == [
        "top.yaml:3:19: include[1]: 'nope.yaml' no such file",
        "a.yaml:5:8: seeds: must be a count of at least 1, not 0; for one seed write [0]",
        "b.yaml:2:1: is not valid YAML: while parsing a flow node, expected the node content, but found '<stream end>'",
    ]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("/etc/s.yaml", "'/etc/s.yaml' must be relative to the file that includes it, not absolute"),
        ("'C:\\s.yaml'", "'C:\\\\s.yaml' must be relative to the file that includes it, not absolute"),
        ("../s.yaml", "'../s.yaml' leaves the folder of the suite; move the file into it"),
        ("in/../../s.yaml", "'in/../../s.yaml' leaves the folder of the suite; move the file into it"),
        ("out/s.yaml", "'out/s.yaml' leaves the folder of the suite; move the file into it"),
        ("top.yaml", "'top.yaml' is already included, or includes itself indirectly"),
        ("in", "'in' is a folder; name a suite in it (b.yaml)"),
        ("loop.yaml", "'loop.yaml' cannot be read (Too many levels of symbolic links)"),
        ("3", "must be text, not 3 (put it in quotes)"),
    ],
)
def test_invalid_includes_are_refused(folder, registry, good, name, what):
    write("in/b.yaml", good)
    (folder / "suites").mkdir()
    os.chdir("suites")
    write("in/b.yaml", good)
    Path("out").symlink_to(folder / "in")
    Path("loop.yaml").symlink_to("loop.yaml")
    assert lines(write("top.yaml", joined(name)), registry) == [f"top.yaml:3:11: include[0]: {what}"]


def test_an_included_file_may_not_leave_the_folder_of_the_top_one(folder, registry, good):
    write("x.yaml", good)
    write("suites/in/a.yaml", joined("../b.yaml", "../../x.yaml", name="a"))
    write("suites/b.yaml", good)
    assert lines(write("suites/top.yaml", joined("in/a.yaml")), registry) == [
        "suites/in/a.yaml:3:22: include[1]: '../../x.yaml' leaves the folder of the suite; move the file into it"
    ]


def test_a_cycle_of_includes_is_refused(folder, registry):
    write("a.yaml", joined("b.yaml", name="a"))
    write("b.yaml", joined("a.yaml", name="b"))
    assert lines(Path("a.yaml"), registry) == [
        "b.yaml:3:11: include[0]: 'a.yaml' is already included, or includes itself indirectly"
    ]


def test_two_experiments_with_one_name_are_refused(folder, registry, good):
    write("a.yaml", good)
    write("b.yaml", good)
    assert lines(write("top.yaml", joined("a.yaml", "b.yaml")), registry) == [
        "b.yaml:2:7: name: another experiment is called 'good', too; rename one"
    ]


def test_an_experiment_together_with_include_is_refused(folder, registry, good):
    write("a.yaml", good)
    assert lines(write("top.yaml", joined("a.yaml", more="seeds: 2\nsede: 1\n")), registry) == [
        "top.yaml:4:1: seeds: is not allowed with include; give the experiment its own file",
        "top.yaml:5:1: sede: unknown key (known: schema, name, description, include, metric, fetch)",
    ]


def test_the_metric_of_a_joining_suite_is_that_of_its_experiments(folder, registry, good):
    registry = Registry([*registry.entries, *(entry for entry in discover().entries if entry.kind == "metric")])
    plain = good.replace("published: darn-2020-amazon\n", "")
    write("a.yaml", plain)
    write("b.yaml", plain.replace("name: ", "name: other-").replace("\nseeds", "\nmetric: accuracy\nseeds"))
    suite = load_suite(write("top.yaml", joined("a.yaml", "b.yaml", more="metric: auc\n")), registry)
    assert [one.metric.name for one in suite.experiments] == ["auc", "accuracy"]
    tables = expand(suite, registry).plan.experiments
    assert [(table.measure.name, table.metric is None) for table in tables] == [("auc", False), ("accuracy", True)]
    write("c.yaml", plain.replace("\nseeds", "\nmetric: r2\nseeds"))
    (line,) = lines(Path("c.yaml"), registry)
    assert "metric: r2 measures regression; amazon is classification" in line


@pytest.mark.parametrize("text", ["[]", "a.yaml"])
def test_an_empty_include_is_refused(folder, registry, text):
    expected = "must have at least 1 item, not 0" if text == "[]" else "must be a list, not 'a.yaml'"
    top = write("top.yaml", f"schema: 1\nname: top\ninclude: {text}\n")
    assert lines(top, registry) == [f"top.yaml:3:10: include: {expected}"]


def test_unreadable_files_are_refused(folder, registry, good):
    write("suites/paper.yaml", good)
    assert lines(Path("suites/papr.yaml"), registry) == [
        "suites/papr.yaml: no such file (did you mean 'suites/paper.yaml'?)"
    ]
    assert lines(Path("papr"), registry) == ["papr: no such file (did you mean 'suites/paper.yaml'?)"]
    assert lines(Path("suits/paper.yml"), registry) == [
        "suits/paper.yml: no such file (did you mean 'suites/paper.yaml'?)"
    ]
    assert lines(Path("nowhere/x.yaml"), registry) == ["nowhere/x.yaml: no such file"]
    assert lines(Path("suites"), registry) == ["suites: is a folder; name a suite in it (paper.yaml)"]
    assert lines(Path("suites/paper.yaml/x"), registry) == ["suites/paper.yaml/x: cannot be read (Not a directory)"]
    assert lines(Path("x" * 5000), registry) == [f"{'x' * 5000}: cannot be read (File name too long)"]
    os.mkfifo("pipe")
    assert lines(Path("pipe"), registry) == ["pipe: is not a regular file"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission_is_refused(folder, registry, good):
    write("s.yaml", good).chmod(0)
    assert lines(Path("s.yaml"), registry) == ["s.yaml: cannot be read (Permission denied)"]


def test_a_file_that_is_too_large_is_refused(folder, registry):
    path = write("s.yaml", "#" * 250_001)
    assert lines(path, registry) == ["s.yaml: is larger than 250000 bytes; a suite is a few thousand"]


def test_the_number_of_lines_is_limited(folder, registry, good):
    found = lines(write("s.yaml", good + "".join(f"key{index}: 1\n" for index in range(200))), registry)
    assert len(found) == MAX_LINES + 1
    assert found[0] == (
        "s.yaml:17:1: key0: unknown key (known: schema, name, description, requires, dataset, targets, sources, seeds, "
        "backbone, training, methods, leave_out_sources, split_sources, labelled_target, select, validators, metric, "
        "keep, compare, fetch, ...)"
    )
    assert found[-1] == "s.yaml: and 150 more mistakes"


def test_a_collision_and_a_broken_plugin_are_reported_in_place(folder, registry, good):
    twin = next(entry for entry in registry.entries if entry.name == "sharpmax")
    other = Registry(
        [*registry.entries, Entry("aggregator", twin.cls, "rival", "2.0")],
        [BrokenPlugin("ruin", "ruin 3.0: hook msda_datasets: ImportError: no")],
    )
    path = write("s.yaml", good.replace("{amazon: {train: 2000}}", "amazing"))
    assert lines(path, other) == [
        (
            "s.yaml:3:10: dataset: unknown dataset 'amazing' (did you mean 'amazon'?); "
            "a plugin could not be used: ruin 3.0: hook msda_datasets: ImportError: no"
        ),
        (
            "s.yaml:13:51: methods.DARN.aggregator.sharpmax: aggregator 'sharpmax' is claimed by toys 1.0 and "
            "rival 2.0; uninstall one of them"
        ),
    ]
