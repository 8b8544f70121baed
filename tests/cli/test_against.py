"""`run --methods FILE --against REFERENCE`: a method trained alone, ranked among recorded ones."""

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
compare: {against: SRC}
"""
MINE = "  Mine: {discrepancy: coral, mu: 0.5, search: {mu: [0.1, 1.0]}}\n"
RUN = ("run", "clouds.yaml", "--device", "cpu", "--executor", "inline", "--quiet")
RANK = (*RUN, "--methods", "mine.yaml", "--against")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A result folder of all methods but Mine, a reference file of it, and what a run of all of them answers."""
    home = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr("os.fsync", lambda _: None)
        for path, text in (("clouds.yaml", SUITE), ("mine.yaml", f"methods:\n{MINE}")):
            Path(path).write_text(text)
        assert main(list(RUN)) == 0
        assert main(["store", "reference", "results/clouds", "--out", "clouds.json.gz"]) == 0
    return home


@pytest.fixture
def home(recorded, tmp_path, monkeypatch):
    for path in ("clouds.yaml", "mine.yaml", "clouds.json.gz"):
        (tmp_path / path).write_bytes((recorded / path).read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", lambda _: None)
    return tmp_path


def test_a_method_trained_alone_has_the_numbers_of_a_run_of_all(home, recorded, capsys):
    assert main([*(word for word in RANK if word != "--quiet"), "clouds.json.gz"]) == 0
    out = capsys.readouterr().out
    assert f"{4 * 8} trained" in out
    assert re.findall(r"^(\w+) +\d+\.\d+", out, re.MULTILINE) == ["SRC", "DARN", "Mine", "TAR"]
    assert main(["store", "verify", "--strict", "results/clouds-mine"]) == 0
    (home / "clouds.yaml").write_text(SUITE.replace("select:", f"{MINE}select:"))
    assert main([*RUN]) == 0
    capsys.readouterr()
    for command in ("leaderboard", "compare"):
        answers = []
        for words in (["results/clouds-mine", "--against", str(recorded / "results/clouds")], ["results/clouds"]):
            assert main([command, *words, "--format", "csv"]) == 0
            frame = pd.read_csv(io.StringIO(capsys.readouterr().out))
            answers.append(frame.drop(columns=["suite", "notes"], errors="ignore"))
        pd.testing.assert_frame_equal(*answers)


def test_a_sentence_says_where_it_stands(home, capsys):
    assert main([*RANK, "clouds.json.gz"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "verdict: clouds: Mine is number " in out
    assert " of 3 ranked methods (" in out
    said = out.partition("Against the baseline SRC: ")[2]
    assert " over 8 seeds, " in said
    assert ", after Holm's correction over 2 comparisons." in said
    assert "note: Not trained here, but recorded in clouds.json.gz: 3 methods." in out
    runs = mb.run("clouds.yaml", device="cpu", quiet=True, methods="mine.yaml", against="clouds.json.gz")
    assert set(runs["method"]) == {"Mine"}


def test_the_page_shows_it_among_the_recorded_methods_or_alone(home, capsys):
    assert main([word for word in RANK if word != "--quiet"] + ["clouds.json.gz"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    assert line == "next: msda-bench report results/clouds-mine --against clouds.json.gz"
    assert main(line.split()[2:]) == 0
    page = Path("results/clouds-mine/report.html").read_text()
    assert "<p>clouds: Mine is number " in page
    assert "from the records of this folder and those of clouds.json.gz:" in page
    assert "8 of 8 runs ok, beside recorded ones of clouds.json.gz</p>" in page
    assert all(f'data-method="{name}"' in page for name in ("SRC", "DARN", "TAR", "Mine"))
    capsys.readouterr()
    assert main(["compare", "results/clouds-mine"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("clouds: fewer than two methods are ranked, so no pair is compared; `--against REFERENCE`")
    assert main(["report", "results/clouds-mine"]) == 0
    page = Path("results/clouds-mine/report.html").read_text()
    assert 'data-method="Mine"' in page
    assert 'data-method="SRC"' not in page
    assert "is number " not in page


@pytest.mark.parametrize(
    ("methods", "line"),
    [
        ("SRC: {scheme: pooled}", "clouds: REF has a method SRC, too; give yours another name"),
        ("A: {scheme: pooled, search: {training.epochs: [2, 9]}}", "training.epochs 9, not 2"),
        ("A: {scheme: pooled, search: {backbone.mlp.dropout: [0.3]}}", "backbone.params.dropout 0.3, not 0.1 or 0.2"),
        ("A: {scheme: pooled, labelled_target: 3}", "labelled_target 3, not none"),
        ("A: {discrepancy: coral, mu: 1, search: {mu: [1, 2, 3]}}", "the grid of A has 6 candidates"),
        ("A: {discrepancy: no_such, mu: 1}", "mine.yaml:1:29: methods.A.discrepancy: unknown discrepancy 'no_such'"),
        ("A: {scheme: pooled}}, seeds: {a: 1", "seeds: is the suite's, which gives all but methods and requires"),
        (b"methods: 3", "methods: must be a mapping with a line for each, as in a suite"),
        (b"methods: {}", "methods: must be a mapping with a line for each, as in a suite"),
        (b"Mine: {scheme: pooled}", "has no key methods; write your methods below it, as in a suite"),
        (b"- 1", "must be a mapping with the key methods, not a list"),
        (b"\xff\xfe\x00", "mine.yaml:1:1: is not UTF-8"),
    ],
)  # fmt: skip
def test_other_protocols_and_broken_methods_are_one_line_before_anything_trains(home, methods, line, capsys):
    data = methods if isinstance(methods, bytes) else f"{{methods: {{{methods}}}}}\n".encode()
    Path("mine.yaml").write_bytes(data)
    assert main([*RANK, "clouds.json.gz"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert line.replace("REF", "clouds.json.gz") in error
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (("target_size: 100", "target_size: 90"), "dataset.params.target_size 90, not 100"),
        (("seeds: 8", "seeds: 4"), "seeds 0-3, not 0-7"),
        (("[near, far, irrelevant]", "[near, far]"), 'sources of target ["near","far"], not ["near","far","irrel'),
        (("budget: 4", "budget: 6"), "Mine has 6 candidates, more than 4"),
        (("by: source_risk", "by: oracle"), "Mine is selected by oracle, not source_risk"),
        (("name: clouds", "name: other"), "other: is no experiment of clouds.json.gz (known: clouds)"),
    ],
)  # fmt: skip
def test_another_protocol_is_refused_before_anything_trains_and_of_a_folder(home, changed, line, capsys):
    Path("clouds.yaml").write_text(SUITE.replace(*changed))
    if "budget" in line or "candidates" in line:
        Path("mine.yaml").write_text(f"methods:\n{MINE.replace('[0.1, 1.0]', '[0.1, 1.0, 2.0]')}")
    assert main([*RANK, "clouds.json.gz"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert line in error
    assert not Path("results").exists()
    assert main([*RUN, "--methods", "mine.yaml"]) == 0
    capsys.readouterr()
    (folder,) = Path("results").iterdir()
    assert main(["leaderboard", str(folder), "--against", "clouds.json.gz"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert line in error


def documents(text):
    """Damaged contents of a reference file."""
    document = json.loads(gzip.decompress(text))
    yield text[:-20]
    yield b"PK" + text
    yield gzip.compress(b"[" * 100_000)
    yield gzip.compress(b" " * ((1 << 26) + 1))
    for name, value in (("schema", 2), ("runs", {}), ("plan", []), ("more", 1)):
        yield gzip.compress(json.dumps(document | {name: value}).encode())
    for column, value in (("n_correct", 10**6), ("method", "no"), ("status", "good"), ("seed", "a"), ("n_test", None)):
        runs = document["runs"] | {column: [value, *document["runs"][column][1:]]}
        yield gzip.compress(json.dumps(document | {"runs": runs}).encode())
    for column in ("device", "message", "method", "status", "target"):
        runs = document["runs"] | {column: [7] * len(document["runs"]["seed"])}
        yield gzip.compress(json.dumps(document | {"runs": runs}).encode())
    yield gzip.compress(json.dumps(document | {"runs": document["runs"] | {"steps": [3]}}).encode())
    yield gzip.compress(json.dumps(document | {"protocols": {}}).encode())


def test_a_damaged_reference_is_one_line(home, recorded, capsys):
    assert main([*RANK, "clouds.json.gz"]) == 0
    shutil.copytree(recorded / "results/clouds", "copy")
    relog(Path("copy"), {min(lines_of(Path("copy"))): b"{}\n"})
    capsys.readouterr()
    assert main(["leaderboard", "results/clouds-mine", "--against", "copy"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("msda-bench: error: copy/log/")
    for data in documents(Path("clouds.json.gz").read_bytes()):
        Path("damaged").write_bytes(data)
        capsys.readouterr()
        assert main(["leaderboard", "results/clouds-mine", "--against", "damaged"]) == 2, data[:99]
        (error,) = capsys.readouterr().err.splitlines()
        assert error.startswith("msda-bench: error: damaged: is no usable reference (")
        assert error.endswith("); write it anew with `msda-bench store reference`")
    assert main(["leaderboard", "results/clouds-mine", "--against", "nothing"]) == 2
    assert "nothing: cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("leaderboard a --against b --per-class", "--per-class is for one result folder, without --against"),
        ("leaderboard a --against b --metric macro_f1", "--metric and --by are not for --against: a reference"),
        ("leaderboard a --against b --by oracle", "--metric and --by are not for --against: a reference"),
        ("report a --against b --by oracle", "--metric and --by are not for --against: a reference"),
        ("compare a b --against c", "--against is for one result folder, without --across"),
        ("compare a --across --against c", "--against is for one result folder, without --across"),
    ],
)  # fmt: skip
def test_bad_usage_is_one_line(words, line, capsys):
    assert main(words.split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"msda-bench: error: {line}")


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
