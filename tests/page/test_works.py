"""The page's controls work by mouse and by keyboard: sorting, filtering, methods, zoom, export and address."""

import csv
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[2] / "results" / "paper-amazon" / "leaderboard.csv"
VISIBLE = """
return [...document.querySelectorAll("#board tbody tr, .board[id$=-table] tbody tr")].filter((row) => !row.hidden)
  .map((row) => row.dataset.method ?? row.cells[0].dataset.value);
"""
WHEEL = """
const { x, y, width, height } = arguments[0].getBoundingClientRect();
const at = { clientX: x + width * 0.6, clientY: y + height * 0.3, bubbles: true, cancelable: true };
const mark = document.elementFromPoint(at.clientX, at.clientY);
mark.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: -400, shiftKey: true }));
"""
FOREST, POINTS, WEIGHTS = "paper-amazon-forest", "paper-amazon-runs-electronics", "paper-amazon-course-books"
with TABLE.open() as file:
    ROWS = list(csv.DictReader(file))
AVERAGE = [row for row in ROWS if row["target"] == "average"]
BEST = [row["method"] for row in sorted(AVERAGE, key=lambda row: int(row["rank"] or len(AVERAGE)))]
RANKED = [name for name in BEST if name != "TAR"]


@pytest.fixture
def quiet(browser):
    yield browser
    assert browser.complaints() == []
    assert all(url.startswith("file:") for url in browser.requests())


@pytest.fixture
def paper(quiet, pages):
    quiet.show(pages("paper-amazon"))
    return quiet


@pytest.fixture
def site(quiet, pages):
    quiet.show(pages("site"))
    return quiet


def test_charts_are_drawn_below_the_still_one_over_several_data_sets(quiet, pages):
    quiet.show(pages("sensitivity"))
    assert quiet.all("figure:not([id])")
    assert "DARN" in quiet.words("fonts-forest")


def head(browser, text):
    (button,) = [button for button in browser.all(".board thead button") if button.text.strip() == text]
    return button


def sorts(browser):
    heads = {button.text.strip(): button.find_element("xpath", "..") for button in browser.all(".board thead button")}
    orders = {name: cell.get_attribute("aria-sort") for name, cell in heads.items()}
    return {name: how for name, how in orders.items() if how != "none"}


def numbers(browser, text):
    place = browser.run("return arguments[0].closest('th').cellIndex", head(browser, text))
    script = (
        "return [...document.querySelectorAll('.board tbody tr')].map(row => row.cells[arguments[0]].dataset.value)"
    )
    return [float(value) for value in browser.run(script, place) if value]


def box(browser, method):
    (found,) = browser.all(f'tr[data-method="{method}"] input')
    return found


def test_a_click_sorts_and_a_second_click_reverses_with_missing_values_last(paper):
    assert paper.run(VISIBLE) == BEST
    books = {row["method"]: float(row["mean"]) for row in ROWS if row["target"] == "books"}
    for reverse, how in ((True, "descending"), (False, "ascending")):
        head(paper, "books").click()
        assert numbers(paper, "books") == sorted(numbers(paper, "books"), reverse=reverse)
        assert paper.run(VISIBLE) == sorted(books, key=books.__getitem__, reverse=reverse)
        assert sorts(paper) == {"books": how}
    assert paper.all(".count")[0].text == "6 methods, sorted by books, ascending"
    for expected in ([*RANKED, "TAR"], [*reversed(RANKED), "TAR"]):
        head(paper, "Rank").click()
        assert paper.run(VISIBLE) == expected


def test_errors_sort_in_increasing_order(browser, pages):
    browser.show(pages("smoke"))
    head(browser, "average").click()
    assert numbers(browser, "average") == sorted(numbers(browser, "average"))
    assert len(numbers(browser, "average")) == 3


def test_the_keyboard_sorts_and_opens_values(paper):
    paper.run("document.querySelector('.board thead button').focus()")
    paper.press("TAB")
    focused = paper.driver.switch_to.active_element
    assert focused.text.strip() == "Method"
    assert float(paper.run("return parseFloat(getComputedStyle(arguments[0]).outlineWidth)", focused)) >= 2
    paper.press("ENTER")
    assert paper.run(VISIBLE) == sorted(BEST)
    paper.press("SPACE")
    assert paper.run(VISIBLE) == sorted(BEST, reverse=True)
    paper.run("document.querySelector('#paper-amazon-forest .plot').focus()")
    paper.press("TAB", "ENTER")
    table = paper.all(f"#{FOREST} .values table")[0]
    assert table.is_displayed()
    assert all(f"{float(row['mean']):.2f}" in table.text for row in AVERAGE)


def test_rows_can_be_filtered_by_words_and_kind(paper):
    paper.all(".filter")[0].click()
    paper.press("D_A sharp")
    assert paper.run(VISIBLE) == ["DARN"]
    assert paper.all(".count")[0].text == "1 of 6 methods"
    paper.press("ESCAPE")
    paper.choose(".kind", "ranked only")
    assert paper.run(VISIBLE) == RANKED
    head(paper, "Method").click()
    assert paper.run(VISIBLE) == sorted(RANKED)


def none_shown(browser):
    (none,) = [button for button in browser.all("[data-choose]") if button.text == "none"]
    none.click()


