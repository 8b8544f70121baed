"""Generated distributions are complete plugins, and the aggregator's equals the project's example."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from msda_bench.errors import BenchError
from msda_bench.plugins import KINDS, discover
from msda_bench.scaffold import Names, render, write
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.testing import examine

EXAMPLE = Path(__file__).parents[2] / "plugins" / "example-aggregator"


@pytest.mark.parametrize("kind", KINDS)
def test_generated_component_keeps_its_contract_and_its_suite_is_valid(install, tmp_path, kind):
    names = Names.of(kind, f"made_{kind}")
    text = render(names)
    install(names.distribution, text[f"src/{names.module}.py"])
    registry = discover()
    assert not registry.broken
    entry = registry.entry(kind, names.component)
    assert [finding for finding in examine(entry.create({})) if finding.outcome == "broken"] == []
    suite = tmp_path / "suite.yaml"
    suite.write_text(text["suite.yaml"])
    expansion = expand(load_suite(suite, registry), registry)
    assert expansion.plan.suite == names.suite
    assert len(expansion.plan.cells) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_generated_metadata_matches_the_module(kind):
    names = Names.of(kind, f"made_{kind}")
    text = render(names)
    project = tomllib.loads(text["pyproject.toml"])
    assert project["project"]["name"] == names.distribution
    assert project["project"]["entry-points"]["msda_bench"] == {f"made_{kind}": names.module}
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [f"src/{names.module}.py"]
    assert f"from {names.module} import {names.class_name}" in text["tests/test_contract.py"]
    assert not any("$" in part for part in (*text, *text.values()))


def test_example_plugin_equals_the_generated_files():
    text = render(Names.of("aggregator", "inverse_risk", suite="example-aggregator"))
    own = {"README.md"}  # which says, too, that it is an example
    for place in set(text) - own:
        assert (EXAMPLE / place).read_text() == text[place], f"{place} of the example is not what `new` writes"
    there = {path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert {place for place in there if "__pycache__" not in place and not place.startswith(".")} == set(text)


def test_all_files_are_written_to_the_folder(tmp_path):
    names = Names.of("dataset", "mine")
    folder = write(names, tmp_path / "new" / "place")
    assert folder == tmp_path / "new" / "place" / "msda-bench-mine"
    written = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert written == render(names)


def test_existing_files_are_not_overwritten(tmp_path):
    names = Names.of("dataset", "mine")
    (tmp_path / names.distribution).write_text("precious")
    with pytest.raises(BenchError, match="already exists; remove it, or choose another place with --out"):
        write(names, tmp_path)
    assert (tmp_path / names.distribution).read_text() == "precious"


def test_an_unwritable_folder_is_reported_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchError, match=r"cannot be written: Not a directory") as caught:
        write(Names.of("dataset", "mine"), tmp_path / "file")
    assert len(caught.value.lines) == 1
