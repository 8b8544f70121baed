"""A real browser with real pages. Without a browser the tests skip, or fail where MSDA_BENCH_NEED_BROWSER is set."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome
from tests.results.page.test_page import HOSTILE, build

ROOT = Path(__file__).parents[2]
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@dataclass
class Browser:
    """A browser that shows one page at a time."""

    driver: Any

    def show(self, page: Path, width: int = 1280, *, dark: bool = False, script: bool = True) -> None:
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

    def run(self, script: str, *values: object) -> Any:
        """The value that a script returns."""
        return self.driver.execute_script(script, *values)

    def all(self, selector: str) -> list[Any]:
        """The elements that match a selector."""
        return self.driver.find_elements("css selector", selector)

    def drawn(self, figure: str, timeout: float = 60) -> Any:
        """A figure, scrolled into view and drawn live."""
        from selenium.webdriver.support.ui import WebDriverWait

        script = """
            const figure = document.getElementById(arguments[0]);
            for (let part = figure; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
            figure.scrollIntoView({ block: "center" });
            return "drawn" in figure.dataset && figure.querySelector(".live svg") !== null;
        """
        WebDriverWait(self.driver, timeout).until(lambda driver: driver.execute_script(script, figure))
        return self.driver.find_element("id", figure)

    def until(self, what: Callable[[], Any], timeout: float = 60) -> None:
        """Waits until a script returns a true value."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, timeout).until(lambda _: what())

    def press(self, *keys: str) -> None:
        """Types keys into the focused element."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def complaints(self) -> list[str]:
        """The messages in the console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """All requested addresses."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
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


def _lacks(what: str) -> None:
    (pytest.fail if os.environ.get("MSDA_BENCH_NEED_BROWSER") else pytest.skip)(what)


@pytest.fixture(scope="session")
def pages(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`pages(name)`: the page of smoke (trained here), of the paper's table (recorded), or of hostile names."""
    made: dict[str, Path] = {}

    def page(name: str) -> Path:
        if name not in made:
            made[name] = _PAGES[name](tmp_path_factory.mktemp(name))
        return made[name]

    return page


def _smoke(where: Path) -> Path:
    suite = ROOT / "suites" / "smoke.yaml"
    assert main(["run", str(suite), "--out", str(where), "--device", "cpu", "--executor", "inline", "--quiet"]) == 0
    assert main(["report", str(where / "smoke")]) == 0
    return where / "smoke" / "report.html"


def _paper(where: Path) -> Path:
    folder = Path(shutil.copytree(ROOT / "results" / "paper-amazon", where / "paper-amazon"))
    assert main(["report", str(folder)]) < 2
    return folder / "report.html"


def _hostile(where: Path) -> Path:
    """A folder with everything that plans and records can hold, and more methods than charts show at first."""

    def make(method: str, target: str, seed: int) -> Outcome | str:
        if method == "m3" and seed > 1:
            return f"failed: </script><script>alert('{target}')</script>"
        correct = 100 + (int(method[1:]) * 7 + seed * 11 + len(target)) % 40
        return Outcome(200, correct, confusion=((0, 0, correct - 50), (1, 1, 50), (1, 2, 200 - correct)))

    methods = (*(f"m{n}" for n in range(15)), "ref")
    store = build(where / "hostile", lambda name, *run: make(name.replace("ref", "m15"), *run), methods, HOSTILE[:3], 3)
    assert main(["report", str(store)]) < 2
    return store / "report.html"


_PAGES: dict[str, Callable[[Path], Path]] = {"smoke": _smoke, "paper-amazon": _paper, "hostile": _hostile}
