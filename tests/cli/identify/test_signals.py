"""Signals: from an archive of windows to a first suite and its answers, with either order of axes, gaps and padding."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import msda_bench as mb
from msda_bench.cli.main import main
from tests.cli.identify.conftest import refused
from tests.own import results, suite

ROLES = ("--domain", "user", "--label", "y")
USER = np.repeat(["ann", "bob", "cleo", "dan"], 30)
STEPS, CHANNELS = 40, 2
METHODS = {
    "SRC": {"scheme": "pooled"},
    "CORAL": {"discrepancy": "coral", "mu": 1.0},
    "AdaBN": {"scheme": "adabn"},
    "SRC-domain": {"scheme": "pooled", "standardise": "domain"},
}
NETWORK = {"convnet1d": {"channels": [6, 8], "kernel": 5, "norm": "batch"}}
TRAINING = {"epochs": 2, "steps": 10, "batch": 8, "optimizer": {"sgd": {"lr": 0.05}}}


def waves():
    """Slow or fast waves (n, channels, time) that each user's device shows at another level and in another unit."""
    rng = np.random.default_rng(3)
    y = np.arange(len(USER)) % 2
    phase = rng.uniform(0, 2 * np.pi, (len(USER), CHANNELS, 1))
    x = np.sin(2 * np.pi * np.where(y, 5, 2)[:, None, None] * np.arange(STEPS) / STEPS + phase)
    x += rng.normal(0, 0.3, x.shape)
    device = np.unique(USER, return_inverse=True)[1][:, None, None]
    return (x * (1 + device) + 20 * device).astype(np.float32), y


def ended(x, ends):
    """The signals with NaN after their ends."""
    return np.where(np.arange(x.shape[2]) < ends[:, None, None], x, np.nan)


def answers(folder, x, methods=METHODS, **params):
    """The probabilities of class 1 that each method gives the target's rows."""
    folder.mkdir()
    np.savez(folder / "w.npz", x=x, y=waves()[1], domain=USER)
    params = {"file": "w.npz", "signals": "channels_first", "train": 20} | params
    options = {"backbone": NETWORK, "training": TRAINING, "targets": ["dan"], "keep": ["predictions"]}
    rows = mb.load_predictions(results(suite(folder, "arrays", params, methods=methods, **options)))
    return {name: of["probability_1"].to_numpy() for name, of in rows.groupby("method", observed=True)}


def test_windows_become_a_suite_that_runs(told, tmp_path, monkeypatch):
    """Either order of axes is recognised, and gives the same first suite and the same answers."""
    monkeypatch.chdir(tmp_path)
    x, y = waves()
    found = {}
    for order, inputs in (("channels_first", x), ("channels_last", np.moveaxis(x, 1, 2))):
        np.savez(f"{order}.npz", x=inputs, y=y, user=USER)
        said = told(f"{order}.npz", *ROLES, "--suite", f"{order}.yaml")
        assert "2 channels at 40 times in each row" in said
        text = yaml.safe_load(Path(f"{order}.yaml").read_text())
        assert text["dataset"]["arrays"]["signals"] == order
        assert (list(text["backbone"]), "AdaBN" in text["methods"], "boosting" in text["methods"]) == (
            ["convnet1d"],
            True,
            False,
        )
        kept = {name: text["methods"][name] for name in ("SRC", "AdaBN", "SRC-domain", "TAR")}
        short = {**text, "name": order, "methods": kept, "seeds": 1, "training": TRAINING, "targets": ["dan"]}
        Path("short.yaml").write_text(json.dumps(short))
        assert main(["run", "short.yaml", "--executor", "inline"]) == 0
        runs = mb.load_results(tmp_path / "results" / order)
        found[order] = runs.set_index("method")["n_correct"].to_dict()
    assert found["channels_first"] == found["channels_last"]
    assert found["channels_first"].keys() == {"SRC", "AdaBN", "SRC-domain", "TAR"}


