"""Packaging: pinned dependencies, open ranges, a short example plugin, and CI that runs tox."""

import configparser
import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from msda_bench.cli import main as program
from tests.reader import ROOT, text_of

PROJECT = tomllib.loads(text_of("pyproject.toml"))["project"]


def pins_of(path):
    return [line for line in text_of(path).splitlines() if not line.startswith("#")]


PINS = pins_of("constraints.txt")
PINNED = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in PINS}
OWN = {"msda-bench"}


def declared():
    extras = [line for lines in PROJECT.get("optional-dependencies", {}).values() for line in lines]
    return [Requirement(line) for line in (*PROJECT["dependencies"], *extras)]


def test_every_dependency_is_pinned_within_its_range_which_has_no_upper_bound():
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in PINS)
    assert PINS[0].startswith("torch==")
    for requirement in declared():
        name = canonicalize_name(requirement.name)
        assert not re.search("<|==|~=", str(requirement.specifier)), requirement
        if name not in OWN:
            assert name in PINNED, f"{name} is not in constraints.txt"
            assert PINNED[name] in requirement.specifier, f"{name}=={PINNED[name]} is outside {requirement.specifier}"


RECORDING = ("parquet", "skada", "sklearn", "transport")
"""The extras that recorded suites need."""


def test_the_lock_has_the_versions_of_the_constraints_with_a_hash_each():
    lines = pins_of("requirements.lock")
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.+]* --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    locked = {canonicalize_name(name): version for name, version in (line.split()[0].split("==") for line in lines)}
    assert {name: version.partition("+")[0] for name, version in locked.items()}.items() <= PINNED.items()
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for name in RECORDING for line in extras[name])]
    assert {canonicalize_name(Requirement(line).name) for line in lines} <= set(locked)


def test_the_lock_is_made_from_pips_report(tmp_path):
    """Of each file that pip took, by name; the project itself, a folder, has none."""
    archive = {"archive_info": {"hashes": {"sha256": "a" * 64}}}
    platform = ("CPython", "3.11", "Linux", "x86_64")
    names = ("platform_python_implementation", "python_version", "platform_system", "platform_machine")

    def lock(**parts):
        took = [
            {"metadata": {"name": name, "version": version}, "download_info": info}
            for name, (version, info) in parts.items()
        ]
        report = {"environment": dict(zip(names, platform, strict=True)), "install": took}
        (tmp_path / "report.json").write_text(json.dumps(report))
        words = [sys.executable, ROOT / ".ci" / "lock.py", tmp_path / "report.json"]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    parts = {"torch": ("2.13.0+cpu", archive), "msda-bench": ("0.1.0", {"dir_info": {}}), "Jinja2": ("3.1.6", archive)}
    said = lock(**parts).stdout
    assert said.startswith("#")
    assert "CPython 3.11 on Linux (x86_64)" in said
    pins = [f"{name} --hash=sha256:{'a' * 64}" for name in ("Jinja2==3.1.6", "torch==2.13.0+cpu")]
    assert said.splitlines()[-2:] == pins
    failed = lock(torch=("2.13.0", {"archive_info": {}}))
    assert (failed.returncode, failed.stderr) == (1, "torch: pip reports no sha256 of its file\n")


def test_example_plugin_is_as_short_as_promised():
    folder = ROOT / "plugins" / "example-aggregator"
    lines = [line for path in (folder / "src").rglob("*.py") for line in path.read_text().splitlines()]
    assert len(lines) < 20
    contract = (folder / "tests" / "test_contract.py").read_text().split("\n")
    assert len([line for line in contract if line.strip()]) < 6


WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def steps(workflow):
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def test_ci_tests_every_python_that_the_package_names_and_one_on_macos():
    rows = WORKFLOWS["ci"]["jobs"]["tests"]["strategy"]["matrix"]["include"]
    assert all(row["env"] == f"py{row['python'].replace('.', '')}" for row in rows)
    versions = {"3.11", *(row["python"] for row in rows if row["os"].startswith("ubuntu"))}
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line}
    assert versions == named
    assert [row["os"] for row in rows].count("macos-latest") == 1


def start(*words, path):
    """Runs README's command in a folder that stands for the repository's root and is all there is to find programs."""
    (path / "start.py").write_bytes((ROOT / "start.py").read_bytes())
    command = [sys.executable, "start.py", *words]
    return subprocess.run(command, cwd=path, env={"PATH": str(path)}, capture_output=True, text=True, check=False)


def test_the_set_up_says_in_a_line_what_is_wrong(tmp_path):
    for words in ([], ["quick"], ["quickstart", "now"]):
        done = start(*words, path=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "start.py: write `python3 start.py quickstart`, or `python3 start.py tests`\n"


@pytest.mark.slow
def test_the_set_up_ends_with_the_exit_code_of_what_fails(tmp_path):
    """Its environment works here, and there is nothing to install."""
    done = start("quickstart", path=tmp_path)
    assert done.returncode == 1
    assert "constraints.txt" in done.stderr
    assert "start.py: making an environment in .venv" in done.stdout
    assert (tmp_path / ".venv").is_dir()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_call_valid_commands_with_minimal_rights(name):
    """Only the jobs that publish pages and releases have write permissions."""
    for line in steps(WORKFLOWS[name]):
        if line.startswith("msda-bench "):
            program.make_parser().parse_args(line.split()[1:])
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    assert {job for job, what in WORKFLOWS[name]["jobs"].items() if "permissions" in what} <= {"deploy", "publish"}


def test_ci_runs_tox_which_verifies_all_records_and_tries_the_wheel_alone_and_pages_publishes_a_site():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    readme = text_of("README.md")
    commands = [
        line.partition("#")[0].split() for line in readme.splitlines() if line.startswith("$ python3 start.py ")
    ]
    assert [words[3:] for words in commands] == [["quickstart"], ["tests"]]
    assert 'exec "$python" start.py tests\n' in script.read_text()
    assert "bash .ci/run" in text_of(".github/workflows/ci.yml")
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    assert "wheel" in tox["tox"]["env_list"].split(", ")
    assert "msda-bench store verify --strict {tox_root}/results/*/" in tox["testenv:wheel"]["commands"]
    assert any(line.startswith("msda-bench site ") for line in steps(WORKFLOWS["pages"]))
