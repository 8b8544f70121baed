"""A real browser with real pages. Without a browser the tests skip, or fail where MSDA_BENCH_NEED_BROWSER is set."""

import json
import os
import shutil
from functools import cache
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome
from tests.results.conftest import HOSTILE
from tests.results.page.test_page import build

ROOT = Path(__file__).parents[2]
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Browser:
    """A browser that shows one page at a time."""

    def __init__(self, driver):
        self.driver = driver

    def show(self, page, width=1280, *, dark=False, script=True):
        """Opens a page and clears the earlier log."""
        wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        theme = {"features": [{"name": name, "value": value} for name, value in wishes.items()]}
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.get("about:blank")  # without scripts the driver does not wait, and would find the page before
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", theme)
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(page.as_uri())
        self.until(lambda: self.all("footer"))

    def reopen(self):
        address = self.run("return location.href")
        self.driver.get("about:blank")
        self.driver.get(address)

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def drawn(self, figure):
        """A figure, scrolled into view and drawn live."""
        script = """
            const figure = document.getElementById(arguments[0]);
            for (let part = figure; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
            figure.scrollIntoView({ block: "center" });
            return "drawn" in figure.dataset && figure.querySelector(".live svg") !== null;
        """
        self.until(lambda: self.run(script, figure))
        return self.driver.find_element("id", figure)

    def words(self, figure):
        """The texts of a live chart."""
        script = "return [...arguments[0].querySelectorAll('.live text')].map((text) => text.textContent)"
        return self.run(script, self.drawn(figure))

    def until(self, what):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60).until(lambda _: what())

    def press(self, *keys):
        """Types text, or keys by name, into the focused element."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.driver).send_keys(*(getattr(Keys, key, key) for key in keys)).perform()

    def choose(self, selector, text):
        """Selects an option of a list by its text."""
        from selenium.webdriver.support.ui import Select

        Select(self.all(selector)[0]).select_by_visible_text(text)

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """All requested addresses but those of what the page holds itself."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        urls = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
        return {url for url in urls if not url.startswith(("data:", "blob:"))}


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        _lacks("chromium and chromedriver are not installed (apt-get install chromium chromium-driver)")
    try:
        from selenium import webdriver
    except ImportError:
        _lacks("selenium is not installed (pip install selenium)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield Browser(started)
    finally:
        started.quit()


def _lacks(what):
    (pytest.fail if os.environ.get("MSDA_BENCH_NEED_BROWSER") else pytest.skip)(what)


@pytest.fixture(scope="session")
def pages(browser, tmp_path_factory):
    """`pages(name)`: the page of a recorded suite, of smoke (trained here), of hostile names, or the site of three."""

    @cache
    def folder(name):
        where = tmp_path_factory.mktemp(name)
        if name == "smoke":
            suite = ["run", str(ROOT / "suites" / "smoke.yaml"), "--out", str(where), "--device", "cpu", "--quiet"]
            assert main([*suite, "--executor", "inline"]) == 0
            return where / "smoke"
        return hostile(where) if name == "hostile" else shutil.copytree(ROOT / "results" / name, where / name)

    @cache
    def page(name):
        if name == "site":
            out = tmp_path_factory.mktemp("site")
            folders = [str(folder(name)) for name in ("paper-amazon", "ablation-digits-scale", "smoke")]
            assert main(["site", *folders, "--out", str(out)]) == 0
            return out / "index.html"
        assert main(["report", str(folder(name))]) < 2
        return Path(folder(name), "report.html")

    return page


def hostile(where):
    """A folder with everything that plans and records can hold, and more methods than charts show at first."""

    def make(method, target, seed):
        if method == "m3" and seed > 1:
            return f"failed: </script><script>alert('{target}')</script>"
        correct = 100 + (int(method.replace("ref", "m15")[1:]) * 7 + seed * 11 + len(target)) % 40
        return Outcome(200, correct, confusion=((0, 0, correct - 50), (1, 1, 50), (1, 2, 200 - correct)))

    return build(where / "hostile", make, (*(f"m{n}" for n in range(15)), "ref"), HOSTILE[:3], 3)
