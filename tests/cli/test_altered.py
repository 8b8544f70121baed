"""Whatever someone has changed in a record, a plan or a reference, a command ends in lines and an exit code."""

import contextlib
import gzip
import hashlib
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.errors import BenchError
from msda_bench.store import Store
from msda_bench.store.arrays import pack
from msda_bench.store.codec import encode
from tests.logs import key_of, records_of, relog

GOLDEN = Path(__file__).parent / "golden" / "elsewhere"
OWN = "\x1b]0;own\x07"
HARM = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]")
ODD = (
    *(None, True, 0, -1, 0.5, 5e-324, 1e200, 1e308, 2**53 + 1, 10**30, float("nan"), float("inf")),
    *("", OWN, "ok", [], [[1, 1, 1]], {}, {OWN: 1}, {"name": "x"}),
)
"""What stands in the place of a value."""


def places(value, path=()):
    """The path of each value in JSON, of a list that of the first."""
    yield path
    for key in value if isinstance(value, dict) else range(min(1, len(value))) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def altered(value, path, odd):
    """JSON with something else in one place."""
    if not path:
        return odd
    first, *rest = path
    return (
        {**value, first: altered(value[first], rest, odd)}
        if isinstance(value, dict)
        else [
            altered(value[0], rest, odd),
            *value[1:],
        ]
    )


def line_of(record):
    body = json.dumps({"record": record, "schema": 1}, sort_keys=True, separators=(",", ":")).encode()
    return b'%s,"sha256":"%s"}\n' % (body[:-1], hashlib.sha256(body).hexdigest().encode())


def ends(*words):
    """The exit code of a command, whose lines are checked, and these."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, words)])  # a bug would raise
    assert code in (0, 1, 2), words
    assert code < 2 or err.getvalue().startswith("msda-bench: error: "), words
    assert HARM.findall(out.getvalue() + err.getvalue()) == [], words
    return code, (out.getvalue() + err.getvalue()).splitlines()


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """A folder with the sound result folder `sound`, its reference, and one with another method, `mine`."""
    folder = tmp_path_factory.mktemp("altered")
    shutil.copytree(GOLDEN, folder / "sound")
    assert ends("store", "reference", folder / "sound", "--out", folder / "sound.json.gz")[0] == 0
    shutil.copytree(GOLDEN, folder / "mine")
    plan = (folder / "mine/plan.json").read_text().replace('"DARN"', '"MINE"').replace('"SRC"', '"ALSO"')
    (folder / "mine/plan.json").write_text(plan)
    assert ends("leaderboard", folder / "mine", "--against", folder / "sound.json.gz")[0] == 0
    return folder


def fresh(where, name):
    """A copy of the sound folder, in the place of one before."""
    shutil.rmtree(where / name, ignore_errors=True)
    return shutil.copytree(where / "sound", where / name)


RECORD = json.loads(encode(min(records_of(GOLDEN).values(), key=lambda record: record.key)))["record"]
PLAN = json.loads((GOLDEN / "plan.json").read_bytes())


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([*places(RECORD)][1:]), st.sampled_from(ODD))
@example(("cell",), {})
@example(("timing", "steps"), 1e308)
@example(("cell", "dataset", "params", "train"), 1.0)
@example(("provenance", "distributions"), {OWN: "1"})
def test_an_altered_record_ends_in_lines(where, path, odd):
    folder = fresh(where, "record")
    record = altered(RECORD, path, odd)
    if path[0] == "cell" and odd != {}:  # a plan names the key that is right
        with contextlib.suppress(ValueError):
            record["key"] = key_of(record["cell"])
        plan = (folder / "plan.json").read_text().replace(RECORD["key"], record["key"])
        (folder / "plan.json").write_text(plan)
    relog(folder, {RECORD["key"]: line_of(record)})
    for words in (("verify", folder), ("reference", folder, "--out", where / "altered.json.gz")):
        ends("store", *words)
    code, _ = ends("leaderboard", folder, "--quiet")
    assert (path, code) != (("cell",), 0)
    assert [name for name in ("runs.csv", "tables.md") if OWN in (folder / name).read_text()] == []


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_an_altered_plan_or_reference_ends_in_lines(where, data):
    name, odd = data.draw(st.sampled_from(["plan.json", "sound.json.gz"])), data.draw(st.sampled_from(ODD))
    if name == "plan.json":
        folder = fresh(where, "plan")
        path = data.draw(st.sampled_from([*places(PLAN)]))
        (folder / name).write_text(json.dumps(altered(PLAN, path, odd)))
        ends("store", "verify", folder)
        ends("leaderboard", folder, "--quiet")
    else:
        sound = json.loads(gzip.decompress((where / name).read_bytes()))
        document = altered(sound, data.draw(st.sampled_from([*places(sound)])), odd)
        (where / "altered.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
        ends("leaderboard", where / "mine", "--against", where / "altered.json.gz", "--quiet")


@pytest.mark.parametrize("odd", [10**30, 2**53 + 1, -1, 1e308, float("nan"), float("inf")])
def test_a_number_that_no_run_has_is_refused_in_a_reference(where, odd):
    sound = json.loads(gzip.decompress((where / "sound.json.gz").read_bytes()))
    for column in ("n_test", "n_train", "seed", "stack", "steps"):
        runs = sound["runs"] | {column: [odd, *sound["runs"][column][1:]]}
        (where / "altered.json.gz").write_bytes(gzip.compress(json.dumps(sound | {"runs": runs}).encode()))
        code, lines = ends("leaderboard", where / "mine", "--against", where / "altered.json.gz")
        assert (code, len(lines), "is no usable reference (" in lines[0]) == (2, 1, True)


def test_outcomes_of_another_task_or_that_do_not_add_up_are_named(where):
    for number, outcome in enumerate(
        ({"n_test": 20, "n_correct": 3}, RECORD["outcome"] | {"sum_absolute_error": 1e6, "sum_labels": 1e9})
    ):
        folder = shutil.copytree(where / "sound", where / f"outcome-{number}")
        relog(folder, {RECORD["key"]: line_of(RECORD | {"outcome": outcome})})
        code, (line, _) = ends("store", "verify", folder)
        assert (code, "without a possible outcome" in line) == (1, True)


def test_a_second_result_that_cannot_be_read_is_named_with_its_file(where):
    folder = fresh(where, "second")
    path = folder / "log" / "00000000-1-00.jsonl"
    path.parent.mkdir()
    path.write_bytes(line_of(RECORD | {"curves": {"groups": [[0.5]], "risks": [], "gaps": [], "weights": []}}))
    line = f"{path}: record {RECORD['key']} does not match its schema: Expected `str`"
    for command, code in (("verify", 1), ("seal", 2)):
        got, lines = ends("store", command, folder)
        assert (got, sum(line in one for one in lines)) == (code, 1)


def test_arrays_that_are_no_predictions_are_one_line(where):
    folder = shutil.copytree(where / "sound", where / "arrays")
    for arrays in (
        {"row": np.arange(3)},
        {name: np.arange(size) for size, name in enumerate(("row", "label", "predicted"))},
    ):
        data = pack(arrays)
        saved = {"predictions": hashlib.sha256(data).hexdigest()}
        Store(folder).arrays.add(f"{RECORD['key']}.predictions-{saved['predictions']}.npz", data)
        relog(folder, {RECORD["key"]: line_of(RECORD | {"saved": saved})})
        with pytest.raises(BenchError, match="its arrays are no predictions of such a run; train it again"):
            mb.load_predictions(folder)
