"""Tables and arrays of a user's own, and suites that name them."""

import io
import json
from pathlib import Path

import numpy as np

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.testing import examine

HEAD = "site,disease,age,sex\n"
PLAIN = HEAD + "".join(
    f"{site},{'yes' if row % 2 else 'no'},{row * 1.5},{'f' if row % 3 else 'm'}\n" for site in "ab" for row in range(8)
)
TABLE = {"domain": "site", "label": "disease"}
X, Y, SITE = np.arange(48, dtype=np.float32).reshape(16, 3) % 7, np.arange(16) % 2, np.repeat([0, 1], 8)


def suite(folder, dataset, params=None, **changes):
    """The path of a suite of this dataset, with other keys than the usual ones; None leaves a key out."""
    text = {
        "schema": 1,
        "name": "mine",
        "dataset": dataset if params is None else {dataset: params},
        "targets": "all",
        "seeds": 1,
        "backbone": {"mlp": {"hidden": [4]}},
        "training": {"epochs": 1, "batch": 4, "optimizer": {"adam": {"lr": 0.01}}},
        "methods": {"SRC": {"scheme": "pooled"}},
        **changes,
    }
    path = folder / "mine.yaml"
    path.write_text(json.dumps({key: value for key, value in text.items() if value is not None}))
    return str(path)


def results(path):
    """The results of a suite, trained into `out` beside it."""
    out = Path(path).parent / "out"
    assert main(["run", path, "--out", str(out), "--device", "cpu", "--executor", "inline"]) == 0
    return mb.load_results(out / "mine")


def refusal(capsys, path):
    """The one line with which `validate` refuses a suite."""
    assert main(["validate", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line


def broken(component):
    """The findings of a component's contract that are broken."""
    return [finding for finding in examine(component) if finding.outcome == "broken"]


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **({"x": X, "y": Y, "site": SITE} | arrays))
    return stream.getvalue()
