"""An altered suite loads or is refused in single lines."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msda_bench.errors import SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite

PLACE = re.compile(r"[1-9][0-9]*:[1-9][0-9]*: ")
SCRAPS = st.sampled_from(
    [
        *"{}[],:-#&*!|>'\"%@`~? \n0x",
        "\t",
        "\0",
        "null",
        ".inf",
        "1e999",
        "- ",
        ": ",
        "\n  ",
        "<<: ",
        "!!int ",
        "&a ",
        "*a",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["d_A", "none", "all", "mdmn", "picky", "faulty", "lonely", "sine", "0-3", "books", "source_risk"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["sharpmax", "picky", "train", "size", "mu"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
given_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)


def outcome(folder: Path, data: bytes, registry: Registry) -> None:
    path = folder / "s.yaml"
    path.write_bytes(data)
    try:
        suite = load_suite(path, registry)
    except SuiteError as error:
        place = f"{path}:"
        for line in error.lines:
            assert line.startswith(place)
            assert PLACE.match(line[len(place) :]) or line.endswith(" more mistakes")
            assert "\n" not in line
            line.encode()
        return
    with contextlib.suppress(SuiteError):  # more cells than allowed
        assert len(expand(suite, registry).cells) >= 1


@given_folder
@given(data=st.data())
def test_edited_text_loads_or_is_refused_in_single_lines(tmp_path, registry, good, data):
    text = good
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 8)))
        text = text[:start] + data.draw(SCRAPS | st.text(max_size=3)) + text[end:]
    outcome(tmp_path, text.encode("utf-8", "surrogatepass"), registry)


@given_folder
@given(data=st.data())
def test_edited_bytes_load_or_are_refused_in_single_lines(tmp_path, registry, good, data):
    raw = bytearray(good.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    outcome(tmp_path, bytes(raw), registry)


@given_folder
@given(data=st.data())
def test_edited_values_load_or_are_refused_in_single_lines(tmp_path, registry, good, data):
    suite = yaml.safe_load(good)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(suite)))
        if data.draw(st.booleans()) or isinstance(holder, list):
            holder[key] = data.draw(VALUES)
        else:
            holder[data.draw(st.text(max_size=5))] = holder.pop(key)
    outcome(tmp_path, yaml.safe_dump(suite, allow_unicode=True).encode("utf-8", "surrogatepass"), registry)


def places(value: Any) -> list[tuple[Any, Any]]:
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in pairs] + [place for _, item in pairs for place in places(item)]


@pytest.mark.parametrize("cut", range(0, 500, 29))
def test_truncated_suites_load_or_are_refused_in_single_lines(tmp_path, registry, good, cut):
    outcome(tmp_path, good.encode()[:cut], registry)
