"""The processor of a record: its model, which the architecture alone would not distinguish."""

from __future__ import annotations

import platform

import pytest
import torch

from msda_bench.engine import machine


@pytest.fixture
def about(tmp_path, monkeypatch):
    """The file in which Linux describes the processors."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "Path", lambda _: path)
    machine.processor.cache_clear()
    yield path
    machine.processor.cache_clear()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n", "AMD EPYC"),
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", platform.processor() or platform.machine()),
        (None, platform.processor() or platform.machine()),
    ],
)
def test_a_record_names_the_model_or_else_the_architecture(about, text, name):
    if text is not None:
        about.write_text(text)
    made = machine.provenance(torch.device("cpu"), {}, 1)
    assert (made["device"], made["device_name"]) == ("cpu", name)
