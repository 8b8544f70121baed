"""A record's line: every changed byte shows, and only possible contents are written or read."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.store import Curves, Outcome, Record, codec
from msda_bench.store.codec import SCHEMA, BadRecordError, NewerRecordError, decode, decode_summary, encode
from msda_bench.store.record import same_result
from msda_bench.suite.run_spec import canonical_json
from tests.store.conftest import make_record

KEY = "ab" * 32
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
OTHER = TEXT.map(lambda text: f"my {text}")
"""Names that are not fields."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FINITE | TEXT, lambda x: st.lists(x, max_size=3)
)


def keyed(cell, **fields):
    """A record with the key of its cell."""
    return Record(hashlib.sha256(canonical_json(cell).encode()).hexdigest(), cell, **fields)


RECORDS = st.builds(
    keyed,
    cell=st.dictionaries(OTHER, JSON, max_size=4),
    status=st.sampled_from(["ok", "diverged", "failed", "timeout", "oom", "skipped"]),
    outcome=st.none()
    | st.builds(Outcome, st.integers(0, 10**9), st.none() | st.integers(0, 10**9), st.none() | FINITE),
    bound=st.dictionaries(TEXT, FINITE, max_size=3),
    message=st.none() | TEXT,
    timing=st.dictionaries(TEXT, FINITE, max_size=3),
    provenance=st.dictionaries(OTHER, JSON, max_size=3),
)
CURVES = {"groups": [["a"], ["b"]], "risks": [[1.0, 2.0]], "gaps": [[1.0, 2.0]], "weights": [[0.5, 0.5]]}
COUNTED = Outcome(100, 80, confusion=((0, 0, 50), (0, 1, 20), (1, 1, 30)))
SUMMED = Outcome(4, sum_squared_error=2.0, sum_absolute_error=1.5, sum_labels=0.0, sum_squared_labels=9.0)


def made():
    return Record(KEY, {"seed": 1, "mu": 0.01}, "ok", Outcome(100, 80), message="NaN is a word here")


def forged(change, schema=SCHEMA):
    """A file with a valid sha256 and any content; text replaces the cell's seed."""
    fields = json.loads(encode(made()))["record"] | (change if isinstance(change, dict) else {})
    body = json.dumps({"record": fields, "schema": schema}, sort_keys=True, separators=(",", ":"))
    body = body.replace('"seed":1', f'"seed":{change}') if isinstance(change, str) else body
    return f'{body[:-1]},"sha256":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n'.encode()


@settings(max_examples=40)
@given(RECORDS, st.sampled_from([None, Curves([], [], [], []), Curves(**CURVES)]))
def test_a_record_round_trips_with_and_without_its_curves(record, curves):
    whole = replace(record, curves=curves)
    assert decode(encode(whole)) == whole
    summary = decode_summary(encode(whole))
    assert (summary.key, summary.status, summary.message) == (record.key, record.status, record.message)


def test_every_damaged_byte_is_detected():
    data = encode(made())
    damaged = [data + b"\n", *(data[:length] for length in range(len(data)))]
    for place in range(len(data)):
        damaged += [data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :] for mask in (0x01, 0x20)]
    for torn in damaged:
        with pytest.raises(BadRecordError):
            decode(torn)


def test_other_layouts_are_refused():
    with pytest.raises(BadRecordError, match="has schema 0, which no msda-bench wrote"):
        decode(forged({}, 0))
    line = f"has schema {SCHEMA + 1}, but this msda-bench reads {SCHEMA}; install a newer one"
    with pytest.raises(NewerRecordError, match=line):
        decode(forged({}, SCHEMA + 1))


ABSURD = {
    "no key": {"key": ""},
    "a key that climbs": {"key": "../../../etc/passwd"},
    "a key in capitals": {"key": "A" * 64},
    "a short key": {"key": "a" * 63},
    "a key of two lines": {"key": "a" * 64 + "\n"},
    "an unknown status": {"status": "fine"},
    "text for a number": {"outcome": {"n_test": "100"}},
    "NaN": {"timing": {"train": float("nan")}},
    "an infinity": {"bound": {"x": float("-inf")}},
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
    "an overflow": "1e999",
    "a negative overflow": "-2E+400",
    "thousands of digits": "9" * 5000,
    "deep nesting": "[" * 100_000 + "]" * 100_000,
    "deep nesting beside text": '["NaN",' + "[" * 100_000 + "]" * 100_000 + "]",
    "half a character": '"\\ud800"',
}


