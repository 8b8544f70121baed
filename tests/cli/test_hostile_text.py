"""Text from third parties cannot control the terminal: the command line prints only plain lines."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.suite.run_spec import canonical_json
from tests.cli.conftest import SUITE
from tests.logs import lines_of, relog

OWN = "\x1b]0;own\x07\x9b31m\u202e\u2028evil"
HARM = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
PLUGIN = """
    from msda_bench.api import Dataset, File, InputSpec, Task, Url, Validator, component, hookimpl

    OWN = {own!r}

    @component
    class Toy(Dataset):
        name = "toy"
        licence = OWN
        source = OWN
        domains = ("target_0", "far" + OWN)
        task = Task("classification", 2)
        input = InputSpec((1,))
        files = (File("toy/a", "0" * 64, 3, Url(("file:///nowhere" + OWN,))),)

        def load(self, domain, files):
            raise OSError(OWN)

    @component
    class Pure(Toy):
        name = "pure"
        domains = ("target_0", "near", "far")
        files = ()

    @component
    class Judge(Validator):
        name = "judge"

        def score(self, view):
            raise ValueError(OWN)

    Judge.__doc__ = OWN

    @hookimpl
    def msda_datasets():
        return [Toy, Pure]

    @hookimpl
    def msda_validators():
        return [Judge]

    @hookimpl
    def msda_schemes():
        raise RuntimeError(OWN)
"""


@pytest.fixture
def command(install, tiny, monkeypatch, capfd):
    """Runs a command with hostile plugins; checks that its output is plain, and returns it."""
    install("toy-stranger", PLUGIN.format(own=OWN))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tiny / "cache"))
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tiny))

    def run(*words):
        capfd.readouterr()
        main([*map(str, words)])  # a bug would raise
        shown = "".join(capfd.readouterr())
        assert HARM.findall(shown) == [], words
        return shown

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    {
        "plugins": "RuntimeError: ]0;own",
        "data list": "far ]0;own",
        "data fetch toy": "nowhere ]0;own",
        "data verify toy": "toy/a",
        "check judge": "ValueError: ]0;own",
        "check judge --params PARAMS": "]0;own",
        "run pure.yaml --executor inline": "OSError: ]0;own",
        "validate toy.yaml": "far ]0;own",
    }.items(),
)
def test_text_of_plugins_cannot_control_the_terminal(command, words, said):
    for name in ("toy", "pure"):
        text = SUITE.replace("sine: {train: 20, test: 20}", name).replace("[target_0, target_1]", "all")
        Path(f"{name}.yaml").write_text(text.partition("  DARN")[0])
    assert said in command(*(f"{{a: {OWN}}}" if word == "PARAMS" else word for word in words.split()))


def test_text_of_records_and_plans_cannot_control_the_terminal(command, make_results):
    folder = make_results()
    key, line = min(lines_of(folder).items())
    record = json.loads(line)["record"]
    body = canonical_json({"record": record | {"metrics": {OWN: "x"}, "message": OWN}, "schema": 1}).encode()
    line = b'%s,"sha256":"%s"}\n' % (body[:-1], hashlib.sha256(body).hexdigest().encode())
    path = relog(folder, {key: line})
    plan = json.loads((folder / "plan.json").read_bytes())
    plan["experiments"][0][OWN] = 1
    (folder / "plan.json").write_text(json.dumps(plan))
    shown = command("store", "verify", folder)
    assert f"{path}: record {key}: does not match its schema" in shown
    assert "plan.json: is damaged" in shown
    assert "]0;own" in shown
