"""Charts as a reader sees them: the tests draw every chart and check the words and numbers of the picture."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench_report.plots.epochs import by_domain, last_weights
from msda_bench_report.plots.parts import HUES
from msda_bench_report.plots.still import paper, svg_text
from tests.results.conftest import frame_of, gaining

NEAR = [170 + place % 4 for place in range(8)]
HOSTILE = ("</script><script>alert(1)</script>", '=HYPERLINK("http://x.invalid")', "a\u2028b\x1b]0;own\x07", "n" * 200)


def words(chart, **shown):
    """The texts of a chart's picture."""
    spec = chart.to_dict()
    for parameter in spec.get("params", ()):
        parameter["value"] = shown.get(parameter["name"], parameter["value"])
    return [unescape(text) for text in re.findall(r"<(?:text|tspan)\b[^>]*>([^<]+)<", svg_text(spec, {}))]


def fills(chart, **shown):
    """The colours of the cells of a chart's picture."""
    spec = chart.to_dict()
    for parameter in spec["params"]:
        parameter["value"] = shown.get(parameter["name"], parameter["value"])
    return set(re.findall(r'fill="(rgb[^"]+)"', svg_text(spec, {})))


def ticks(chart, **shown):
    """The numbers at a chart's axes."""
    found = [text.replace("\N{MINUS SIGN}", "-") for text in words(chart, **shown)]
    return [float(text) for text in found if re.fullmatch(r"-?\d+(\.\d+)?", text)]