@pytest.mark.parametrize("name", ABSURD)
def test_impossible_values_are_refused_in_one_line_and_never_written(name):
    change = ABSURD[name]
    with pytest.raises(BadRecordError, match=r"^does not match its schema: .{1,300}$"):
        decode(forged(change))
    if isinstance(change, dict) and "outcome" not in change:
        wrong = {key: Curves(**value) if key == "curves" else value for key, value in change.items()}
        with pytest.raises(BadRecordError, match=r"^record [^:]{0,12}: (does not match its schema|cannot be written)"):
            encode(replace(made(), **wrong))


@pytest.mark.parametrize("part", [{"dataset": []}, {"dataset": None}, {"dataset": {"params": 3}}, {"target": 1}])
def test_what_tables_need_is_refused_where_it_is_something_else(part):
    for change in ({"cell": part}, {"provenance": {"torch": part}}, {"status": "fine"}):
        with pytest.raises(BadRecordError, match=r"^does not match its schema: .{1,300}$"):
            decode_summary(forged(change))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\udcff", {1, 2}])
def test_values_that_json_cannot_hold_are_not_written(value):
    with pytest.raises(BadRecordError, match="cannot be written as JSON"):
        encode(replace(made(), provenance={"x": value}))


def test_large_numbers_text_like_numbers_and_fields_of_later_versions_are_kept():
    later = {"cell": {"later": [1], "scheme": {"name": "x", "later": {}}}, "provenance": {"later": {"a": 1.5}}}
    sound = replace(made(), bound={"x": 1e300, "y": -1e-300}, message="1e999 is a word here", **later)
    assert decode(encode(sound)) == sound


def test_records_have_a_size_limit(monkeypatch):
    monkeypatch.setattr(codec, "LIMIT", len(encode(made())))
    encode(made())
    monkeypatch.setattr(codec, "LIMIT", len(encode(made())) - 1)
    with pytest.raises(BadRecordError, match=r"more than the [0-9]+ of a record"):
        encode(made())


@pytest.mark.parametrize("outcome", [COUNTED, SUMMED, Outcome(100, 0), Outcome(100, 100)])
def test_the_same_result_is_all_but_timing_and_provenance_and_later_counts(outcome):
    record = make_record(outcome=outcome, metrics={"auc": 0.5})
    assert outcome.is_possible
    assert decode(encode(record)) == record
    older = replace(record, outcome=Outcome(outcome.n_test, outcome.n_correct, outcome.sum_squared_error))
    assert not {b"confusion", b"sum_labels"} & set(encode(older).split(b'"'))
    assert same_result(older, replace(record, timing={"train": 9.0}, provenance={"host": "x"}))
    for other in (
        replace(record, outcome=replace(outcome, n_test=101)),
        replace(record, outcome=None),
        replace(record, message="another"),
    ):
        assert not same_result(other, record)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(0, 0),
        Outcome(100),
        Outcome(100, 101),
        Outcome(100, -1),
        Outcome(100, 50, 2.0),
        Outcome(4, sum_squared_error=-1.0),
        replace(COUNTED, n_correct=79),
        replace(COUNTED, n_test=101),
        replace(COUNTED, confusion=((0, 0, 40), (0, 0, 40), (0, 1, 20))),
        replace(COUNTED, sum_labels=1.0),
        replace(SUMMED, confusion=((0, 0, 4),)),
        replace(SUMMED, sum_labels=None),
        replace(SUMMED, sum_absolute_error=-1.0),
        replace(SUMMED, sum_absolute_error=2.9),
        replace(SUMMED, sum_absolute_error=1.4),
        replace(SUMMED, sum_labels=-6.1),
        replace(SUMMED, sum_labels=1e308),
    ],
    ids=str,
)
def test_impossible_counts_give_no_outcome(outcome):
    assert not outcome.is_possible
