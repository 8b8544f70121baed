"""Hostile suites are refused in few short lines, with little time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from msda_bench.cli.main import main
from msda_bench.errors import SuiteError
from msda_bench.suite import files
from msda_bench.suite.load import MAX_FILES, MAX_LINES, load_suite

SECONDS = 2
MEGABYTES = 200
FULL = files.MAX_BYTES - 2000
GOOD = (Path(__file__).parents[2] / "suites" / "smoke.yaml").read_text(encoding="utf-8")


def lines_of(text: str, count: int) -> str:
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
    "ten megabytes of lines": "a: 1\n" * 2_000_000,
    "one long word": "a" * FULL,
    "one long escape": '"' + "\\x41" * (FULL // 4) + '"',
    "an open quote": '"' + "a\n" * (FULL // 2),
    "a long anchor": f"a: &{'x' * FULL} 1\n",
    "a long alias": f"a: *{'x' * FULL}\n",
    "a long tag": f"a: !{'x' * FULL} 1\n",
    "a long directive": f"%{'x' * FULL}\n",
    "a long key": f'"{"k" * FULL}": 1\n',
    "a long name": GOOD.replace("scheme: pooled", f"scheme: {'p' * (FULL - 1000)}"),
    "a long number": GOOD.replace("seeds: 2", f"seeds: {'9' * (FULL - 1000)}"),
    "blank lines": "\n" * FULL,
    "a python object": "!!python/object/apply:os.system ['echo harm']\n",
    "a python name": "a: !!python/name:os.system\n",
    "a python module": GOOD.replace("schema: 1", "schema: !!python/module:antigravity"),
    "tabs": GOOD.replace("  ", "\t"),
    "nul": GOOD.replace("name: smoke", "name: smo\0ke"),
    "another byte order": GOOD,
    "an overflow": GOOD.replace("lr: 0.01", "lr: 1e999"),
    "infinity": GOOD.replace("lr: 0.01", "lr: .inf"),
    "not a number": GOOD.replace("lr: 0.01", "lr: .nan"),
    "a whole number of 70 bits": GOOD.replace("seeds: 2", "seeds: 1180591620717411303424"),
    "all seeds": GOOD.replace("seeds: 2", 'seeds: "0-2147483647"'),
    "many seeds": GOOD.replace("seeds: 2", "seeds: 10000").replace("[target_0, target_1]", "all"),
    "thousands of unknown keys": GOOD + lines_of("methodz#: 1\n", 9000),
    "thousands of equal keys": GOOD + "name: x\n" * 9000,
    "thousands of wrong methods": GOOD.replace("  SRC:", lines_of("  M#: {scheme: poooled}\n", 3000) + "  SRC:"),
    "thousands of domains": GOOD.replace("[target_0, target_1]", f"[{lines_of('t#, ', 9000)}]"),
    "thousands of includes": f"schema: 1\nname: x\ninclude: [{lines_of('x#.yaml, ', 9000)}]\n",
    "itself": "schema: 1\nname: x\ninclude: [itself.yaml]\n",
    "a name that climbs": GOOD.replace("name: smoke", "name: ../../smoke"),
    "a name of dots": GOOD.replace("name: smoke", "name: .."),
    "a name that is absolute": GOOD.replace("name: smoke", "name: /tmp/smoke"),
    "a name of 65": GOOD.replace("name: smoke", f"name: {'x' * 65}"),
    "a method that climbs": GOOD.replace("  SRC:", "  ../SRC:"),
    "a method with a line's end": GOOD.replace("  SRC:", '  "SRC\\n":'),
    "a dataset that climbs": GOOD.replace("{sine:", "{../sine:"),
    "an option": GOOD.replace("name: smoke", "name: --help"),
}


def raw(name: str) -> bytes:
    return HOSTILE[name].encode("utf-16" if name == "another byte order" else "utf-8")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "s.yaml"


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


def test_hostile_suites_are_reported_in_short_lines_within_little_time_and_memory(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.yaml" for name in HOSTILE]
    for name, path in zip(HOSTILE, paths, strict=True):
        path.write_bytes(raw(name))
    good = tmp_path / "good.yaml"
    good.write_text(GOOD, encoding="utf-8")
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


def test_a_byte_order_mark_is_accepted(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert main(["validate", str(suite)]) == 0


def test_no_more_files_are_searched_for_than_a_suite_may_join(registry, tmp_path, monkeypatch) -> None:
    asked: list[str] = []
    near = files._near
    monkeypatch.setattr(files, "_near", lambda path, names: asked.append(path.name) or near(path, names))
    for number in range(20):
        names = [f"x{number}-{index}.yaml" for index in range(20)]
        nested = {"schema": 1, "name": "x", "include": names}
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(nested))
    top = tmp_path / "top.yaml"
    nested = {"schema": 1, "name": "x", "include": [f"{number}.yaml" for number in range(20)]}
    top.write_text(yaml.safe_dump(nested))
    with pytest.raises(SuiteError) as caught:
        load_suite(top, registry)
    assert len(asked) < MAX_FILES
    assert (
        any(f"a suite joins at most {MAX_FILES}" in line for line in caught.value.lines)
        or len(caught.value.lines) == MAX_LINES + 1
    )
