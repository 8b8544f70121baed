"""`msda-bench suites` and `validate`, and commands that find a suite by name."""

from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from msda_bench import plugins
from msda_bench.cli.main import main
from msda_bench.plugins import discover
from msda_bench.suite import files as shipped
from tests.own import npz, refusal, suite

SUITES = Path(__file__).parents[2] / "suites"
SMOKE = (SUITES / "smoke.yaml").read_text()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_names_each_suite_with_what_it_has_and_needs(said):
    code, out, err = said("suites list")
    rows = dict(line.split(": ", 1) for line in "\n".join(out).replace("\n  ", " ").splitlines())
    assert (code, err, next(iter(rows))) == (0, [], "quickstart")
    assert set(rows) == set(shipped.offered_names())
    assert max(map(len, out)) <= 80
    assert rows["smoke"].startswith("sine; 3 methods, 2 seeds The smallest suite")
    assert rows["quickstart"].startswith("fonts, opinions; 6 methods, 9 seeds All six methods")
    assert "; needs msda-bench-efficientnet-lite " in rows["pacs-features"].replace("- ", "-")


def test_a_suite_whose_plugin_is_missing_says_where_to_get_it(said, monkeypatch):
    built_in = discover(point for point in entry_points(group="msda_bench") if point.name == "builtin")
    monkeypatch.setattr(plugins, "discover", lambda *group: discover(*group) if group else built_in)
    code, _, (required, unknown) = said("run pacs-features --dry-run")
    assert code == 2
    assert required.endswith(
        "pacs-features.yaml:6:12: requires.msda-bench-efficientnet-lite: is not installed; pip installs it from "
        "'plugins/efficientnet-lite of the msda-bench repository'"
    )
    assert "unknown backbone 'efficientnet-lite0' (known: convnet, " in unknown


def test_show_prints_the_files_and_a_copy_is_complete_and_never_overwrites(said, here):
    code, out, _ = said("suites show quickstart")
    files = shipped.files_of(shipped.shipped("quickstart"))
    heads = ["", *(f"\n# quickstart/{path.name}\n" for path in files[1:])]
    text = "".join(head + path.read_text() for head, path in zip(heads, files, strict=True))
    assert (code, out) == (0, text.splitlines())
    code, out, _ = said("suites copy quickstart --out mine")
    written = ["mine/quickstart.yaml", "mine/quickstart/fonts.yaml", "mine/quickstart/opinions.yaml"]
    lines = [*(f"wrote {path}" for path in written), "next: msda-bench run mine/quickstart.yaml"]
    assert (code, out) == (0, lines)
    assert said("validate mine/quickstart.yaml")[0] == 0
    Path(written[0]).unlink()
    Path(written[1]).write_text("mine")
    code, out, (error,) = said("suites copy quickstart --out mine")
    assert (code, out) == (2, [])
    assert f"{written[1]}, {written[2]}: already there" in error
    assert Path(written[1]).read_text() == "mine"
    assert not Path(written[0]).exists(), "all or nothing"


def test_validate_summarises_a_suite(said):
    code, out, _ = said("validate smoke")
    assert (code, out) == (0, [
        "smoke: sine (regression), targets target_0, target_1; seeds 0-1; 12 runs",
        "  SRC   pooled",
        "  TAR   target_only (reference)",
        "  DARN  adapt + spectral_l2 + sharpmax, mu 0.01",
        "",
        "suite smoke is valid: 1 experiment, 12 runs",
    ])  # fmt: skip


def test_validate_shows_unusual_seeds_and_identical_methods(said, here):
    text = SMOKE.replace("seeds: 2", "seeds: [4]").replace("[target_0, target_1]", "all")
    Path("twins.yaml").write_text(text.replace("  TAR:", "  SRC2: {scheme: pooled}\n  TAR:"))
    Path("both.yaml").write_text("schema: 1\nname: both\ninclude: [twins.yaml, b.yaml]\n")
    Path("b.yaml").write_text(text.replace("name: smoke", "name: b").replace("[4]", "[0, 2]"))
    code, lines, err = said("validate both.yaml")
    targets = "target_0, target_1, target_2, target_3"
    assert (code, lines[0]) == (0, f"smoke: sine (regression), targets {targets}; seeds 4; 16 runs")
    assert f"b: sine (regression), targets {targets}; seeds 0, 2; 24 runs" in lines
    assert lines[-1] == "suite both is valid: 2 experiments, 40 runs, 36 of them different"
    assert err == []


