"""`run --methods FILE --against REFERENCE`: a method trained alone, ranked among recorded ones."""

import contextlib
import gzip
import io
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.suite.files import shipped
from tests.logs import lines_of, relog

ROOT = Path(__file__).parents[2]
PACKAGED = {path.name.removesuffix(".json.gz"): path for path in sorted(ROOT.glob("msda_bench/reference/*.json.gz"))}
SUITE = """
schema: 1
name: clouds
dataset: {stress: {train: 40, size: 60, target_size: 100}}
targets: [target]
sources: [near, far, irrelevant]
seeds: 8
backbone: {mlp: {hidden: [4], dropout: 0.1}}
training: {epochs: 2, batch: 5, steps: 3, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled, search: {backbone.mlp.dropout: [0.1, 0.2]}}
  DARN: {discrepancy: coral, mu: 0.01, aggregator: {sharpmax: {gamma: 1.0}}}
  TAR: {scheme: target_only, reference: true}
select: {how: grid, budget: 4, by: source_risk, space: {training.optimizer.adam.lr: [0.01, 0.1]}}
validators: [source_risk]
compare: {pairs: baseline}
"""
MINE = "  Mine: {discrepancy: coral, mu: 0.5, search: {mu: [0.1, 1.0]}}\n"
RUN = ("run", "clouds.yaml", "--device", "cpu", "--executor", "inline")
RANK = (*RUN, "--methods", "mine.yaml", "--against")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A result folder of all methods but Mine, a reference file of it, and Mine among them, as `run` printed it."""
    home = tmp_path_factory.mktemp("recorded")
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr("os.fsync", lambda _: None)
        for path, text in (("clouds.yaml", SUITE), ("mine.yaml", f"methods:\n{MINE}")):
            Path(path).write_text(text)
        assert main([*RUN, "--quiet"]) == 0
        assert main(["store", "reference", "results/clouds", "--out", "clouds.json.gz"]) == 0
        with contextlib.redirect_stdout(said):
            assert main([*RANK, "clouds.json.gz"]) == 0
    (home / "said").write_text(said.getvalue())
    return home


@pytest.fixture
def home(recorded, tmp_path, monkeypatch):
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", lambda _: None)


def test_a_method_trained_alone_has_the_numbers_of_a_run_of_all(home, capsys):
    assert f"{4 * 8} trained" in Path("said").read_text()
    assert main(["store", "verify", "--strict", "results/clouds-mine"]) == 0
    Path("clouds.yaml").write_text(SUITE.replace("select:", f"{MINE}select:"))
    assert main([*RUN, "--out", "whole", "--quiet"]) == 0
    capsys.readouterr()
    for command in ("leaderboard", "compare"):
        answers = []
        for words in (["results/clouds-mine", "--against", "results/clouds"], ["whole/clouds"]):
            assert main([command, *words, "--format", "csv"]) == 0
            frame = pd.read_csv(io.StringIO(capsys.readouterr().out))
            answers.append(frame.drop(columns=["suite", "notes"], errors="ignore"))
        pd.testing.assert_frame_equal(*answers)


def test_the_screen_and_the_page_show_it_among_the_recorded_methods_or_alone(home, shown, capsys):
    said = Path("said").read_text()
    assert re.findall(r"^(\w+) +\d+\.\d+", said, re.MULTILINE) == ["SRC", "DARN", "Mine", "TAR"]
    *_, line = said.splitlines()
    assert line == "next: msda-bench report results/clouds-mine --against clouds.json.gz"
    said = " ".join(said.split())
    for part in (
        "verdict: clouds: Mine is number ",
        " of 3 by the mean (",
        "). Against the baseline SRC: ",
        " over 8 seeds, ",
        " (exact p = ",
        "Recorded methods stand beside yours, ranked by their means; they are not tested here.",
        "note: Not trained here, but recorded in clouds.json.gz: 3 methods.",
    ):
        assert part in said
    shown(*line.split()[2:])
    page = Path("results/clouds-mine/report.html").read_text()
    assert "<p>clouds: Mine is number " in page
    assert "from the records of this folder and those of clouds.json.gz:" in page
    assert "8 of 8 runs ok, beside recorded ones of clouds.json.gz</p>" in page
    assert all(f'data-method="{name}"' in page for name in ("SRC", "DARN", "TAR", "Mine"))
    alone = "clouds: fewer than two methods are ranked, so no pair is compared; `--against REFERENCE`"
    assert shown("compare", "results/clouds-mine").startswith(alone)
    shown("report", "results/clouds-mine")
    page = Path("results/clouds-mine/report.html").read_text()
    assert 'data-method="Mine"' in page
    assert 'data-method="SRC"' not in page
    assert "is number " not in page
    capsys.readouterr()
    runs = mb.run("clouds.yaml", device="cpu", quiet=True, methods="mine.yaml", against="clouds.json.gz")
    assert set(runs["method"]) == {"Mine"}
    said = capsys.readouterr().out
    assert "Mine is number " in " ".join(said.split())
    assert "next: " not in said


@pytest.fixture
def refused(capsys):
    """The one line with which a command is refused."""

    def run(*words, against="clouds.json.gz"):
        capsys.readouterr()
        assert main([*words, "--against", against]) == 2
        (error,) = capsys.readouterr().err.splitlines()
        return error

    return run


OTHER = {
    ("target_size: 100", "target_size: 90"): "dataset.params.target_size 90, not 100",
    ("[near, far, irrelevant]", "[near, far]"): 'sources of target ["near","far"], not ["near","far","irrel',
    ("{how: grid, budget: 4", "{how: random, budget: 6"): "Mine has 6 candidates, more than 4",
    ("by: source_risk", "by: oracle"): "Mine is selected by oracle, not source_risk",
    ("name: clouds", "name: other"): "other: is no experiment of clouds.json.gz (known: clouds)",
    ("seeds: 8", "seeds: 4"): "seeds 0-3, not 0-7",
}
"""What differs in a suite of another protocol."""
WRONG = {
    "methods: {SRC: {scheme: pooled}}": "clouds: clouds.json.gz has a method SRC, too; give yours another name",
    "methods: {A: {scheme: pooled, search: {training.epochs: [2, 9]}}}": "training.epochs 9, not 2",
    "methods: {A: {scheme: pooled, search: {backbone.mlp.dropout: [0.3]}}}": "dropout 0.3, not 0.1 or 0.2",
    "methods: {A: {scheme: pooled, labelled_target: 3}}": "labelled_target 3, not none",
    "methods: {A: {discrepancy: coral, mu: 1, search: {mu: [1, 2, 3]}}}": "the grid of A has 6 candidates",
    "methods: {A: {discrepancy: no_such, mu: 1}}": "mine.yaml:1:28: methods.A.discrepancy: unknown discrepancy 'no_",
    "{methods: {A: {scheme: pooled}}, seeds: 1}": "seeds: is the suite's, which gives all but methods and requires",
    "methods: 3": "methods: must be a mapping with a line for each, as in a suite",
    "methods: {}": "methods: must be a mapping with a line for each, as in a suite",
    "Mine: {scheme: pooled}": "has no key methods; write your methods below it, as in a suite",
    "- 1": "must be a mapping with the key methods, not a list",
    "\xff\xfe\x00": "mine.yaml:1:1: is not UTF-8",
}
"""Methods that cannot be trained."""


@pytest.mark.parametrize(("change", "line"), [*OTHER.items(), *WRONG.items()])
def test_other_protocols_and_broken_methods_are_one_line_before_anything_trains(home, change, line, refused):
    if isinstance(change, tuple):
        assert change[0] in SUITE
        Path("clouds.yaml").write_text(SUITE.replace(*change))
        mine = MINE.replace("[0.1, 1.0]", "[0.1, 0.5, 1.0]") if "candidates" in line else MINE
        change = f"methods:\n{mine}"
    Path("mine.yaml").write_bytes(change.encode("latin-1"))
    assert line in refused(*RUN, "--methods", "mine.yaml", "--out", "out")
    assert not Path("out").exists()


def test_a_folder_of_another_protocol_is_refused(home, refused):
    (change, line) = [*OTHER.items()][-1]
    Path("clouds.yaml").write_text(SUITE.replace(*change))
    assert main([*RUN, "--methods", "mine.yaml", "--out", "out", "--quiet"]) == 0
    assert line in refused("leaderboard", "out/clouds-mine")


def documents(text):
    """Damaged contents of a reference file."""
    document = json.loads(gzip.decompress(text))
    columns = document["runs"]
    yield text[:-20]
    yield b"PK" + text
    yield gzip.compress(b"[" * 100_000)
    yield gzip.compress(b" " * ((1 << 26) + 1))
    wrong = [{"schema": 2}, {"runs": {}}, {"plan": []}, {"more": 1}, {"protocols": {}}]
    for column, value in (("n_correct", 10**6), ("method", "no"), ("status", "good"), ("seed", "a"), ("n_test", None)):
        wrong.append({"runs": columns | {column: [value, *columns[column][1:]]}})
    for column in ("device", "message", "method", "status", "target"):
        wrong.append({"runs": columns | {column: [7] * len(columns["seed"])}})
    wrong.append({"runs": columns | {"steps": [3]}})
    for change in wrong:
        yield gzip.compress(json.dumps(document | change).encode())


def test_a_damaged_reference_is_one_line(home, refused):
    shutil.copytree("results/clouds", "copy")
    relog(Path("copy"), {min(lines_of(Path("copy"))): b"{}\n"})
    board = ("leaderboard", "results/clouds-mine")
    assert refused(*board, against="copy").startswith("msda-bench: error: copy/log/")
    for data in documents(Path("clouds.json.gz").read_bytes()):
        Path("clouds.json.gz").write_bytes(data)
        error = refused(*board)
        assert error.startswith("msda-bench: error: clouds.json.gz: is no usable reference ("), data[:99]
        assert error.endswith("); write it again with `msda-bench store reference`")
    Path("clouds.json.gz").unlink()
    assert "clouds.json.gz: cannot be read: No such file" in refused(*board)


@pytest.mark.parametrize("name", PACKAGED)
def test_the_packaged_reference_is_what_the_records_give(name, tmp_path):
    folder = ROOT / "results" / name
    assert main(["store", "reference", str(folder), "--out", str(tmp_path / "new")]) == 0
    packaged, made = (json.loads(gzip.decompress(path.read_bytes())) for path in (PACKAGED[name], tmp_path / "new"))
    assert packaged == made, f"run `msda-bench store reference results/{name}` with --out as this file"
    assert PACKAGED[name].stat().st_size < 500_000


PARTS = [
    path.removesuffix(".yaml") for name in PACKAGED for path in yaml.safe_load(shipped(name).read_text())["include"]
]
ENCODERS = {"leaderboard/pacs": ["efficientnet-lite"], "leaderboard/opinions": ["minilm"]}


@pytest.mark.parametrize("suite", PARTS)
def test_the_packaged_suites_are_of_the_packaged_protocol(suite, tmp_path, monkeypatch, install):
    for encoder in ENCODERS.get(suite, ()):
        (path,) = (ROOT / "plugins" / encoder / "src").glob("*.py")
        install(f"msda-bench-{encoder}", path.read_text(), version="0.1.0")
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("methods: {Mine: {discrepancy: d_A, mu: 0.3}}\n")
    assert main(["run", suite, "--methods", "mine.yaml", "--against", "reference", "--dry-run"]) == 0
