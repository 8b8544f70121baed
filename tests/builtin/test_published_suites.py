"""The suites of the field's datasets are valid, with the published numbers that they declare."""

from __future__ import annotations

import pytest

from msda_bench.suite.published import PublishedNumbers
from tests.builtin.suites import loaded

SUITES = {
    # suite: experiments, cells, comparable published numbers of its methods
    "pacs": (1, 96, 20),
    "office-31": (1, 72, 0),
    "office-home": (1, 96, 15),
    "office-home-features": (1, 320, 0),
    "domainnet": (1, 162, 35),
    "digits-five": (1, 200, 24),
    "music": (2, 640, 0),
}


@pytest.mark.parametrize("name", SUITES)
def test_suites_are_valid_and_have_their_published_numbers(name: str) -> None:
    _, expansion = loaded(name)
    plan = expansion.plan
    tables = [one.published for one in plan.experiments]
    compared = 0
    for table in tables:
        assert isinstance(table, PublishedNumbers)
        assert table.numbers
        compared += sum(
            number.backbone in table.backbones and number.protocol in table.protocols for number in table.numbers
        )
    assert (len(plan.experiments), len(plan.cells), compared) == SUITES[name]
    assert all("Not run" in " ".join(one.notes) for one in plan.experiments if name != "music")


def test_the_fields_protocol_tests_on_the_training_target() -> None:
    for name in ("pacs", "office-31", "office-home"):
        _, expansion = loaded(name)
        (experiment,) = expansion.plan.experiments
        assert any(note.startswith("Transductive: ") for note in experiment.notes)
        assert not experiment.references
