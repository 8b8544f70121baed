"""`msda-bench suites`, and commands that find a suite by name."""

from __future__ import annotations

import errno
import itertools
import shutil
import sys
from importlib.metadata import entry_points

import pytest

import msda_bench as mb
from msda_bench import plugins
from msda_bench.cli.main import main
from msda_bench.plugins import discover
from msda_bench.suite import files as shipped
from tests.store.faulty import faults


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, *words):
    code = main([*words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_the_list_has_a_row_for_each_with_runs_and_data(capsys, monkeypatch, tmp_path):
    for name in ("MSDA_BENCH_DATA", "MSDA_BENCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    code, out, _ = said(capsys, "suites", "list")
    assert code == 0
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines()[1:]}
    assert tuple(rows) == shipped.listed()
    assert rows["smoke"].startswith("sine yes 12 The smallest suite")
    assert rows["quickstart"].startswith("fonts, opinions no, fetch ")
    assert rows["digits-five"].startswith("digits_five no, by hand ")


@pytest.mark.slow
def test_lines_on_a_terminal_have_at_most_80_characters(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _, out, _ = said(capsys, "suites", "list")
    assert max(map(len, out.splitlines())) <= 80
    assert "smoke: 12 runs on sine; data here: yes" in out.splitlines()


def test_a_plugin_that_cannot_be_loaded_does_not_hide_the_others(capsys, monkeypatch, tmp_path):
    text = shipped.shipped("smoke").read_text()
    (tmp_path / "a.yaml").write_text(text.replace("{sine:", "{not_installed:"))
    (tmp_path / "b.yaml").write_text(text)
    monkeypatch.setattr(shipped, "home", lambda: tmp_path)
    code, out, err = said(capsys, "suites", "list")
    assert code == 0
    assert [line.split()[:5] for line in out.splitlines()[1:]] == [
        ["a", "?", "?", "?", "The"],
        ["b", "sine", "yes", "12", "The"],
    ]
    assert "unknown dataset 'not_installed'" in err


def test_a_suite_whose_plugin_is_missing_says_where_to_get_it(capsys, monkeypatch):
    built_in = discover(point for point in entry_points(group="msda_bench") if point.name == "builtin")
    monkeypatch.setattr(plugins, "discover", lambda *group: discover(*group) if group else built_in)
    code, _, err = said(capsys, "run", "pacs-features", "--dry-run")
    required, unknown = err.splitlines()
    assert code == 2
    assert required.endswith(
        "pacs-features.yaml:6:12: requires.msda-bench-efficientnet-lite: is not installed; pip installs it from "
        "'plugins/efficientnet-lite of the msda-bench repository'"
    )
    assert "unknown backbone 'efficientnet-lite0' (known: convnet, " in unknown
    _, out, err = said(capsys, "suites", "list")
    unusable = [line.split()[0] for line in out.splitlines() if line.split()[1] == "?"]
    assert unusable == ["leaderboard", "leaderboard-sources", "pacs-features"]
    assert required.partition("requires")[2] in err


def test_show_prints_the_files(capsys):
    code, out, _ = said(capsys, "suites", "show", "quickstart")
    files = shipped.files_of(shipped.shipped("quickstart"))
    texts = [path.read_text() for path in files]
    heads = [f"\n# quickstart/{path.name}\n" for path in files[1:]]
    assert (code, out) == (0, texts[0] + "".join(map("".join, zip(heads, texts[1:], strict=True))))


def test_a_copy_is_complete_and_never_overwrites(capsys, here):
    assert said(capsys, "suites", "copy", "quickstart", "--out", "mine")[:2] == (
        0,
        (
            "wrote mine/quickstart.yaml\nwrote mine/quickstart/fonts.yaml\nwrote mine/quickstart/opinions.yaml\n"
            "next: msda-bench run mine/quickstart.yaml\n"
        ),
    )
    assert said(capsys, "validate", "mine/quickstart.yaml")[0] == 0
    (here / "mine" / "quickstart.yaml").unlink()
    changed = here / "mine" / "quickstart" / "fonts.yaml"
    changed.write_text("mine")
    code, out, err = said(capsys, "suites", "copy", "quickstart", "--out", "mine")
    assert (code, out) == (2, "")
    assert "mine/quickstart/fonts.yaml, mine/quickstart/opinions.yaml: already there" in err
    assert changed.read_text() == "mine"
    assert not (here / "mine" / "quickstart.yaml").exists(), "all or nothing"


def test_a_copy_on_a_full_disk_leaves_no_partial_file(capsys, here):
    for at in itertools.count():
        with faults(errno.ENOSPC, at) as faulty:
            code, out, err = said(capsys, "suites", "copy", "smoke", "--out", "my suites")
        if faulty.refused is None:
            break
        assert "cannot be written: No space left on device" in err
        assert all(path.read_bytes() == shipped.shipped("smoke").read_bytes() for path in here.rglob("*.*"))
        shutil.rmtree(here / "my suites", ignore_errors=True)
    assert (code, out.splitlines()[-1]) == (0, "next: msda-bench run 'my suites/smoke.yaml'")


@pytest.mark.parametrize("action", ["show", "copy"])
def test_an_unknown_name_is_reported_in_one_line(capsys, here, action):
    code, out, err = said(capsys, "suites", action, "../smoke")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "no suite of that name comes with msda-bench (did you mean 'smoke'?)" in err
    assert list(here.iterdir()) == []


@pytest.mark.slow
def test_a_suite_can_be_run_and_validated_by_name(capsys, here):
    assert said(capsys, "validate", "smoke")[1].endswith("suite smoke is valid: 1 experiment, 12 cells\n")
    runs = mb.run("smoke", only="method=SRC,seed=0", device="cpu", quiet=True)
    assert (here / "results" / "smoke" / "plan.json").exists()
    assert (runs["status"] == "ok").sum() == 2