def test_selecting_a_method_updates_every_chart(paper):
    for figure in (FOREST, POINTS, WEIGHTS):
        assert "MDMN" in paper.words(figure)
    box(paper, "MDMN").click()
    for figure in (FOREST, POINTS, WEIGHTS):
        paper.until(lambda figure=figure: "MDMN" not in paper.words(figure))
        assert "DARN" in paper.words(figure)
    assert "MDMN" not in paper.words("paper-amazon-pairs-average"), "nor where charts are drawn later"
    none_shown(paper)
    paper.until(lambda: "DARN" not in paper.words(FOREST))
    assert {"SRC", "TAR"} <= set(paper.words(FOREST)), "references and the baseline stay"
    assert not box(paper, "SRC").is_enabled()
    assert not box(paper, "TAR").is_enabled()


def test_the_address_keeps_selection_sorting_filters_and_what_is_open(browser, pages):
    browser.show(pages("paper-amazon"))
    box(browser, "MDMN").click()
    head(browser, "books").click()
    browser.all("#paper-amazon-time summary")[0].click()
    browser.until(lambda: "open=" in browser.run("return location.hash"))
    browser.reopen()
    assert sorts(browser) == {"books": "descending"}
    assert not box(browser, "MDMN").is_selected()
    assert box(browser, "DARN").is_selected()
    assert browser.all("#paper-amazon-time[open]")
    assert not browser.all("#paper-amazon-runs[open]")
    none_shown(browser)
    browser.choose(".kind", "ranked only")
    browser.all(".filter")[0].click()
    browser.press("d_a")
    browser.reopen()
    assert browser.all(".filter")[0].get_attribute("value") == "d_a"
    assert set(browser.run(VISIBLE)) < set(RANKED)
    found = browser.words(FOREST)
    assert {"SRC", "TAR"} <= set(found)
    assert not {"DARN", "MDMN", "MDAN", "DANN"} & set(found)
    browser.run("location.hash = ''")
    browser.until(lambda: "DARN" in browser.words(FOREST))
    assert {*browser.run(VISIBLE)} == {*BEST}


@pytest.mark.parametrize("by", ["keys", "buttons"])
def test_charts_can_be_zoomed_without_a_mouse(paper, by):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    root = paper.drawn(POINTS)

    def axis():
        return sorted(paper.words(POINTS))

    def press(how):
        place = f"[data-zoom={how}]" if by == "buttons" else ".plot"
        paper.run("arguments[0].querySelector(arguments[1]).focus()", root, place)
        paper.press("ENTER" if by == "buttons" else {"in": "+", "out": "-", "whole": "0"}[how])

    whole = axis()
    press("in")
    paper.until(lambda: axis() != whole)
    near = axis()
    press("in")
    paper.until(lambda: axis() not in (whole, near))
    press("out")
    paper.until(lambda: axis() == near)
    if by == "keys":
        ActionChains(paper.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
        paper.until(lambda: axis() not in (whole, near))
    press("whole")
    paper.until(lambda: axis() == whole)
    assert not paper.all(f"#{FOREST} [data-zoom]"), "whose axis does not move"


def test_figures_are_downloaded_dark_on_white_and_as_they_are_zoomed(browser, pages, tmp_path):
    browser.show(pages("paper-amazon"), dark=True)
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    root = browser.drawn(POINTS)
    before = browser.words(POINTS)
    browser.run(WHEEL, root.find_element("css selector", ".live svg"))
    browser.until(lambda: set(browser.words(POINTS)) != set(before))
    box(browser, "MDMN").click()
    browser.until(lambda: "MDMN" not in browser.words(POINTS))
    browser.run("arguments[0].querySelectorAll('[data-export]').forEach((button) => button.click())", root)
    svg, png = (tmp_path / f"{POINTS}.{kind}" for kind in ("svg", "png"))
    browser.until(lambda: svg.exists() and svg.stat().st_size and png.exists() and png.stat().st_size)
    text = svg.read_text()
    assert 'fill="#ffffff"' in text
    assert "#1b1f23" in text
    assert "MDMN" not in text
    assert all(f">{word}<" in text for word in browser.words(POINTS))
    assert png.read_bytes().startswith(b"\x89PNG")
    (link,) = [link for link in browser.all(".downloads a") if link.text == "runs.csv"]
    link.click()
    browser.until((tmp_path / "runs.csv").exists)
    browser.until(lambda: len((tmp_path / "runs.csv").read_text().splitlines()) == 481)
    assert browser.complaints() == []


def test_variants_are_shown_when_asked_for_a_click_sorts_and_the_address_keeps_both(site, pages):
    def heads(selector):
        return [head for head in site.all(f"#board thead {selector}") if head.is_displayed()]

    def columns():
        return [head.text.split("\n")[0] for head in heads("[data-column]")]

    assert columns() == ["paper-amazon", "smoke"]
    assert site.all("#address")[0].text == f"{pages('site').parent.as_uri()}/"
    assert not any(name.startswith("DARN-") for name in site.run(VISIBLE))
    site.choose("#compare", "variants")
    site.reopen()
    assert columns() == ["pixels-unit", "pixels-bytes"]
    assert sorted(site.run(VISIBLE)) == ["DARN-code", "DARN-text"]
    site.choose("#compare", "both")
    site.choose("#modality", "text")
    heads("button")[1].click()
    order = site.run(VISIBLE)
    assert order[:2] == ["TAR", "DARN"]
    heads("button")[1].click()
    site.reopen()
    assert columns() == ["paper-amazon"]
    assert site.run(VISIBLE) == [*reversed(order)]
