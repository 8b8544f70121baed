"""The page is complete, makes no requests, and is readable on a phone, in dark mode and without scripts."""

import pytest

from msda_bench_report.plots.parts import HUES

CONTRAST = """
const luminance = (text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const probe = document.createElement("i");
document.body.append(probe);
const colour = (value) => { probe.style.color = value; return luminance(getComputedStyle(probe).color); };
const paper = colour("var(--paper)");
const ratio = (value) => { const c = colour(value); return (Math.max(c, paper) + 0.05) / (Math.min(c, paper) + 0.05); };
const found = Object.fromEntries(arguments[0].map((value) => [value, ratio(value)]));
probe.remove();
return [paper, found];
"""
OUTSIDE = """
const clipped = (element) => element.closest(".scroller, .plot, .sr, .skip, #tip");
return [...document.body.querySelectorAll("*")]
  .filter((element) => !clipped(element) && element.getBoundingClientRect().right > innerWidth + 1)
  .map((element) => element.outerHTML.slice(0, 80));
"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("name", "dark"), [("smoke", False), ("paper-amazon", False), ("hostile", False), ("site", False), ("site", True)]
)
def test_the_page_opens_completely_and_requests_nothing(browser, pages, name, width, dark):
    page = pages(name)
    browser.show(page, width, dark=dark)
    figures = [figure.get_attribute("id") for figure in browser.all("figure[id]")]
    assert bool(figures) == (name != "site")
    for figure in figures:
        browser.drawn(figure)
    assert browser.complaints() == []
    assert browser.requests() == {page.as_uri()}
    assert browser.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert browser.run("return document.querySelectorAll('script:not([type])').length") == 1 + (name != "site")
    assert browser.run(OUTSIDE) == []


@pytest.mark.parametrize("dark", [False, True])
def test_both_themes_have_enough_contrast(browser, pages, dark):
    browser.show(pages("paper-amazon"), dark=dark)
    roles = [f"var(--{name})" for name in ("ink", "muted", "accent", "warn")]
    paper, ratios = browser.run(CONTRAST, [*roles, *HUES])
    assert (paper < 0.05) if dark else (paper > 0.9)
    assert ratios["var(--ink)"] >= 7
    assert min(ratios[role] for role in roles) >= 4.5
    assert min(ratios[hue] for hue in HUES) >= 3
    root = browser.drawn("paper-amazon-forest")
    ink = browser.run("return getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
    assert ink in browser.run(
        "return [...arguments[0].querySelectorAll('.live text')].map((text) => text.getAttribute('fill'))", root
    )


def test_everything_is_readable_without_the_script(browser, pages):
    browser.show(pages("paper-amazon"), script=False)
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert not browser.all(".live svg")
    assert len(browser.all(".board tbody tr")) == 6
    assert len(browser.all(".values table")) == len(browser.all("figure")) > 20
    assert not any(one.is_displayed() for one in browser.all(".live, .controls"))
    browser.run("document.querySelectorAll('details.part').forEach((part) => { part.open = true; })")
    for figure in browser.all("figure"):
        (shown,) = figure.find_elements("css selector", ".still svg, .values[open] table")
        assert shown.is_displayed(), "the picture, or else the numbers"


PICTURES = """
const shown = [...document.querySelectorAll(".plot svg")].filter((svg) => svg.getClientRects().length);
return shown.map((svg) => {
  const box = svg.getBoundingClientRect(), text = svg.querySelector("text");
  const scale = box.width / svg.viewBox.baseVal.width;
  return [box.left, box.right, scale * parseFloat(getComputedStyle(text).fontSize)];
});
"""


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("name", ["sensitivity", "paper-amazon"])
def test_on_a_phone_every_picture_is_whole_and_its_words_can_be_read(browser, pages, name, script):
    browser.show(pages(name), 400, script=script)
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    if script:
        for figure in browser.all("figure[id]" if name == "paper-amazon" else ".headline figure"):
            browser.drawn(figure.get_attribute("id"))
    browser.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    pictures = browser.run(PICTURES)
    assert pictures
    assert all(left >= 0 and right <= 400 for left, right, _ in pictures)
    assert min(size for *_, size in pictures) >= 7


def test_paper_has_every_chart_dark_on_white_and_no_control(browser, pages):
    page = pages("paper-amazon")
    browser.show(page, dark=True)
    browser.drawn("paper-amazon-forest")
    browser.driver.execute_cdp_cmd("Page.printToPDF", {})
    assert len(browser.all("figure[data-drawn]")) == len(browser.all("figure[id]")) > 20, "those in closed parts, too"
    assert not browser.all("details.part[open]"), "closed again"
    inks = "[...document.querySelectorAll('#paper-amazon-runs .live text')].map((text) => text.getAttribute('fill'))"
    assert "#1b1f23" in browser.run(f"return {inks}")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    size = {"width": 703, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.run("document.querySelectorAll('details.part').forEach((part) => { part.open = true; })")
    assert browser.run(OUTSIDE.replace(".scroller, .plot, ", "")) == []
    shown = [one for one in browser.all("button, input, select, summary") if one.is_displayed()]
    assert {one.tag_name for one in shown} == {"summary", "button"}
    assert all(one.find_element("xpath", "..").tag_name == "th" for one in shown if one.tag_name == "button")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert browser.complaints() == []
