"""The documentation has a place for all there is, and its generated parts can be made."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from msda_bench import __version__, api, functional, testing
from msda_bench.plugins import KINDS, discover
from msda_bench.suite.json_schema import suite_schema

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """What fills the generated parts when the documentation is built."""
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / ".ci" / "docs_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(listed, parts))


def test_every_page_is_in_the_navigation():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert listed(nav) == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_every_hook_is_documented_with_its_example_and_contract(pages):
    text = (DOCS / "hooks.md").read_text()
    sections = dict(re.findall(r"^## (msda_\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(pages.HOOKS)
    kinds = set()
    for hook, section in sections.items():
        assert f"<!-- made: {hook} -->" in section
        kinds |= set(re.findall(r"<!-- made: ([a-z]+) -->", section))
    assert kinds == set(KINDS)


@pytest.mark.parametrize("door", [api, functional, testing], ids=lambda door: door.__name__)
def test_every_public_name_is_in_the_reference(door):
    text = (DOCS / "api.md").read_text()
    named = re.findall(rf"^::: {re.escape(door.__name__)}\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(door.__all__)


def test_every_key_of_a_suite_is_explained():
    schema = suite_schema(discover())
    text = (DOCS / "suite-reference.md").read_text()
    keys = {key for form in schema["anyOf"] for key in form["properties"]}
    keys |= {f"methods.*.{key}" for key in schema["$defs"]["MethodSpec"]["properties"]}
    unexplained = {key for key in keys if f"`{key}`" not in text and f"`{key.removeprefix('methods.*.')}`" not in text}
    assert not unexplained


@pytest.mark.parametrize("name", ["hooks.md", "schemes.md", "suite-reference.md"])
def test_generated_parts_can_be_made(pages, name):
    text = pages.fill((DOCS / name).read_text())
    assert "<!-- made" not in text
    for kind in KINDS if name == "hooks.md" else ():
        assert testing.CONTRACTS[kind].test_pickles.__doc__ in text
    for entry in discover().entries if name == "suite-reference.md" else ():
        assert f"#### `{entry.name}`" in text


def test_a_mark_for_something_unknown_is_an_error(pages):
    with pytest.raises(KeyError):
        pages.fill("<!-- made: nonsense -->")


def test_the_version_to_cite_is_this_one():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert f"version = {{{__version__}}}" in (DOCS / "cite.md").read_text()
