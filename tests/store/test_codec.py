from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.store import Curves, Outcome, Record, files
from msda_bench.store.files import BadRecordError, NewerRecordError, decode, encode, load, same_result
from msda_bench.store.record import SCHEMA

KEY = "ab" * 32
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
OTHER = TEXT.map(lambda text: f"my {text}")
"""Names that are not fields."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FINITE | TEXT, lambda x: st.lists(x, max_size=3)
)
RECORDS = st.builds(
    Record,
    key=st.just(KEY),
    cell=st.dictionaries(OTHER, JSON, max_size=4),
    status=st.sampled_from(["ok", "diverged", "failed", "timeout", "oom", "skipped"]),
    outcome=st.none()
    | st.builds(Outcome, st.integers(0, 10**9), st.none() | st.integers(0, 10**9), st.none() | FINITE),
    bound=st.dictionaries(TEXT, FINITE, max_size=3),
    message=st.none() | TEXT,
    timing=st.dictionaries(TEXT, FINITE, max_size=3),
    provenance=st.dictionaries(OTHER, JSON, max_size=3),
)


def record() -> Record:
    return Record(KEY, {"seed": 1, "mu": 0.01}, "ok", Outcome(100, 80), message="NaN is a word here")


def forged(change: dict[str, object], schema: int = SCHEMA) -> bytes:
    """A file with a valid sha256 and any content."""
    fields = json.loads(encode(record()))["record"] | change
    body = json.dumps({"record": fields, "schema": schema}, sort_keys=True, separators=(",", ":")).encode()
    return body[:-1] + b',"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


@given(RECORDS)
def test_a_record_round_trips(record: Record) -> None:
    assert decode(encode(record), KEY) == record


def test_the_sha256_covers_the_canonical_json_without_it() -> None:
    whole = json.loads(encode(record()))
    digest = whole.pop("sha256")
    canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_every_flipped_byte_is_detected() -> None:
    data = encode(record())
    for place in range(len(data)):
        for mask in (0x01, 0x20, 0xFF):
            flipped = data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]
            with pytest.raises(BadRecordError):
                decode(flipped, KEY)


def test_every_truncation_and_addition_is_detected() -> None:
    data = encode(record())
    for length in range(len(data)):
        with pytest.raises(BadRecordError):
            decode(data[:length], KEY)
    with pytest.raises(BadRecordError):
        decode(data + b"\n", KEY)


@given(st.binary(max_size=200))
def test_bytes_that_are_not_a_record_are_refused(data: bytes) -> None:
    with pytest.raises(BadRecordError):
        decode(data, KEY)


def test_the_record_of_another_cell_is_refused() -> None:
    with pytest.raises(BadRecordError, match="another cell, abababababab"):
        decode(encode(record()), "cd" * 32)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "fine"}, "status"),
        ({"outcome": {"n_test": "100"}}, "n_test"),
        ({"timing": {"train": float("nan")}}, "NaN"),
        ({"bound": {"x": float("-inf")}}, "Infinity"),
        ({"message": "\n\x1b[31m" * 3, "status": 5}, "status"),
    ],
)
def test_invalid_content_is_refused_despite_a_valid_sha256(change: dict[str, object], words: str) -> None:
    with pytest.raises(BadRecordError, match=words):
        decode(forged(change), KEY)


CURVES = {"groups": [["a"], ["b"]], "risks": [[1.0, 2.0]], "gaps": [[1.0, 2.0]], "weights": [[0.5, 0.5]]}
ABSURD = {
    "distributions as a list": {"provenance": {"distributions": ["a"]}},
    "a version as a number": {"provenance": {"distributions": {"a": 1}}},
    "a device as a list": {"provenance": {"device": ["cpu"]}},
    "more correct answers than atoms": {"outcome": {"n_test": 100, "n_correct": 10**400}},
    "as many runs in a stack": {"provenance": {"stack": 10**400}},
    "as many steps": {"timing": {"steps": 10**400}},
    "as much in a component's parameter": {"cell": {"scheme": {"params": {"x": [10**400]}}}},
    "more of a validator than is finite": {"validation": {"v": 10**400}},
    "more validators than anyone has": {"validation": {str(number): 1 for number in range(1001)}},
    "a message without end": {"message": "x" * 10_001},
    "sources that are a number": {"cell": {"sources": 3}},
    "an unknown way to split": {"cell": {"split_sources": {"parts": 3}}},
    "a billion parts of a source": {"cell": {"split_sources": {"clusters": 10**9, "by": "chance"}}},
    "ragged rows": {"curves": CURVES | {"gaps": [[1.0]]}},
    "ragged epochs": {"curves": CURVES | {"weights": []}},
}


@pytest.mark.parametrize("name", ABSURD)
def test_impossible_values_are_refused_in_one_line_and_never_written(name: str) -> None:
    with pytest.raises(BadRecordError, match=r"^does not match its schema: .{1,300}$"):
        decode(forged(ABSURD[name]), KEY)
    change = {
        key: Curves(**value) if key == "curves" else value for key, value in ABSURD[name].items() if key != "outcome"
    }
    if change:
        with pytest.raises(BadRecordError, match=r"^record abababababab: does not match its schema"):
            encode(replace(record(), **change))


def test_unknown_newer_fields_are_kept() -> None:
    sound = replace(
        record(), cell={"later": [1], "scheme": {"name": "x", "later": {}}}, provenance={"later": {"a": 1.5}}
    )
    assert decode(encode(sound), KEY) == sound


def test_records_have_a_size_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_bytes(encode(record()))
    monkeypatch.setattr(files, "LIMIT", path.stat().st_size)
    assert load(path, KEY) == record()
    monkeypatch.setattr(files, "LIMIT", path.stat().st_size - 1)
    with pytest.raises(BadRecordError, match=r"^Larger than [0-9]+ bytes$"):
        load(path, KEY)
    with pytest.raises(BadRecordError, match=r"more than the [0-9]+ of a record"):
        encode(record())


@given(RECORDS, st.booleans())
def test_only_curves_may_be_skipped_when_reading(record: Record, empty: bool) -> None:
    curves = Curves([], [], [], []) if empty else Curves(**CURVES)
    assert decode(encode(replace(record, curves=curves)), KEY, curves=False) == record
    assert decode(encode(record), KEY, curves=False) == record
    named = replace(record, cell={"curves": {"gaps": [1]}, "x": ',"curves":{"gaps":['}, curves=curves)
    assert replace(decode(encode(named), KEY, curves=False), curves=curves) == named


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ('"seed":1', '"seed":1e999'),
        ('"seed":1', '"seed":-2E+400'),
        ('"mu":0.01', '"mu":' + "9" * 5000),
        ('"seed":1', '"seed":' + "[" * 100_000 + "]" * 100_000),
        ('"seed":1', '"seed":["NaN",' + "[" * 100_000 + "]" * 100_000 + "]"),
        ('"seed":1', '"seed":"\\ud800"'),
    ],
)
def test_numbers_and_nesting_beyond_pythons_limits_are_refused(place: str, text: str) -> None:
    whole = encode(record()).decode()
    assert place in whole
    body = whole[: whole.index(',"sha256"')].replace(place, text) + "}"
    digest = hashlib.sha256(body.encode()).hexdigest()
    with pytest.raises(BadRecordError, match="does not match its schema"):
        decode(f'{body[:-1]},"sha256":"{digest}"}}\n'.encode(), KEY)


def test_large_numbers_and_number_like_text_are_valid() -> None:
    sound = replace(record(), bound={"x": 1e300, "y": -1e-300}, message="1e999 is a word here")
    assert decode(encode(sound), KEY) == sound


def test_a_newer_schema_is_refused_and_not_called_damaged() -> None:
    with pytest.raises(NewerRecordError) as caught:
        decode(forged({}, SCHEMA + 1), KEY)
    assert str(caught.value) == f"has schema {SCHEMA + 1}, but this msda-bench reads {SCHEMA}; install a newer one"
    assert not isinstance(caught.value, BadRecordError)


def test_an_unknown_old_schema_counts_as_damage() -> None:
    with pytest.raises(BadRecordError, match="has schema 0, which no msda-bench wrote"):
        decode(forged({}, 0), KEY)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\udcff", {1, 2}])
def test_values_that_json_cannot_hold_are_not_written(value: object) -> None:
    with pytest.raises(BadRecordError, match="cannot be written as JSON"):
        encode(replace(record(), provenance={"x": value}))


def test_a_result_is_all_but_timing_and_provenance() -> None:
    assert same_result(record(), replace(record(), timing={"train": 9.0}, provenance={"host": "x"}))
    assert not same_result(record(), replace(record(), outcome=Outcome(100, 81)))
    assert not same_result(record(), replace(record(), message=None))
