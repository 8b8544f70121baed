"""What is promised about installing and checking: pins for everything, open ranges, a short example, one script."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
PINNED = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in PINS}
OWN = {"msda-bench"}


def declared() -> list[Requirement]:
    extras = [line for lines in PROJECT.get("optional-dependencies", {}).values() for line in lines]
    return [Requirement(line) for line in (*PROJECT["dependencies"], *extras)]


def test_constraints_are_plain_pins():
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in PINS)
    assert PINS[0].startswith("torch==")


def test_everything_that_the_package_asks_for_is_pinned_within_its_range():
    for requirement in declared():
        name = canonicalize_name(requirement.name)
        if name in OWN:
            continue
        assert name in PINNED, f"{name} is not in constraints.txt"
        assert PINNED[name] in requirement.specifier, f"{name}=={PINNED[name]} is outside {requirement.specifier}"


def test_ranges_stay_open():
    bounded = [str(requirement) for requirement in declared() if re.search("<|==|~=", str(requirement.specifier))]
    assert not bounded


def test_example_plugin_is_as_short_as_promised():
    folder = ROOT / "plugins" / "example-aggregator"
    lines = [line for path in (folder / "src").rglob("*.py") for line in path.read_text().splitlines()]
    assert len(lines) < 20
    contract = (folder / "tests" / "test_contract.py").read_text().split("\n")
    assert len([line for line in contract if line.strip()]) < 6


def test_ci_runs_what_tox_runs():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    assert "tox run" in script.read_text()
    assert "bash .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
