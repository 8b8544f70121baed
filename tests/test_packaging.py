"""Packaging: pinned dependencies, open ranges, a short example plugin, and CI that runs tox."""

import configparser
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from msda_bench.cli import main as program

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
PINNED = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in PINS}
OWN = {"msda-bench"}


def declared():
    extras = [line for lines in PROJECT.get("optional-dependencies", {}).values() for line in lines]
    return [Requirement(line) for line in (*PROJECT["dependencies"], *extras)]


def test_constraints_are_plain_pins():
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in PINS)
    assert PINS[0].startswith("torch==")


def test_every_dependency_is_pinned_within_its_range():
    for requirement in declared():
        name = canonicalize_name(requirement.name)
        if name in OWN:
            continue
        assert name in PINNED, f"{name} is not in constraints.txt"
        assert PINNED[name] in requirement.specifier, f"{name}=={PINNED[name]} is outside {requirement.specifier}"


def test_the_lock_has_the_versions_of_the_constraints_with_a_hash_each():
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.+]* --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    locked = {canonicalize_name(name): version for name, version in (line.split()[0].split("==") for line in lines)}
    assert {name: version.partition("+")[0] for name, version in locked.items()}.items() <= PINNED.items()
    needed = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert needed <= set(locked)


def test_the_lock_is_made_from_pips_report(tmp_path):
    """Of each file that pip took, by name; the project itself, a folder, has none."""
    archive = {"archive_info": {"hashes": {"sha256": "a" * 64}}}
    parts = {"torch": ("2.13.0+cpu", archive), "msda-bench": ("0.1.0", {"dir_info": {}}), "Jinja2": ("3.1.6", archive)}
    environment = {"platform_python_implementation": "CPython", "python_version": "3.11"}
    environment |= {"platform_system": "Linux", "platform_machine": "x86_64"}
    report = {
        "environment": environment,
        "install": [
            {"metadata": {"name": name, "version": version}, "download_info": info}
            for name, (version, info) in parts.items()
        ],
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    words = [sys.executable, ROOT / ".ci" / "lock.py", tmp_path / "report.json"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    head, *pins = said.splitlines()
    assert "CPython 3.11 on Linux (x86_64)" in said
    assert pins[-2:] == [f"{name} --hash=sha256:{'a' * 64}" for name in ("Jinja2==3.1.6", "torch==2.13.0+cpu")]
    assert head.startswith("#")
    report["install"][0]["download_info"] = {"archive_info": {}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    failed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stderr) == (1, "torch: pip reports no sha256 of its file\n")


def test_version_ranges_have_no_upper_bound():
    bounded = [str(requirement) for requirement in declared() if re.search("<|==|~=", str(requirement.specifier))]
    assert not bounded


def test_example_plugin_is_as_short_as_promised():
    folder = ROOT / "plugins" / "example-aggregator"
    lines = [line for path in (folder / "src").rglob("*.py") for line in path.read_text().splitlines()]
    assert len(lines) < 20
    contract = (folder / "tests" / "test_contract.py").read_text().split("\n")
    assert len([line for line in contract if line.strip()]) < 6


def test_ci_runs_what_tox_runs():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, ".ci/run is not executable"
    assert "tox run" in script.read_text()
    assert "bash .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


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


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_call_valid_commands_with_minimal_rights(name):
    """Only the jobs that publish pages and releases have write permissions."""
    for line in steps(WORKFLOWS[name]):
        if line.startswith("msda-bench "):
            program.make_parser().parse_args(line.split()[1:])
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    assert {job for job, what in WORKFLOWS[name]["jobs"].items() if "permissions" in what} <= {"deploy", "publish"}


def test_the_checks_verify_all_records_and_try_the_wheel_alone():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    environments = tox["tox"]["env_list"].split(", ")
    assert "wheel" in environments
    assert "msda-bench store verify --strict {tox_root}/results/*/" in tox["testenv:wheel"]["commands"]


def test_pages_publishes_a_site():
    assert any(line.startswith("msda-bench site ") for line in steps(WORKFLOWS["pages"]))
