"""The site's first page in a browser: filters, order and the address, without a request, and without its script."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from tests.page.test_looks import OUTSIDE
from tests.page.test_works import reopened

ROOT = Path(__file__).parents[2]
VISIBLE = """
return [...document.querySelectorAll("#board tbody tr")].filter((row) => !row.hidden)
  .map((row) => row.cells[0].dataset.value);
"""
HEADS = "#board thead [data-column]"


@pytest.fixture(scope="session")
def site(browser, tmp_path_factory) -> Path:
    """A site of recorded reviews and digits and a regression trained here."""
    where = tmp_path_factory.mktemp("site")
    smoke = ["run", str(ROOT / "suites" / "smoke.yaml"), "--out", str(where), "--device", "cpu", "--quiet"]
    assert main([*smoke, "--executor", "inline"]) == 0
    folders = [
        shutil.copytree(ROOT / "results" / name, where / name) for name in ("paper-amazon", "ablation-digits-scale")
    ]
    assert main(["site", *map(str, folders), str(where / "smoke"), "--out", str(where / "site")]) == 0
    return where / "site" / "index.html"


@pytest.fixture
def board(browser, site):
    browser.show(site)
    yield browser
    assert browser.complaints() == []
    assert all(url.startswith("file:") or url == "data:," for url in browser.requests())


def columns(browser):
    return [head.text.split("\n")[0] for head in browser.all(HEADS) if head.is_displayed()]


def choose(browser, name, value):
    from selenium.webdriver.support.ui import Select

    Select(browser.all(f"#{name}")[0]).select_by_visible_text(value)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_completely_and_nothing_overflows(browser, site, width, dark):
    browser.show(site, width, dark=dark)
    assert browser.complaints() == []
    assert {url for url in browser.requests() if url != "data:,"} == {site.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth") == width
    assert browser.run(OUTSIDE) == []


def test_variants_are_shown_when_asked_for_a_click_sorts_and_the_address_keeps_both(board, site):
    assert columns(board) == ["paper-amazon", "smoke"]
    assert board.all("#address")[0].text == f"{site.parent.as_uri()}/"
    assert not any(name.startswith("DARN-") for name in board.run(VISIBLE))
    choose(board, "compare", "variants")
    reopened(board)
    assert columns(board) == ["pixels-unit", "pixels-bytes"]
    assert sorted(board.run(VISIBLE)) == ["DARN-code", "DARN-text"]
    choose(board, "compare", "both")
    choose(board, "modality", "text")
    heads = [head for head in board.all("#board thead button") if head.is_displayed()]
    heads[1].click()
    order = board.run(VISIBLE)
    assert order[:2] == ["TAR", "DARN"]
    heads[1].click()
    reopened(board)
    assert columns(board) == ["paper-amazon"]
    assert board.run(VISIBLE) == [*reversed(order)]
