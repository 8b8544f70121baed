"""The documentation covers everything public, and its generated parts can be built."""

import csv
import importlib.util
import re
from importlib import resources

import pytest
import yaml

from msda_bench import __version__, api, functional, testing
from msda_bench.plugins import KINDS, discover
from msda_bench.suite.load import suite_schema
from tests.reader import ROOT, blocks, text_of

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def pages():
    """The functions that generate parts of the documentation."""
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / ".ci" / "docs_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(nav):
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(listed, parts))


def test_every_page_is_in_the_navigation():
    nav = yaml.safe_load(text_of("mkdocs.yml"))["nav"]
    assert listed(nav) == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_every_hook_is_documented_with_its_example_and_contract(pages):
    text = text_of("docs/hooks.md")
    sections = dict(re.findall(r"^## (msda_\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(pages.HOOKS)
    kinds = set()
    for hook, section in sections.items():
        assert f"<!-- made: {hook} -->" in section
        kinds |= set(re.findall(r"<!-- made: ([a-z]+) -->", section))
    assert kinds == set(KINDS)


@pytest.mark.parametrize("door", [api, functional, testing], ids=lambda door: door.__name__)
def test_every_public_name_is_in_the_reference(door):
    text = text_of("docs/api.md")
    named = re.findall(rf"^::: {re.escape(door.__name__)}\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(door.__all__)


def test_every_key_of_a_suite_is_explained():
    schema = suite_schema(discover())
    assert {"domain", "domains"} <= schema["$defs"]["dataset.arrays"]["properties"].keys()  # both are read
    text = text_of("docs/suite-reference.md")
    keys = {key for form in schema["anyOf"] for key in form["properties"]}
    keys |= {f"methods.*.{key}" for key in schema["$defs"]["MethodSpec"]["properties"]}
    unexplained = {key for key in keys if f"`{key}`" not in text and f"`{key.removeprefix('methods.*.')}`" not in text}
    assert not unexplained


@pytest.mark.parametrize("name", ["cli.md", "hooks.md", "suite-reference.md"])
def test_generated_parts_can_be_built(pages, name):
    text = pages.fill(text_of(f"docs/{name}"))
    assert "<!-- made" not in text
    for kind in KINDS if name == "hooks.md" else ():
        assert testing.CONTRACTS[kind].test_pickles.__doc__ in text
    for entry in discover().entries if name == "suite-reference.md" else ():
        assert f"#### `{entry.name}`" in text
        last = entry.cls.__doc__.strip().split("\n\n")[-1]
        if entry.kind == "dataset" and not last.startswith("    Parameters:"):
            assert f"To cite: {' '.join(last.split())}" in text


CODE = re.compile(r"`[^`\n]+`|^(?:    |\$ ).*", re.MULTILINE)


def test_every_documented_command_is_on_the_commands_page(pages):
    text = pages.fill(text_of("docs/cli.md"))
    known = dict(re.findall(r"^##+ msda-bench ([a-z ]+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    assert "| `--only" in known["run"]
    code = "\n".join(line for page in DOCS.glob("*.md") for line in CODE.findall(page.read_text()))
    used = re.findall(r"msda-bench ((?:data |store |suites )?[a-z]+)\b([^`\n#]*)", code)
    assert len(used) > 50
    assert not {command for command, _ in used if command not in known}
    for command, words in used:
        options = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", words))
        assert {option for option in options if f"`{option}" not in known[command]} == set(), command


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
PAGES = [*DOCS.glob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("studies/*/*.md")]


def anchors(page):
    """What a link may name on a page: its headings, as MkDocs and GitHub write them."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```|^    .*?$|`[^`\n]+`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    wrong = []
    for place, anchor in LINK.findall(text):
        path = (page.parent / place).resolve() if place else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            wrong.append(f"{place}#{anchor}")
    assert not wrong


def test_the_history_names_every_recorded_folder():
    text = text_of("results/README.md")
    days = re.findall(r"^\| (\d{4}-\d\d-\d\d) \|", text, re.MULTILINE)
    assert days == sorted(days, reverse=True)
    recorded = {path.parent.name for path in (ROOT / "results").glob("*/plan.json")}
    assert {name for name in recorded if f"`{name}`" not in text} == set()


def test_the_cited_version_is_the_current_one():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert citation["version"] == __version__
    assert f"version = {{{__version__}}}" in text_of("docs/index.md")


def test_the_page_on_ranking_has_the_method_that_the_example_plugin_ranks():
    (method,) = (block.text for block in blocks("verify.md") if block.title == "ranked.yaml")
    assert method == text_of("plugins/example-aggregator/ranked.yaml")


def test_pages_name_methods_and_papers_as_the_reference_does():
    listed = resources.files("msda_bench_report").joinpath("templates", "methods.csv").read_text()
    text = text_of("docs/methods.md")
    for row in csv.DictReader(listed.splitlines()):
        source = f"[{row['source']}]({row['paper']})" if row["paper"] else row["source"]
        assert re.search(rf"^\| {row['label']}, {re.escape(row['name'])}.*{re.escape(source)}", text, re.MULTILINE), row


NAMED = re.compile(r"`(?P<path>[\w/]+\.py)?(?:::(?P<test>\w+))?`")


def test_each_row_of_the_guarantees_names_tests_that_exist():
    guaranteed, audited = text_of("tests/README.md").split("## Equal to the authors")
    for folder, part in ((ROOT, guaranteed), (ROOT / "tests" / "builtin", audited)):
        rows = re.findall(r"^\| (?!what|guarantee).* \| (.+) \|$", part, re.MULTILINE)
        assert len(rows) > 25
        path = folder
        for row in rows:
            names = [*NAMED.finditer(row)]
            assert names, row
            for name in names:
                path = folder / name["path"] if name["path"] else path
                assert path.is_file(), name[0]
                assert name["test"] is None or f"def {name['test']}(" in path.read_text(), name[0]
