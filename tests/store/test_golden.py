"""A folder of every released layout must stay readable for ever."""

import gzip
from pathlib import Path

from msda_bench.store import Outcome, Store
from msda_bench.store.check import verify
from msda_bench.store.codec import SCHEMA, decode, encode

GOLDEN = Path(__file__).parent / "golden"


def test_every_layout_has_a_golden_folder():
    assert sorted(path.name for path in GOLDEN.iterdir()) == [f"schema-{number}" for number in range(1, SCHEMA + 1)]


def test_the_first_layout_is_read():
    store = Store(GOLDEN / "schema-1")
    verified = verify(store)
    assert (verified.records, verified.failures, len(verified.conflicts), verified.bad) == (5, 1, 1, [])
    plan = store.read_plan()
    assert [(table.name, table.task) for table in plan.experiments] == [
        ("regression", "regression"),
        ("classification", "classification"),
        ("diverging", "regression"),
    ]
    first, second, pooled, oracle, diverged = (store.read(key) for key in dict.fromkeys(c.key for c in plan.cells))
    assert first.outcome == Outcome(20, sum_squared_error=24.859733042060586)
    assert first.curves is not None
    assert (len(first.curves.groups), [len(epoch) for epoch in first.curves.weights]) == (8, [8, 8])
    assert second.validation == {"source_risk": -1.2562391866198332}
    assert (second.timing["steps"], second.provenance["device"]) == (4, "cpu")
    assert pooled.outcome == Outcome(30, n_correct=1)
    assert pooled.bound == {"effective_sample_size": 180.0, "weights_norm": 1.0}
    assert (oracle.target_labels, pooled.target_labels) == (True, False)
    assert (diverged.status, diverged.outcome) == ("diverged", None)
    assert diverged.message == "a risk, gap or weight was not finite in epoch 1"
    (failure,) = store.failures[second.key]
    assert (failure.status, failure.message) == ("timeout", "its process took longer than 0.01 s")
    assert store.conflicting([first.key, oracle.key]).keys() == {oracle.key}


def test_reading_and_writing_todays_layout_changes_nothing():
    lines = gzip.decompress((GOLDEN / f"schema-{SCHEMA}" / "records.jsonl.gz").read_bytes()).splitlines(keepends=True)
    assert len(lines) == 7
    assert [encode(decode(line)) for line in lines] == lines