def curves(weights, epochs=6, method="DARN", target="t", seeds=3, jitter=0.0):
    """Curves of a method with constant source weights and a little noise."""
    draw = np.random.default_rng(0)
    rows = [
        ("e", target, method, seed, epoch, source, source.split("/")[0], False, 0.5 / epoch, 0.1, weight)
        for seed in range(seeds)
        for epoch in range(1, epochs + 1)
        for source, weight in weights.items()
    ]
    names = ["experiment", "target", "method", "seed", "epoch", "source", "part_of", "pooled", "risk", "gap", "weight"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(weight=frame["weight"] + jitter * draw.standard_normal(len(frame)))


@pytest.fixture
def runs(table):
    return table(
        {
            "SRC": {"x": NEAR, "y": [160 + seed for seed in range(8)]},
            "DARN": {"x": [run + 9 for run in NEAR], "y": [180 + seed for seed in range(8)]},
            "FAILS": {"x": ["failed: no"] * 8, "y": [None] * 8},
            "ref": {"x": [190] * 8, "y": [191] * 8},
        },
        baseline="SRC",
    )


def test_every_chart_of_scores_names_its_methods(runs):
    board, pairs = mb.leaderboard(runs), mb.compare(runs)
    assert {"SRC", "DARN", "ref", "best mean", "reference, not ranked"} <= set(words(mb.plots.forest(board)))
    assert {"SRC", "DARN", "x", "y"} <= set(words(mb.plots.points(runs)))
    assert "SRC" in words(mb.plots.differences(pairs))
    assert {"difference from DARN", "percentage points; left is worse"} <= set(words(mb.plots.differences(pairs)))
    assert {"SRC", "DARN", "average"} <= set(words(mb.plots.pairs(mb.compare(runs[runs["method"] != "FAILS"]))))
    assert "FAILS" not in words(mb.plots.points(runs))


def test_an_outlying_run_does_not_squeeze_the_others(table):
    usual = {"SRC": {"x": NEAR}, "DARN": {"x": [run + 2 for run in NEAR]}}
    stray = {**usual, "SRC": {"x": [100, *NEAR[1:]]}}
    assert ticks(mb.plots.points(table(usual)))[0] > 84
    found = words(mb.plots.points(table(stray)))
    assert "50.00" in found, "its number is written where it is drawn"
    assert min(ticks(mb.plots.points(table(stray)))) == 50
    assert sorted(ticks(mb.plots.points(table(stray))))[1] > 83, "but the axis does not reach it"


def test_a_method_away_from_the_others_is_drawn_in_place_and_one_far_away_as_arrows(table):
    near = {f"m{more}": {"x": [run + more for run in NEAR]} for more in range(5)}
    off, far = (mb.plots.points(table({**near, "BAD": {"x": [run + more for run in NEAR]}})) for more in (-14, -60))
    assert min(ticks(off)) <= 78
    assert min(ticks(far)) == 85
    assert "55.00 to 56.50" in words(far)


def test_a_mean_that_an_outlier_pulls_beyond_the_edge_is_drawn_at_the_edge(table):
    runs = table({"SRC": {"x": [20, *NEAR[1:]]}, "DARN": {"x": NEAR}})
    svg = svg_text(mb.plots.points(runs).to_dict(), {})
    marks = {float(y): float(x) for x, y in re.findall(rf'd="M([\d.]+),([\d.]+)h2.5v16h-2.5Z" fill="{HUES[1]}"', svg)}
    assert marks[max(marks)] < 10, "SRC's, below DARN's: 77 of an axis from 85 on"
    assert marks[min(marks)] > 100


def test_an_interval_far_beyond_the_others_ends_in_an_arrow_at_the_edge(table):
    board = mb.leaderboard(table({f"m{more}": {"x": [run + more for run in NEAR]} for more in range(5)}))
    assert min(ticks(mb.plots.forest(board))) > 84
    board.loc[board["method"] == "m0", "mean_low"] = 5.0
    assert min(ticks(mb.plots.forest(board))) > 70


def test_names_of_methods_with_equal_times_do_not_overlap(table):
    """One row per method, the best first, with its number at the right."""
    near = {f"m{more}": {"x": [run + more for run in NEAR]} for more in range(5)}
    found = words(mb.plots.cost(table({**near, "ref": {"x": [100] * 8}}).assign(train_seconds=1.0, steps=1)))
    names = [f"m{more}" for more in reversed(range(5))]
    assert [word for word in found if word in {*names, "ref"}] == [*names, "ref"]
    assert {"50.00", "85.75"} <= set(found)


def test_scales_follow_the_shown_methods(table):
    far = table(
        {"SRC": {"x": NEAR}, "DARN": {"x": [run + 1 for run in NEAR]}, "BAD": {"x": [run - 60 for run in NEAR]}}
    )
    assert min(ticks(mb.plots.points(far))) < 60
    assert min(ticks(mb.plots.points(far), shown=["SRC", "DARN"])) > 84
    assert "BAD" not in words(mb.plots.points(far), shown=["SRC", "DARN"])


def test_a_large_gap_of_one_method_does_not_squeeze_the_others():
    frame = pd.concat([curves({"a": 0.5, "b": 0.5}, method=name) for name in ("one", "two", "three", "four", "far")])
    gap = frame["epoch"] * frame["method"].map({"one": -0.1, "two": 0.1, "three": 0.2, "four": 0.1, "far": 50.0})
    chart = mb.plots.curves(frame.assign(gap=gap), what="gap")
    assert {0, 1, 10, 100} <= set(ticks(chart))
    assert "gap between source and target, log scale" in words(chart)
    assert max(ticks(chart, shown=["one", "two"])) <= 6, "of the epochs"


def test_colours_stay_with_methods_when_others_are_hidden():
    frame = pd.concat([curves({"a": 0.5, "b": 0.5}, method=name) for name in ("one", "two", "three")])
    spec = mb.plots.curves(frame).to_dict()
    (colour,) = {
        json.dumps(layer["encoding"]["color"]["scale"]) for layer in spec["layer"] if "color" in layer["encoding"]
    }
    assert json.loads(colour) == {"domain": ["one", "two", "three"], "range": list(HUES[:3])}
    assert {"one", "three"} <= set(words(mb.plots.curves(frame), shown=["one", "three"]))
    assert "two" not in words(mb.plots.curves(frame), shown=["one", "three"])


def test_a_source_has_one_colour_at_every_target():
    frame = pd.concat([curves({"a": 0.6, "b": 0.4}, target="t"), curves({"c": 0.6, "b": 0.4}, target="u")])
    panels = mb.plots.weights(frame).to_dict()["concat"]
    scales = [panel["spec"]["layer"][-1]["encoding"]["color"]["scale"] for panel in panels]
    colours = [dict(zip(scale["domain"], scale["range"], strict=True)) for scale in scales]
    assert colours == [{"a": HUES[0], "b": HUES[1]}, {"c": HUES[2], "b": HUES[1]}]


def test_the_matrix_of_pairs_begins_with_the_method_that_wins_most(table):
    made = table({name: {"x": [run + more for run in NEAR]} for name, more in (("low", 0), ("mid", 5), ("top", 9))})
    (rows,) = mb.plots.pairs(mb.compare(made)).to_dict()["datasets"].values()
    assert {row["row"]: row["order"] for row in rows} == {"top": 0, "mid": 1, "low": 2}


def test_noise_in_weights_does_not_look_like_a_preference():
    noise = curves({"a": 0.3334, "b": 0.3333, "c": 0.3333}, jitter=1e-4)
    assert {0.3, 0.35} <= set(ticks(mb.plots.weights(noise)))
    (tone,) = [
        part["calculate"] for part in mb.plots.weight_map(noise).to_dict()["transform"] if part.get("as") == "tone"
    ]
    assert tone == "datum.away / max(0.05, datum.most)"


def test_colours_of_classes_compare_the_shown_methods():
    rows = [("e", "t", "SRC", 0, 9, 70.0, 1), ("e", "t", "DARN", 0, 9, 74.0, 1), ("e", "t", "BAD", 0, 9, 10.0, pd.NA)]
    columns = ["experiment", "target", "method", "class", "n", "accuracy", "taken_for"]
    chart = mb.plots.classes(pd.DataFrame(rows, columns=columns))
    assert {"SRC", "DARN", "70", "74", "10"} <= set(words(chart))
    colours = {name: fills(chart, shown=["SRC", name]) for name in ("DARN", "BAD")}
    assert colours["BAD"] == {"rgb(98, 171, 219)", "rgb(229, 154, 82)"}, "the ends of the scale"
    assert not colours["DARN"] & colours["BAD"], "2 of the 5 points that the scale reaches at least"


def test_many_lines_have_fewer_points_from_the_first_epoch_to_the_last():
    few, sources = curves({"a": 0.6, "b": 0.4}, epochs=90), {f"s{place}": place / 28 for place in range(8)}
    many = pd.concat([curves(sources, epochs=90, method=f"m{place}", seeds=1) for place in range(20)])
    for frame, most in ((few, 40 * 2), (many, 9 * 8 * 20)):
        (rows,) = mb.plots.weights(frame).to_dict()["datasets"].values()
        assert len(rows) == most
        assert {1, 90} <= {row["epoch"] for row in rows}


def test_final_weights_are_means_over_seeds_of_the_last_epoch():
    frame = curves({"a": 0.9, "b": 0.1})
    frame.loc[(frame["epoch"] < 6) | (frame["seed"] == 0), "weight"] = 0.5
    found = last_weights(frame).set_index("source")
    assert found["weight"].to_dict() == pytest.approx({"a": (0.5 + 0.9 + 0.9) / 3, "b": (0.5 + 0.1 + 0.1) / 3})
    assert set(found["equal"]) == {0.5}
    assert set(found["seeds"]) == {3}
    whole = by_domain(curves({"a/0": 0.2, "a/1": 0.3, "b/0": 0.5}))
    assert whole.groupby("source")["weight"].mean().to_dict() == pytest.approx({"a": 0.5, "b": 0.5})


def test_methods_that_pool_sources_or_weigh_them_equally_have_no_weights():
    alike = curves({"a": 0.5, "b": 0.5}, method="ALIKE")
    pooled = curves({"a + b": 1.0}, method="SRC").assign(pooled=True)
    darn = curves({"a": 0.7, "b": 0.3})
    assert set(last_weights(pd.concat([alike, pooled, darn]))["method"]) == {"DARN"}
    assert last_weights(pd.concat([alike, pooled])).empty


def test_outside_text_is_escaped(table):
    runs = table(
        {name: {place: [run + n for run in NEAR] for place in HOSTILE[:2]} for n, name in enumerate(HOSTILE)},
    ).assign(train_seconds=1.0)
    found = curves(dict.fromkeys(HOSTILE, 0.25), method=HOSTILE[0], jitter=0.1)
    charts = [
        mb.plots.points(runs),
        mb.plots.forest(mb.leaderboard(runs)),
        mb.plots.pairs(mb.compare(runs)),
        mb.plots.cost(runs),
    ]
    for chart in [*charts, mb.plots.weights(found), mb.plots.weight_map(found), mb.plots.curves(found)]:
        text = chart.to_json()
        assert "\\u001b" not in text
        assert "\u2028" not in text
        assert "\\u2028" not in text
        svg = svg_text(chart.to_dict(validate=False), paper())
        assert "<script" not in svg
        assert "nnnn" not in svg or "n" * 61 not in svg
    assert any("alert(1)" in text for text in words(mb.plots.points(runs)))


def test_nothing_to_draw_is_reported(table):
    missing = table({"a": {"x": [None]}, "b": {"x": [None]}})
    for draw in (mb.plots.points, mb.plots.cost):
        with pytest.raises(ValueError, match="nothing to draw"):
            draw(missing)
    with pytest.raises(ValueError, match="nothing to draw"):
        mb.plots.weights(curves({"a": 0.5, "b": 0.5}))


def test_a_chart_of_several_experiments_has_a_panel_for_each(table):
    made = [table({"a": {"x": NEAR}, "b": {"x": NEAR}}, name=name, dataset=name) for name in ("first", "second")]
    assert {"first", "second"} <= set(words(mb.plots.forest(pd.concat(map(mb.leaderboard, made)))))


def test_sensitivity_and_regrets_are_drawn():
    points = pd.DataFrame(
        [("e", "DARN", "mu", value, 80 - abs(value - 0.1)) for value in (0.001, 0.1, 10.0)],
        columns=["experiment", "method", "parameter", "value", "score"],
    )
    assert "DARN" in words(mb.plots.sensitivity(points))
    criteria = pd.DataFrame(
        {
            "experiment": "e",
            "method": "all methods",
            "target": "average",
            "criterion": ["risk", "oracle"],
            "mean": [70.0, 71.0],
            "regret": [1.0, 0.0],
            "regret_standard_error": [0.1, 0.0],
            "rank_correlation": 0.5,
        }
    )
    assert "risk" in words(mb.plots.regrets(criteria))
    assert "oracle" not in words(mb.plots.regrets(criteria))


def test_critical_difference_shows_ranks_groups_and_where_methods_beat_the_baseline():
    runs = frame_of(*gaining(20, 30, 10, 40, -50, 60))
    found = words(mb.plots.critical_difference(runs))
    assert {"up", "1.33", "better on 5, worse on 1 of 6", "the baseline", "neither shown"} <= set(found)
    assert "significantly better or worse than SRC within a dataset" in found
    few = "over 6 datasets no difference can be significant after Holm's correction for 3 comparisons of methods; "
    few += "that takes 7"
    assert few in found
    assert few not in " ".join(words(mb.plots.critical_difference(frame_of(*gaining(20, 30, 10, 40, 50, 60, 70)))))
    with pytest.raises(ValueError, match="nothing to draw"):
        mb.plots.critical_difference(runs[runs["experiment"] == "e0"])
