"""The picture of the user's own data: made by `run`, kept beside the results, and shown by the page."""

import json
from pathlib import Path

import numpy as np
import pytest

from msda_bench.cli.main import main
from tests.logs import contents
from tests.results.page.conftest import Page

SUITE = """
schema: 1
name: mine
dataset: {{{dataset}}}
targets: [a]
seeds: [0]
backbone: {{{backbone}}}
training: {{epochs: 1, batch: 4, steps: 2, optimizer: {{adam: {{lr: 0.01}}}}}}
methods: {{SRC: {{scheme: pooled}}}}
"""
ARRAYS = "arrays: {file: rows.npz, domains: site, train: 0.5"
NETWORK = "mlp: {hidden: [4]}"
RUN = ("run", "mine.yaml", "--executor", "inline", "--device", "cpu", "--quiet")
FOLDER = Path("results", "mine")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))


def write(dataset, backbone=NETWORK):
    Path("mine.yaml").write_text(SUITE.format(dataset=dataset + "}", backbone=backbone))


def save(x, sites):
    np.savez("rows.npz", x=x.astype(np.float32), y=np.arange(len(x)) % 2, site=sites)


def kept():
    (picture,) = json.loads((FOLDER / "shift.json").read_text()).values()
    return picture, {cloud["domain"]: np.array(cloud["points"]) for cloud in picture["clouds"]}


def report():
    """The page of the results."""
    assert main(["report", str(FOLDER)]) == 0
    return Page((FOLDER / "report.html").read_text())


def test_a_run_keeps_two_components_of_own_data_alone_and_the_page_draws_them():
    x = np.random.default_rng(0).normal(size=(60, 5)) * [9, 4, 1, 1, 1] + 1234.5
    x[40:, 1] += 40
    save(x, np.repeat(["a", "b", "far"], 20))
    write(f"{ARRAYS}, standardise: none")
    assert main(list(RUN)) == 0
    picture, points = kept()
    centred = x - x.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    found = np.concatenate([points[name] for name in ("a", "b", "far")])
    for place in (0, 1):
        # The rows of a domain come in the order of the data.
        right = centred @ axes[place]
        assert min(np.abs(found[:, place] - sign * right).max() for sign in (1, -1)) < 0.05
    assert picture["explained"] == pytest.approx((sizes**2 / (sizes**2).sum())[:2], rel=0.01)
    assert {*picture} == {"data", "of", "explained", "clouds", "left_out"}
    assert {name: some.shape for name, some in points.items()} == {"a": (20, 2), "b": (20, 2), "far": (20, 2)}
    before = contents(FOLDER)
    assert main(list(RUN)) == 0
    assert contents(FOLDER) == before, "a finished suite changes no file"
    page = report()
    page.check()
    assert "mine-shift" in page.figures
    assert "Farthest from the others: far, by " in page.said
    assert "domain rows first second distance far 20" in page.said
    (FOLDER / "shift.json").write_text('{"mine": {"clouds": []}}')
    assert "mine-shift" not in report().figures
    x[0] += 1
    save(x, np.repeat(["a", "b", "far"], 20))
    assert main([*RUN, "--no-shift", "--out", "without"]) == 0
    assert not Path("without", "mine", "shift.json").exists()


def test_of_many_domains_and_rows_a_sample_is_kept():
    sites = np.repeat(["a", *(f"s{n}" for n in range(69))], 30)
    save(np.random.default_rng(0).normal(size=(len(sites), 3)), sites)
    write(ARRAYS)
    assert main(list(RUN)) == 0
    picture, points = kept()
    assert (len(points), picture["left_out"]) == (60, 10)
    assert {len(some) for some in points.values()} == {20}
    assert "10 domains left out." in report().said


@pytest.mark.parametrize("what", ["texts", "signals", "one number"])
def test_texts_and_signals_have_one_and_a_single_number_has_none(what):
    draw, sites = np.random.default_rng(0), np.repeat(["a", "b", "c"], 12)
    if what == "texts":
        rows = ["text,y,site"]
        for n, site in enumerate(sites):
            rows.append(f"{('blue', 'red')[n % 2]} {site} {draw.choice(['hat', 'shoe'])},{n % 2},{site}")
        Path("rows.csv").write_text("\n".join(rows))
        write("table: {file: rows.csv, domain: site, label: y, text: text, train: 0.5")
    elif what == "signals":
        x = draw.normal(size=(36, 2, 30))
        x[3, 0, 20:] = np.nan
        save(x, sites)
        write(f"{ARRAYS}, signals: channels_first", "convnet1d: {}")
    else:
        save(draw.normal(size=(36, 1)), sites)
        write(ARRAYS)
    assert main(list(RUN)) == 0
    assert (FOLDER / "shift.json").exists() == (what != "one number")
    if what != "one number":
        _, points = kept()
        assert {name: len(some) for name, some in points.items()} == {"a": 12, "b": 12, "c": 12}
        assert all(np.isfinite(some).all() for some in points.values())
