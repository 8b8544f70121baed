"""Distributions made from templates are complete plugins; all names derive from the component's name."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from msda_bench.component.base import PLAIN_NAME
from msda_bench.errors import BenchError
from msda_bench.plugins import KINDS, discover
from msda_bench.scaffold import Names, render, write
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from tests.own import broken

EXAMPLE = Path(__file__).parents[1] / "plugins" / "example-aggregator"


@pytest.mark.parametrize(
    ("component", "class_name", "distribution"),
    [
        ("inverse_risk", "InverseRisk", "inverse-risk"),
        ("InverseRisk", "InverseRisk", "inverse-risk"),
        ("MDD", "MDD", "mdd"),
        ("top_2", "Top2", "top-2"),
        ("a__b_", "AB", "a-b"),
        ("a", "A", "a"),
        ("x" * 40, "X" + "x" * 39, "x" * 40),
        ("HTTPServer", "HTTPServer", "httpserver"),
        ("a_1b", "A1b", "a-1b"),
    ],
)
def test_names_derive_from_the_components_name_and_are_valid_where_they_are_used(component, class_name, distribution):
    names = Names.of("scheme", component)
    assert (names.component, names.class_name, names.distribution) == (
        component, class_name, f"msda-bench-{distribution}",
    )  # fmt: skip
    assert re.fullmatch(PLAIN_NAME, names.component)
    assert names.class_name.isidentifier()
    assert names.module.isidentifier()
    assert canonicalize_name(names.distribution) == names.distribution


@pytest.mark.parametrize(
    ("components", "words"),
    [
        (
            ["", "3x", "_x", "a-b", "a b", "a.b", "é", "a" * 41, "x\n", "../x"],
            "use at most 40 letters, digits and '_', with a letter first",
        ),
        (["class", "lambda", "None", "none_", "true"], "is a Python keyword; choose another name"),
    ],
)
def test_invalid_names_are_refused(components, words):
    for component in components:
        with pytest.raises(BenchError, match=words):
            Names.of("aggregator", component)


@pytest.mark.parametrize("kind", [*KINDS, "fitted"])
def test_a_generated_distribution_is_complete_and_its_component_keeps_its_contract(install, tmp_path, kind):
    fitted = kind == "fitted"
    kind = "scheme" if fitted else kind
    names = Names.of(kind, f"made_{kind}", fitted=fitted)
    folder = write(names, tmp_path / "new" / "place")
    assert folder == tmp_path / "new" / "place" / names.distribution
    text = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert not any("$" in part for part in (*text, *text.values()))
    project = tomllib.loads(text["pyproject.toml"])
    assert project["project"]["name"] == names.distribution
    assert project["project"]["entry-points"]["msda_bench"] == {f"made_{kind}": names.module}
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [f"src/{names.module}.py"]
    assert f"from {names.module} import {names.class_name}" in text["tests/test_contract.py"]
    install(names.distribution, text[f"src/{names.module}.py"])
    registry = discover()
    assert not registry.broken
    entry = registry.entry(kind, names.component)
    assert broken(entry.create({})) == []
    expansion = expand(load_suite(folder / "suite.yaml", registry), registry)
    assert expansion.plan.suite == names.suite
    assert len(expansion.plan.cells) == 8


def test_the_example_plugin_equals_the_generated_files():
    text = render(Names.of("aggregator", "inverse_risk", suite="example-aggregator"))
    for place in set(text) - {"README.md"}:  # which says, too, that it is an example
        assert (EXAMPLE / place).read_text() == text[place], f"{place} of the example is not what `new` writes"
    there = {path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*") if path.is_file()}
    ranked = {"tests/test_ranked.py"}  # what docs/verify.md does with it
    assert {place for place in there if "__pycache__" not in place and not place.startswith(".")} - ranked == set(text)


def test_what_cannot_be_written_is_one_line_and_existing_files_stay(tmp_path):
    names = Names.of("dataset", "mine")
    (tmp_path / names.distribution).write_text("precious")
    with pytest.raises(BenchError, match="already exists; remove it, or choose another place with --out"):
        write(names, tmp_path)
    assert (tmp_path / names.distribution).read_text() == "precious"
    with pytest.raises(BenchError, match=r"cannot be written: File exists") as caught:
        write(names, tmp_path / names.distribution)
    assert len(caught.value.lines) == 1
