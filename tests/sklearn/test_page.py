"""The documentation page names every estimator, and its example runs verbatim."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import msda_bench.sklearn as found

PAGE = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text()
NUMBERS = re.compile(r" *[0-9]*\.[0-9]*")


def test_every_estimator_is_named() -> None:
    assert [name for name in found.__all__ if f"`{name}`" not in PAGE] == []


@pytest.mark.slow
def test_the_example_prints_what_the_page_says() -> None:
    (code,) = re.findall(r"^```python\n(import numpy.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    # Another CPU rounds otherwise, and a training shows it.
    assert NUMBERS.sub("#", done.stdout) == NUMBERS.sub("#", shown)
    pooled, _, adapted, _ = done.stdout.splitlines()
    assert float(adapted.split()[-1]) > float(pooled.split()[-1])
    assert float(NUMBERS.findall(done.stdout)[-1]) < 0.1
