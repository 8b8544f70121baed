"""msda-bench's suites are found by name, and the user's files take precedence."""

from __future__ import annotations

import shutil

import pytest

from msda_bench.errors import SuiteError
from msda_bench.plugins import discover
from msda_bench.suite import files as shipped
from msda_bench.suite.load import load_suite


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_is_listed_once_and_parts_are_not():
    parts = {"quickstart/fonts", "field/amazon", "stress/flipped", "ablations/digits-scale/unit"}
    assert parts < set(shipped.names())
    listed = shipped.listed()
    assert not parts & set(listed)
    assert {"quickstart", "paper", "paper-amazon", "ablations/mu", "stress/leave-out"} < set(listed)
    assert [*listed] == sorted(listed, key=lambda name: ("/" in name, name))


def test_each_says_in_its_first_sentence_what_it_is():
    for name in shipped.listed():
        words = shipped.purpose(shipped.shipped(name))
        assert words.endswith("."), name
        assert words[0].isupper(), name
        assert len(words) < 160, name


def test_a_name_is_loaded_from_anywhere_with_all_that_it_includes(here):
    suite = load_suite("quickstart", discover())
    assert (suite.name, [experiment.name for experiment in suite.experiments]) == ("quickstart", ["fonts", "opinions"])
    assert load_suite("stress/leave-out", discover()).name == "stress-leave-out"


def test_mistakes_are_placed_in_the_file(here, monkeypatch):
    home = here / "installed" / "suites"
    home.mkdir(parents=True)
    (home / "bad.yaml").write_text("# Bad.\nschema: 1\nname: bad\ninclude: [parts/worse.yaml]\n")
    (home / "parts").mkdir()
    (home / "parts" / "worse.yaml").write_text("schema: 1\nname: worse\nseedz: 3\n")
    monkeypatch.setattr(shipped, "home", lambda: home)
    with pytest.raises(SuiteError) as caught:
        load_suite("bad", discover())
    assert f"{home}/parts/worse.yaml:3:1: seedz: unknown key (did you mean 'seeds'?)" in caught.value.lines


def test_a_file_at_that_path_takes_precedence_and_a_folder_does_not(here):
    text = shipped.shipped("smoke").read_text().replace("name: smoke", "name: mine")
    (here / "quickstart").write_text(text)
    (here / "smoke").mkdir()
    assert [load_suite(name, discover()).name for name in ("quickstart", "smoke")] == ["mine", "smoke"]


def test_a_copy_is_never_ignored_silently(here):
    copy = here / "smoke.yaml"
    shutil.copy(shipped.shipped("smoke"), copy)
    with pytest.raises(SuiteError) as caught:
        load_suite("smoke", discover())
    (line,) = caught.value.lines
    assert line.startswith("smoke: is a suite that comes with msda-bench, and smoke.yaml is another one here; ")
    assert load_suite("smoke.yaml", discover()).name == "smoke"
    copy.unlink()
    copy.symlink_to(shipped.shipped("smoke"))
    assert load_suite("smoke", discover()).name == "smoke", "where both are one file there is nothing to choose"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("quickstrat", "quickstrat: no such file (did you mean 'quickstart'?)"),
        ("suites/quickstart.yaml", "suites/quickstart.yaml: no such file (did you mean 'quickstart'?)"),
        ("zzz", "zzz: no such file; `msda-bench suites list` shows the suites that have names"),
        ("zzz.yaml", "zzz.yaml: no such file"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(here, given, what):
    with pytest.raises(SuiteError) as caught:
        load_suite(given, discover())
    assert list(caught.value.lines) == [what]


def test_an_include_is_never_taken_for_a_name(here):
    (here / "top.yaml").write_text("schema: 1\nname: top\ninclude: [quickstart, zzz]\n")
    with pytest.raises(SuiteError) as caught:
        load_suite("top.yaml", discover())
    assert list(caught.value.lines) == [
        "top.yaml:3:11: include[0]: 'quickstart' no such file",
        "top.yaml:3:23: include[1]: 'zzz' no such file",
    ]
