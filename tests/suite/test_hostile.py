"""Hostile and altered suites load or are refused in few short lines, with little time and memory."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msda_bench.errors import SuiteError
from msda_bench.suite.expand import expand
from msda_bench.suite.files import MAX_BYTES
from msda_bench.suite.load import MAX_LINES, load_suite

SECONDS = 4
"""Of a processor that others may share, for what takes less than one alone."""
MEGABYTES = 200
FULL = MAX_BYTES - 2000
GOOD = (Path(__file__).parents[2] / "suites" / "smoke.yaml").read_text()


def lines_of(text, count):
    return "".join(text.replace("#", str(number)) for number in range(count))


BOMBS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{chr(ord(name) - 1)}'] * 9)}]\n" for name in "bcdefghijklmnopqrstuvwxyz"
)
HOSTILE = {
    "alias bomb": BOMBS,
    "alias of itself": "a: &a [*a, *a]\n",
    "merge keys": "<<: {a: 1}\n" * 5000,
    "deep lists": "[" * FULL,
    "deep mappings": "{a: " * (FULL // 4),
    "deep items": "- " * (FULL // 2),
    "deep keys": "? " * (FULL // 2),
    "deep indents": "".join(" " * depth + "a:\n" for depth in range(600)),
    "ten megabytes": "a" * 10_000_000,
    "one long word": "a" * FULL,
    "one long escape": '"' + "\\x41" * (FULL // 4) + '"',
    "an open quote": '"' + "a\n" * (FULL // 2),
    "a long alias": f"a: *{'x' * FULL}\n",
    "a long tag": f"a: !{'x' * FULL} 1\n",
    "a long directive": f"%{'x' * FULL}\n",
    "a long key": f'"{"k" * FULL}": 1\n',
    "a long name": GOOD.replace("scheme: pooled", f"scheme: {'p' * (FULL - 1000)}"),
    "a long number": GOOD.replace("seeds: 2", f"seeds: {'9' * (FULL - 1000)}"),
    "blank lines": "\n" * FULL,
    "a python object": "!!python/object/apply:os.system ['echo harm']\n",
    "a python name": "a: !!python/name:os.system\n",
    "nul": GOOD.replace("name: smoke", "name: smo\0ke"),
    "many seeds": GOOD.replace("seeds: 2", "seeds: 10000").replace("[target_0, target_1]", "all"),
    "thousands of unknown keys": GOOD + lines_of("methodz#: 1\n", 9000),
    "thousands of equal keys": GOOD + "name: x\n" * 9000,
    "thousands of wrong methods": GOOD.replace("  SRC:", lines_of("  M#: {scheme: poooled}\n", 3000) + "  SRC:"),
    "thousands of domains": GOOD.replace("[target_0, target_1]", f"[{lines_of('t#, ', 9000)}]"),
    "thousands of includes": f"schema: 1\nname: x\ninclude: [{lines_of('x#.yaml, ', 9000)}]\n",
    "a name of dots": GOOD.replace("name: smoke", "name: .."),
    "a method with a line's end": GOOD.replace("  SRC:", '  "SRC\\n":'),
    "a dataset that climbs": GOOD.replace("{sine:", "{../sine:"),
    "an option": GOOD.replace("name: smoke", "name: --help"),
}
CHECK = f"""
import contextlib, io, json, resource, sys
from msda_bench.cli.main import main

good, *hostile = sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()):
    assert main(["validate", good]) == 0  # imports all that is needed, which is not the suite's fault
_, hard = resource.getrlimit(resource.RLIMIT_CPU)
before = resource.getrusage(resource.RUSAGE_SELF)
for path in hostile:
    now = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(now.ru_utime + now.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (spent + {SECONDS}, hard))  # beyond it the process is killed
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["validate", path])
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss
print(grown // 1024 < {MEGABYTES})
"""


@pytest.mark.slow
def test_hostile_suites_are_reported_in_short_lines_within_little_time_and_memory(tmp_path):
    paths = [tmp_path / f"{name}.yaml" for name in HOSTILE]
    for text, path in zip(HOSTILE.values(), paths, strict=True):
        path.write_bytes(text.encode())
    good = tmp_path / "good.yaml"
    good.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())  # with a byte order mark, which does no harm
    command = [sys.executable, "-c", CHECK, str(good), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *outcomes, small = done.stdout.splitlines()
    assert len(outcomes) == len(HOSTILE), (list(HOSTILE)[len(outcomes)], done.stderr)
    assert small == "True"
    for path, outcome in zip(paths, map(json.loads, outcomes), strict=True):
        code, out, err = outcome
        assert (code, out) == (2, ""), path
        reported = err.splitlines()
        assert 1 <= len(reported) <= MAX_LINES + 1
        for line in reported:
            assert line.startswith((f"msda-bench: error: {path}:", "msda-bench: error: suite smoke asks")), path
            assert line.isprintable()
            assert len(line) < 1300
        assert "Traceback" not in err


PLACE = re.compile(r"[1-9][0-9]*:[1-9][0-9]*: ")
MARKS = [*"{}[],:-#&*!|>'\"%@`~? \n0x\t\0", "null", ".inf", "1e999", "- ", ": ", "\n  ", "<<: ", "!!int ", "&a ", "*a"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50)
@given(data=st.data())
def test_an_edited_text_loads_or_is_refused_in_single_lines(tmp_path, registry, good, data):
    text = good[: data.draw(st.sampled_from([len(good)] * 3 + [*range(len(good))]))]
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 8)))
        text = text[:start] + data.draw(st.sampled_from(MARKS) | st.text(max_size=3)) + text[end:]
    raw = bytearray(text.encode("utf-8", "surrogatepass") or b" ")
    for _ in range(data.draw(st.integers(0, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "s.yaml"
    path.write_bytes(raw)
    try:
        suite = load_suite(path, registry)
    except SuiteError as error:
        for line in error.lines:
            assert line.startswith(f"{path}:")
            assert PLACE.match(line.removeprefix(f"{path}:")) or line.endswith(" more mistakes")
            assert "\n" not in line
            line.encode()
        return
    with contextlib.suppress(SuiteError):  # more cells than allowed
        assert len(expand(suite, registry).cells) >= 1