@pytest.mark.parametrize("suite", sorted(SUITES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_suite_of_the_project_is_valid(suite, said, install):
    for name in ("efficientnet-lite", "minilm"):
        install(f"msda-bench-{name}", next((SUITES.parent / "plugins" / name / "src").glob("*.py")).read_text())
    code, out, _ = said(f"validate {suite}")
    assert (code, out[-1].startswith(f"suite {suite.stem} is valid: ")) == (0, True)


def test_a_network_that_cannot_take_the_data_is_no_valid_suite(tmp_path, capsys):
    """A suite of which every method is fitted at once needs no network, and runs."""
    for shape, says in (
        ((3, 5), "backbone convnet needs images (channels, height, width), not input of shape (3, 5)"),
        ((3, 5, 5), "backbone convnet needs images of at least 15x15, not (5, 5)"),
    ):
        (tmp_path / "mine.npz").write_bytes(npz(x=np.random.default_rng(0).normal(size=(16, *shape))))
        params = {"file": "mine.npz", "inputs": "x", "labels": "y", "domains": "site"}
        path = suite(tmp_path, "arrays", params, backbone={"convnet": {}})
        assert says in refusal(capsys, path)
        assert main(["run", path, "--out", str(tmp_path / "out")]) == 2
        assert says in capsys.readouterr().err
    methods = {"chance": {"scheme": "chance", "reference": True}}
    path = suite(tmp_path, "arrays", params, methods=methods, backbone={"convnet": {}})
    assert main(["validate", path]) == 0
    assert main(["run", path, "--out", str(tmp_path / "out"), "--executor", "inline"]) == 0


HARD = """
import torch
from torch import nn
from msda_bench.api import Backbone, Network, component, hookimpl

class Checked(nn.Module):
    def forward(self, x):
        if {branch}:
            raise ValueError("it is empty")
        return x.flatten(1)[:, :{width}]

@component
class Hard(Backbone):
    name = "hard"
    hidden: int = 12

    def build(self, task, input, files=None):
        features = nn.Sequential(Checked(), nn.Linear(self.hidden, 4))
        return Network(features, nn.Linear(4, task.outputs), 4)

@hookimpl
def msda_backbones():
    return [Hard]
"""


def test_an_input_that_fits_no_layer_of_a_network_is_no_valid_suite(tmp_path, capsys, install):
    """Of vectors, signals and images, also where only a search would try the network; one that fits is valid."""
    params = {"file": "mine.npz", "inputs": "x", "labels": "y", "domains": "site"}
    install("other", HARD.format(branch="x.isnan().any()", width=99))
    for shape in ((5,), (3, 5), (3, 2, 5)):
        (tmp_path / "mine.npz").write_bytes(npz(x=np.random.default_rng(0).normal(size=(16, *shape))))
        line = refusal(capsys, suite(tmp_path, "arrays", params, backbone="hard"))
        assert f"backbone: backbone hard of other 1.0 cannot take input of shape {shape}: " in line
        assert "mat1 and mat2 shapes cannot be multiplied" in line
    search = {
        "select": {"how": "grid", "budget": 9, "by": "source_accuracy", "space": {"backbone.hard.hidden": [30, 12]}},
        "validators": ["source_accuracy"],
        "backbone": {"hard": {"hidden": 30}},
    }
    line = refusal(capsys, suite(tmp_path, "arrays", params, **search))
    place, _, what = line.partition(": backbone hard of other 1.0 cannot take input of shape (3, 2, 5)")
    assert (place.partition("select.")[2], bool(what)) == ("space.backbone.hard.hidden[1]", True)
    # On the device "meta" this network cannot decide how to go on.
    assert main(["validate", suite(tmp_path, "arrays", params, backbone={"hard": {"hidden": 30}})]) == 0
