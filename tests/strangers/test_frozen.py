"""Frozen features of a third-party network are computed once, reproducible, and never lost."""

import math
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

import msda_bench as mb
from msda_bench.api import DataError, DomainData, component
from msda_bench.cli.main import main
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.features import Frozen
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.running.data import ensure_features
from msda_bench.store import Store
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from tests.data.conftest import only_line
from tests.strangers import tiny_net
from tests.strangers.tiny_net import FILE, LOG, WEIGHTS, WIDTH, Letters, Stripes, TinyNet

SUITE = """
schema: 1
name: {name}
dataset: {{stripes: {{train: {train}}}}}
targets: [{target}]
sources: [thin, middle, thick]
seeds: 1
backbone: {{tiny_net: {{hidden: [{hidden}]}}}}
training: {{epochs: 5, batch: 10, optimizer: {{adadelta: {{lr: 1.0}}}}}}
methods:
  SRC: {{scheme: pooled}}
"""


@pytest.fixture(autouse=True)
def given(tmp_path, monkeypatch):
    """Creates the data folder with the weights, and lets child processes import this package."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    monkeypatch.chdir(tmp_path)
    weights = tmp_path / "given" / FILE.path
    weights.parent.mkdir(parents=True)
    weights.write_bytes(WEIGHTS)
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path / "given"))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # each process imports torch
    return weights


@pytest.fixture
def installed(install):
    install("strange-net", Path(tiny_net.__file__).read_text(), entry="net")


def suite(path, target="thick", train=100, hidden=8):
    path.write_text(SUITE.format(name=path.stem, target=target, train=train, hidden=hidden))
    return path


def seen(folder):
    """The number of examples that went through the network."""
    return sum(map(int, (folder / "log").read_text().split())) if (folder / "log").exists() else 0


def kept(cache):
    return {path.read_bytes() for path in cache.glob("derived/*.npy")}


@component
class Failing(TinyNet):
    """A network whose trunk cannot be built."""

    name = "failing"

    def trunk(self, files):
        raise ValueError("no such thing")


@component
class Raising(Stripes):
    """A dataset with a domain that cannot be loaded."""

    name = "stripes"

    def load(self, domain, files):
        np.random.seed(1)  # noqa: NPY002 - as a stranger may
        return super().load(domain, files) if domain != "middle" else {}[domain]


@component
class Wide(TinyNet):
    """A network narrower than it declares."""

    name = "wide"
    width = WIDTH + 1


@component
class NotANumber(TinyNet):
    """A network whose features are NaN."""

    name = "not-a-number"

    def trunk(self, files):
        return torch.nn.Sequential(super().trunk(files), torch.nn.Threshold(math.inf, math.nan))


def computed(cache, processes, x=None, network=None):
    """The features of a domain, or of the given examples instead."""
    dataset, files = Stripes(), LocalFiles(Folders(None, cache), "stripes", processes)
    frozen, data = Frozen.of(network or TinyNet(), dataset), dataset.load("thin", files)
    return frozen.features(data if x is None else replace(data, x=x), files)


def test_features_equal_the_networks_output_and_do_not_depend_on_the_number_of_processes(tmp_path):
    images = Stripes().load("thin", LocalFiles()).x
    found = [computed(tmp_path / str(n), n) for n in (1, 2)]
    assert isinstance(found[0], np.memmap)
    assert (found[0].dtype, found[0].shape) == (np.float32, (len(images), WIDTH))
    with torch.no_grad():
        expected = TinyNet().trunk(LocalFiles())(torch.from_numpy(images).float() / 255)
    torch.testing.assert_close(torch.from_numpy(np.array(found[0])), expected)
    np.save(tmp_path / "images.npy", np.concatenate([images[:1], images]))
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    assert np.array_equal(computed(tmp_path / "a part of a file", 1, mapped[1:]), found[0])
    np.save(tmp_path / "images.npy", images)
    computed(tmp_path / "a file", 1, np.load(tmp_path / "images.npy", mmap_mode="r"))
    every = [kept(tmp_path / name) for name in ("1", "2", "a part of a file", "a file")]
    assert len(set.union(*every)) == 1
    assert not list(tmp_path.glob("*/derived/parts/*"))


def test_features_are_computed_once_per_identity_and_network(tmp_path):
    files = LocalFiles(Folders(None, tmp_path / "cache"), "stripes", 1)
    x, y = np.full((20, 3, 8, 8), 9, np.uint8), np.zeros(20, np.int64)

    def found(x, name, **params):
        frozen = Frozen.of(TinyNet(**params), Stripes())
        return frozen.features(DomainData(x, y, identity=name), files)

    first = found(x, "mine")
    assert np.array_equal(found(np.zeros_like(x), "mine", hidden=(3,), dropout=0.1), first)
    assert seen(tmp_path) == 20
    assert not np.array_equal(found(np.zeros_like(x), "another"), first)
    assert np.array_equal(found(x.astype(np.float32) / np.float32(255), "mine"), first)
    assert seen(tmp_path) == 60
    assert Frozen.of(TinyNet(trainable="all"), Stripes()) is None


def test_a_backbone_that_reads_gets_the_texts_as_written(tmp_path):
    frozen = Frozen.of(Letters(), Stripes())
    files, texts = LocalFiles(Folders(None, tmp_path), "stripes", 1), ["Ä, Ä", "", "two\nlines \ud800"] * 7
    written = np.array(texts, object)
    x, y = np.zeros((21, 3, 8, 8), np.uint8), np.zeros(21, np.int64)
    expected = [[4, 2, 0], [0, 0, 0], [11, 0, 1]] * 7
    assert frozen.features(DomainData(x, y, texts=written, identity="mine"), files).tolist() == expected
    assert frozen.features(DomainData(written, y), files).tolist() == expected
    other = DomainData(x, y, texts=written[::-1], identity="mine")
    assert frozen.features(other, files).tolist() == expected[::-1]
    any_length = np.array([text.replace("\ud800", "?") for text in texts], np.dtypes.StringDType())
    for data in (DomainData(x, y, texts=any_length, identity="these"), DomainData(any_length, y)):
        assert frozen.features(data, files).tolist() == expected
    line = only_line(frozen.features, DomainData(x, y), files)
    assert line == "backbone letters reads texts, and the dataset gives none"


READ = """
schema: 1
name: mine
dataset: {table: {file: t.csv, domain: site, label: ill, text: note}}
targets: [b]
seeds: 1
backbone: letters
training: {epochs: 1, batch: 4, optimizer: {adam: {lr: 0.01}}}
methods: {forest: {scheme: random_forest}}
keep: [predictions]
"""


def test_a_backbone_that_reads_gets_the_other_columns_after_its_features(tmp_path, installed, monkeypatch):
    asked, answer = [], RandomForestClassifier.predict_proba
    monkeypatch.setattr(RandomForestClassifier, "predict_proba", lambda own, x: asked.append(x) or answer(own, x))
    texts, sexes = ("Gut Ä", "", "ÄÄ"), ("f", "m", "")
    lines = [
        f"{site},{row % 2},{sexes[row % 3]},{texts[row % 3]},{row + 20 * (site == 'b')}"
        for site in "ab"
        for row in range(12)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["site,ill,sex,note,age", *lines]), encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(READ)
    assert main(["run", str(path), "--executor", "inline", "--out", str(tmp_path / "out")]) == 0
    rows = mb.load_predictions(tmp_path / "out" / "mine")["row"].to_numpy()
    read = [[len(texts[row % 3]), texts[row % 3].count("Ä"), 0] for row in rows]
    (x,) = (x for x in asked if x[:, :3].tolist() == read)
    assert x[:, 3:7].tolist() == np.eye(4)[rows % 3].tolist()  # f, m, none, unseen
    ages = x[:, 7] * (rows[1] - rows[0]) / (x[1, 7] - x[0, 7])
    np.testing.assert_allclose(ages - ages[0], rows - rows[0], atol=1e-4)
    assert x[:, 7].min() > 1  # standardised over the source, whose ages are 20 less


def test_concurrent_processes_compute_shared_features_once(tmp_path):
    with ThreadPoolExecutor() as pool:
        one, other = pool.map(lambda _: computed(tmp_path / "cache", 1), range(2))
    assert np.array_equal(one, other)
    assert seen(tmp_path) == len(one)


def test_two_suites_share_features_and_compute_only_needed_domains(installed, tmp_path, monkeypatch):
    for index, options in enumerate(({}, {"train": 50, "target": "thin", "hidden": 4})):
        path = suite(tmp_path / f"suite{index}.yaml", **options)
        assert main(["run", str(path), "--executor", "inline", "--out", str(tmp_path / "out")]) == 0
        assert seen(tmp_path) == 3 * 600
    found = load_suite(path, registry := discover())
    cells = expand(found, registry).cells.values()
    (tmp_path / "log").unlink()
    empty = LocalFiles(Folders(None, tmp_path / "empty"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    ensure_features(cells, registry, lambda _: empty, "cuda")  # of other machines
    assert seen(tmp_path) == 0
    (stored,) = Store(tmp_path / "out" / "suite0").refresh().results.values()
    assert stored.status == "ok"


def test_a_domain_that_raises_fails_its_runs_and_other_domains_are_computed(installed, tmp_path):
    found = load_suite(suite(tmp_path / "raising.yaml"), discover())
    cells = expand(found, discover()).cells.values()
    entries = [Entry("dataset", Raising, "tests", "1"), Entry("backbone", TinyNet, "tests", "1")]
    files = LocalFiles(Folders(None, tmp_path / "cache"))
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    ensure_features(cells, Registry(entries), lambda _: files)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    assert seen(tmp_path) == 2 * 600


def test_after_a_kill_only_missing_features_are_computed_with_identical_bytes(installed, site, tmp_path, monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    path = suite(tmp_path / "killed.yaml")
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path]), "TINY_NET_SLEEP": "0.05"}
    code = "import sys; from msda_bench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([sys.executable, "-c", code, "run", str(path)], env=environ, process_group=0) as process:
        while len(parts := list(tmp_path.glob("cache/derived/parts/*.part"))) < 1:
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + 60  # workers end by themselves when their parent dies
    while any(str(tmp_path) in " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])):
        assert time.monotonic() < until
        time.sleep(0.05)
    done = {path: path.stat().st_size - 32 for path in tmp_path.glob("cache/derived/parts/*.part")}
    whole = 4 * WIDTH * 600 * len(list(tmp_path.glob("cache/derived/*.npy")))
    rows = (sum(done.values()) + whole) // (4 * WIDTH)
    assert parts
    assert 0 < rows < 3 * 600
    (tmp_path / "log").unlink()
    monkeypatch.setenv("PYTHONPATH", environ["PYTHONPATH"])
    assert main(["run", str(path), "--workers", "1"]) == 0  # in a worker process, which finds the features
    assert seen(tmp_path) == 3 * 600 - rows
    assert not list(tmp_path.glob("cache/derived/parts/*.part"))
    resumed = kept(tmp_path / "cache")
    assert len(resumed) == 3
    computed(tmp_path / "undisturbed", 1)
    assert kept(tmp_path / "undisturbed") < resumed


def test_a_fault_shared_by_all_domains_is_reported_in_one_line(install, tmp_path, capsys):
    text = Path(tiny_net.__file__).read_text()
    install("strange-net", text.replace("len(content) != len(WEIGHTS)", "content"), entry="net")
    assert main(["run", str(suite(tmp_path / "suite.yaml")), "--executor", "inline"]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert all(domain in line for domain in ("thin", "middle", "thick"))
    assert line.endswith("tiny/weights.bin: not 864 bytes")


def test_a_failing_network_is_reported_with_its_file_and_line(tmp_path):
    for network, says in (
        (Failing(), r"test_frozen:Failing: tests/strangers/test_frozen.py:\d+: ValueError: no such thing$"),
        (Wide(), r"gave float32 of shape \(16, 8\) for 16 examples; .* float32 of \(16, 9\)"),
        (NotANumber(), "test_frozen:NotANumber: its features are not finite; correct its weights"),
    ):
        with pytest.raises(DataError, match=says):
            computed(tmp_path / "cache", 1, network=network)
    with pytest.raises(DataError, match=r"kept as \(3, 9, 9\) and seen by a network as \(3, 8, 8\)"):
        computed(tmp_path / "cache", 1, np.zeros((3, 3, 9, 9), np.uint8))


NEW = """
schema: 1
name: {name}
dataset: {{table: {{file: {name}.csv, domain: site, label: y, text: note, unlabelled: target, {more}}}}}
targets: {targets}
seeds: 1
validators: [bnm]
backbone: {{letters: {{hidden: [4]}}}}
training: {{epochs: 2, batch: 10, optimizer: {{adam: {{lr: 0.01}}}}}}
keep: [predictions]
methods: {{DANN: {{scheme: pooled, discrepancy: d_A, mu: 0.1}}}}
"""


def test_new_rows_get_frozen_features_and_other_columns_beside_as_those_of_a_run(installed, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(site, "\xc4" * rng.integers(1, 9), rng.normal(), "ny"[rng.integers(2)]) for site in "abc" * 20]
    table = pd.DataFrame(rows, columns=["site", "note", "age", "y"])
    table.loc[[0, 1], "age"] = [-9, 9]
    table.assign(y=table["y"].where(table["site"] != "c", "")).to_csv("every.csv", index=False)
    table[table["site"] != "c"].to_csv("known.csv", index=False)
    table[table["site"] == "c"].drop(columns="y").to_csv("new.csv", index=False)
    Path("every.yaml").write_text(NEW.format(name="every", more="protocol: transductive, train: all", targets="[c]"))
    Path("known.yaml").write_text(NEW.format(name="known", more="train: 0.5", targets="all"))
    assert main(["run", "every.yaml", "--executor", "inline", "--device", "cpu"]) == 0
    recorded = mb.load_predictions("results/every").set_index("row").sort_index()
    model = pickle.loads(pickle.dumps(mb.fit("known.yaml", "DANN", "new.csv", device="cpu")))  # noqa: S301 - our own
    np.testing.assert_allclose(model.predict_proba("new.csv")[:, 1], recorded["probability_1"], atol=1e-6)