@pytest.mark.parametrize(
    ("shape", "smooth", "says"),
    [
        ((12, 20), None, "12 and 20 are too near to tell time from channels"),
        ((12, 50), 1, "neighbours along the shorter axis, of 12, are more alike"),
    ],
)
def test_in_doubt_the_user_says_which_axis_is_time(shape, smooth, says, identify, tmp_path):
    x = np.random.default_rng(0).normal(size=(len(USER), *shape))
    x = x if smooth is None else x.cumsum(smooth)
    np.savez(tmp_path / "w.npz", x=x, y=waves()[1], user=USER)
    path = tmp_path / "w.yaml"
    line = refused(identify(tmp_path / "w.npz", *ROLES, "--suite", path))
    assert says in line
    assert "--signals channels_first" in line
    assert not path.exists()
    assert identify(tmp_path / "w.npz", *ROLES, "--suite", path, "--signals", "channels_first")[0] == 0
    assert "convnet1d" in path.read_text()


def test_padding_tells_the_axis_and_moves_no_answer(identify, tmp_path):
    x, y = waves()
    short = ended(x, 25 + np.arange(len(x)) % 11)[:, :, :35]
    np.savez(tmp_path / "w.npz", x=np.moveaxis(short, 1, 2), y=y, user=USER)
    _, out, _ = identify(tmp_path / "w.npz", *ROLES, "--suite", tmp_path / "w.yaml")
    assert any("2 channels at 35 times in each row, padded series of 25 to 35 times" in line for line in out)
    assert "channels_last" in (tmp_path / "w.yaml").read_text()
    longer = np.full((len(x), CHANNELS, 60), np.nan, np.float32)
    longer[:, :, :35] = short
    expected, padded = answers(tmp_path / "short", short), answers(tmp_path / "longer", longer)
    late = np.roll(longer, 20, axis=2)
    moved = answers(tmp_path / "late", late)
    other = answers(tmp_path / "filled", np.nan_to_num(short))
    for name, chances in expected.items():
        np.testing.assert_allclose(padded[name], chances, atol=2e-3, err_msg=name)
        np.testing.assert_allclose(moved[name], chances, atol=2e-3, err_msg=name)
        assert np.abs(other[name] - chances).max() > 0.02, name


def test_domains_are_standardised_by_channel_by_the_dataset_or_by_a_method(tmp_path):
    x, _ = waves()
    gaps = np.where(np.random.default_rng(1).random(x.shape) < 0.2, np.nan, x)
    one = {"SRC": {"scheme": "pooled"}}
    for name, inputs in (("whole", x), ("gaps", gaps)):
        by_dataset = answers(tmp_path / f"{name}-dataset", inputs, one, standardise="domain")
        methods = {"SRC": METHODS["SRC-domain"]}
        by_method = answers(tmp_path / f"{name}-method", inputs, methods, standardise="none")
        as_it_is = answers(tmp_path / f"{name}-none", inputs, one, standardise="none")
        np.testing.assert_allclose(by_method["SRC"], by_dataset["SRC"], atol=1e-3)
        assert np.abs(as_it_is["SRC"] - by_dataset["SRC"]).max() > 0.02


def test_what_some_signals_lack_is_compared_in_the_others(identify, tmp_path):
    """Two and two begin alike, and one signal ends there; the others are no copies of each other."""
    x = np.random.default_rng(0).normal(size=(len(USER), CHANNELS, STEPS))
    x[1::2, :, :20] = x[::2, :, :20]
    x[5, :, 20:] = np.nan
    np.savez(tmp_path / "w.npz", x=x, y=waves()[1], user=USER)
    _, out, _ = identify(tmp_path / "w.npz", *ROLES, "--suite", tmp_path / "w.yaml")
    assert [line.partition(":")[0] for line in out if line.startswith(("leak:", "rows: hardly"))] == ["rows"]


def test_one_signal_a_row_needs_no_axis_of_channels(tmp_path):
    x, _ = waves()
    flat, deep = answers(tmp_path / "flat", x[:, 0]), answers(tmp_path / "deep", x[:, :1])
    for name in METHODS:
        np.testing.assert_array_equal(flat[name], deep[name])


def test_a_signal_without_a_number_is_named(identify, tmp_path):
    x, y = waves()
    x[7] = np.nan
    np.savez(tmp_path / "w.npz", x=x, y=y, user=USER)
    assert "row 7 of array 'x' has no number" in refused(identify(tmp_path / "w.npz", *ROLES))
    (tmp_path / "t.csv").write_text("user,y\na,1\na,2\nb,1\nb,2\n")
    assert "a table has no signals" in refused(identify(tmp_path / "t.csv", *ROLES, "--signals", "none"))
