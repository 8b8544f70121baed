"""The parts of the open leaderboard treat every method alike."""

from __future__ import annotations

from math import prod

import pytest
import yaml

from tests.builtin.suites import SUITES

PARTS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((SUITES / "leaderboard").glob("*.yaml"))}
AMAZON = PARTS["amazon-small"]["methods"]


def settings(method: dict) -> dict:
    """A method with the backbone's name and the aggregator's gamma, which a part may choose, left open."""
    searched = {path.replace("efficientnet-lite0", "mlp"): values for path, values in method.get("search", {}).items()}
    aggregator = method.get("aggregator")
    if isinstance(aggregator, dict) and {"logsumexp", "sharpmax"} & set(aggregator):
        ((name, _),) = aggregator.items()
        aggregator = {name: {"gamma": "the paper's"}}
    return method | {"search": searched, "aggregator": aggregator}


def test_every_part_is_included_and_has_the_same_methods():
    included = yaml.safe_load((SUITES / "leaderboard.yaml").read_text())["include"]
    assert {f"leaderboard/{name}.yaml" for name in PARTS} == set(included)
    for name, part in PARTS.items():
        assert list(part["methods"]) == list(AMAZON), name


@pytest.mark.parametrize("name", sorted(set(PARTS) - {"digits-small"}))
def test_a_method_searches_the_same_settings_in_every_part_but_digits(name):
    for method, written in PARTS[name]["methods"].items():
        assert settings(written) == settings(AMAZON[method]), method


@pytest.mark.parametrize("name", PARTS)
def test_every_method_has_as_many_candidates_as_the_budget(name):
    select = PARTS[name]["select"]
    shared = prod(map(len, select["space"].values()))
    for method, written in PARTS[name]["methods"].items():
        assert shared * prod(map(len, written.get("search", {}).values())) == select["budget"], method
