"""Charts as a reader sees them; tests/test_tutorial.py holds the words of those that the documentation shows."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench_report.plots.parts import HUES, paper, svg_text
from tests.results.conftest import HOSTILE, frame_of, gaining

NEAR = [170 + place % 4 for place in range(8)]


def drawn(chart, **shown):
    spec = chart.to_dict()
    for parameter in spec.get("params", ()):
        parameter["value"] = shown.get(parameter["name"], parameter["value"])
    return svg_text(spec, {})


def words(chart, **shown):
    """The texts of a chart's picture."""
    return [unescape(text) for text in re.findall(r"<(?:text|tspan)\b[^>]*>([^<]+)<", drawn(chart, **shown))]


def fills(chart, **shown):
    """The colours of the cells of a chart's picture."""
    return set(re.findall(r'fill="(rgb[^"]+)"', drawn(chart, **shown)))


def ticks(chart, **shown):
    """The numbers at a chart's axes."""
    texts = [text.replace("\N{MINUS SIGN}", "-") for text in words(chart, **shown)]
    return sorted(float(text) for text in texts if re.fullmatch(r"-?\d+(\.\d+)?", text))


def at(**more):
    """Runs of methods that are so much better than `NEAR`."""
    return {name: {"x": [run + step for run in NEAR]} for name, step in more.items()}


FIVE = {f"m{more}": more for more in range(5)}


def curves(weights, target="t", method="DARN", epochs=6, seeds=3, jitter=0.0):
    """A frame of `load_curves` with constant source weights and a little noise."""
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


def test_an_outlying_run_does_not_squeeze_the_others(table):
    assert ticks(mb.plots.points(table(at(SRC=0, DARN=2))))[0] > 84
    stray = mb.plots.points(table(at(SRC=0, DARN=2) | {"SRC": {"x": [100, *NEAR[1:]]}}))
    assert "50.00" in words(stray), "its number is written where it is drawn"
    assert (ticks(stray)[0], ticks(stray)[1] > 83) == (50, True), "but the axis does not reach it"
    off, far = (mb.plots.points(table(at(**FIVE, BAD=more))) for more in (-14, -60))
    assert ticks(off)[0] <= 78
    assert (ticks(far)[0], "55.00 to 56.50" in words(far)) == (85, True), "drawn as arrows"


def test_a_mean_or_an_interval_beyond_the_edge_is_drawn_at_the_edge(table):
    svg = drawn(mb.plots.points(table({"SRC": {"x": [20, *NEAR[1:]]}, "DARN": {"x": NEAR}})))
    marks = {float(y): float(x) for x, y in re.findall(rf'd="M([\d.]+),([\d.]+)h2.5v16h-2.5Z" fill="{HUES[1]}"', svg)}
    assert marks[max(marks)] < 10, "SRC's, below DARN's: 77 of an axis from 85 on"
    assert marks[min(marks)] > 100
    board = mb.leaderboard(table(at(**FIVE)))
    assert ticks(mb.plots.forest(board))[0] > 84
    board.loc[board["method"] == "m0", "mean_low"] = 5.0
    assert ticks(mb.plots.forest(board))[0] > 70
    wide = board.assign(mean_low=board["mean"] - 60, mean_high=board["mean"] + 9)
    assert ticks(mb.plots.forest(wide))[0] < 40, "most intervals are drawn whole, however near their means are"


def test_scales_follow_the_shown_methods_and_colours_stay(table):
    points = mb.plots.points(table(at(SRC=0, DARN=1, BAD=-60)))
    assert ticks(points)[0] < 60
    assert ticks(points, shown=["SRC", "DARN"])[0] > 84
    assert "BAD" not in words(points, shown=["SRC", "DARN"])
    chart = mb.plots.curves(pd.concat([curves({"a": 0.5, "b": 0.5}, method=name) for name in ("one", "two", "three")]))
    scales = [layer["encoding"]["color"]["scale"] for layer in chart.to_dict()["layer"] if "color" in layer["encoding"]]
    assert all(scale == {"domain": ["one", "two", "three"], "range": list(HUES[:3])} for scale in scales)
    assert {"one", "two", "three"} & {*words(chart, shown=["one", "three"])} == {"one", "three"}


def test_a_large_gap_of_one_method_does_not_squeeze_the_others():
    frame = pd.concat([curves({"a": 0.5, "b": 0.5}, method=name) for name in ("one", "two", "three", "four", "far")])
    gap = frame["epoch"] * frame["method"].map({"one": -0.1, "two": 0.1, "three": 0.2, "four": 0.1, "far": 50.0})
    chart = mb.plots.curves(frame.assign(gap=gap), what="gap")
    assert {0, 1, 10, 100} <= set(ticks(chart))
    assert "gap between source and target, log scale" in words(chart)
    assert max(ticks(chart, shown=["one", "two"])) <= 6, "of the epochs"


def test_a_source_has_one_colour_at_every_target():
    frame = pd.concat([curves({"a": 0.6, "b": 0.4}, target="t"), curves({"c": 0.6, "b": 0.4}, target="u")])
    panels = mb.plots.weights(frame).to_dict()["concat"]
    scales = [panel["spec"]["layer"][-1]["encoding"]["color"]["scale"] for panel in panels]
    colours = [dict(zip(scale["domain"], scale["range"], strict=True)) for scale in scales]
    assert colours == [{"a": HUES[0], "b": HUES[1]}, {"c": HUES[2], "b": HUES[1]}]


def test_noise_in_weights_does_not_look_like_a_preference():
    noise = curves({"a": 0.3334, "b": 0.3333, "c": 0.3333}, jitter=1e-4)
    assert {0.3, 0.35} <= set(ticks(mb.plots.weights(noise)))
    tones = [
        step["calculate"] for step in mb.plots.weight_map(noise).to_dict()["transform"] if step.get("as") == "tone"
    ]
    assert tones == ["datum.away / max(0.05, datum.most)"]


def test_colours_of_classes_compare_the_shown_methods():
    rows = [("e", "t", "SRC", 0, 9, 70.0, 1), ("e", "t", "DARN", 0, 9, 74.0, 1), ("e", "t", "BAD", 0, 9, 10.0, pd.NA)]
    columns = ["experiment", "target", "method", "class", "n", "accuracy", "taken_for"]
    chart = mb.plots.classes(pd.DataFrame(rows, columns=columns))
    assert {"SRC", "DARN", "70", "74", "10"} <= set(words(chart))
    colours = {name: fills(chart, shown=["SRC", name]) for name in ("DARN", "BAD")}
    assert colours["BAD"] == {"rgb(98, 171, 219)", "rgb(229, 154, 82)"}, "the ends of the scale"
    assert not colours["DARN"] & colours["BAD"], "2 of the 5 points that the scale reaches at least"


def test_the_map_of_domains_begins_with_the_worst_and_marks_that_of_each_method(table):
    """Of 200: a reference is no reason to call a domain the worst, nor does it stretch the colours."""
    runs = {"SRC": {"x": 170, "y": 100}, "DARN": {"x": 160, "y": 164}, "ref": {"x": 10, "y": 198}}
    shown = table({name: {target: [n] * 3 for target, n in of.items()} for name, of in runs.items()})
    chart = mb.plots.domains(mb.leaderboard(shown))
    said = words(chart)
    assert [word for word in said if word in {"DARN", "SRC", "ref"}] == ["DARN", "SRC", "ref"]
    assert [word for word in said if word in {"x", "▼ y"}] == ["▼ y", "x"]
    assert {word for word in said if word.endswith("▾")} == {"80.0▾", "50.0▾", "5.0▾"}
    assert {"82.0", "85.0", "99.0"} <= set(said)
    assert len(fills(chart, shown=["SRC", "DARN"])) == 4
    assert fills(chart, shown=["SRC", "DARN"]) <= fills(chart)
    errors = table({"SRC": {"x": [0.5] * 3, "y": [2.0] * 3}}, task="regression")
    assert "▼ y" in words(mb.plots.domains(mb.leaderboard(errors))), "where the error is largest"
    with pytest.raises(ValueError, match="nothing to draw"):
        mb.plots.domains(mb.leaderboard(table({"SRC": {"x": [1, 2]}})))


def test_many_lines_have_fewer_points_from_the_first_epoch_to_the_last():
    few, sources = curves({"a": 0.6, "b": 0.4}, epochs=90), {f"s{place}": place / 28 for place in range(8)}
    many = pd.concat([curves(sources, epochs=90, method=f"m{place}", seeds=1) for place in range(20)])
    for frame, most in ((few, 40 * 2), (many, 9 * 8 * 20)):
        (rows,) = mb.plots.weights(frame).to_dict()["datasets"].values()
        assert len(rows) == most
        assert {1, 90} <= {row["epoch"] for row in rows}


def test_the_band_of_a_weight_is_one_standard_deviation_on_both_sides():
    given = curves({"a": 0.6, "b": 0.4}, epochs=2, jitter=0.1)
    (rows,) = mb.plots.weights(given).to_dict()["datasets"].values()
    seen = given.groupby(["source", "epoch"])["weight"]
    for row in rows:
        own = seen.get_group((row["source"], row["epoch"]))
        sides = [row["weight"] - row["low"], row["high"] - row["weight"]]
        assert [row["weight"], *sides] == pytest.approx([own.mean(), own.std(), own.std()], abs=1e-5)


def test_outside_text_is_escaped(table):
    runs = {name: {target: [run + n for run in NEAR] for target in HOSTILE[-2:]} for n, name in enumerate(HOSTILE[::2])}
    frame = table(runs).assign(train_seconds=1.0)
    weights = curves(dict.fromkeys(HOSTILE, 0.25), method=HOSTILE[0], jitter=0.1)
    charts = [mb.plots.points(frame), mb.plots.forest(mb.leaderboard(frame)), mb.plots.pairs(mb.compare(frame))]
    charts += [mb.plots.cost(frame), mb.plots.weights(weights), mb.plots.weight_map(weights), mb.plots.curves(weights)]
    for chart in charts:
        text, svg = chart.to_json(), svg_text(chart.to_dict(validate=False), paper())
        assert not [bad for bad in ("\\u001b", "\u2028", "\\u2028") if bad in text]
        assert "<script" not in svg
        assert "n" * 61 not in svg
    assert any("alert(1)" in text for text in words(charts[0]))


def test_nothing_to_draw_is_reported(table):
    missing = table({"a": {"x": [None]}, "b": {"x": [None]}})
    even = curves({"a": 0.5, "b": 0.5})
    for draw, frame in ((mb.plots.points, missing), (mb.plots.cost, missing), (mb.plots.weights, even)):
        with pytest.raises(ValueError, match="nothing to draw"):
            draw(frame)


def test_charts_are_saved_as_svg_alone(table, tmp_path):
    chart = mb.plots.forest(mb.leaderboard(table(at(a=0, b=0))))
    assert mb.plots.save(chart, tmp_path / "a.svg").read_text().startswith("<svg")
    with pytest.raises(ValueError, match=r"path: must end in \.svg, not 'a\.png'; `chart\.save` of Altair writes"):
        mb.plots.save(chart, tmp_path / "a.png")


def test_sensitivity_and_regrets_are_drawn():
    rows = [("e", "DARN", "mu", value, 80 - abs(value - 0.1)) for value in (0.001, 0.1, 10.0)]
    points = pd.DataFrame(rows, columns=["experiment", "method", "parameter", "value", "score"])
    assert "DARN" in words(mb.plots.sensitivity(points))
    values = {"mean": [70.0, 71.0], "regret": [1.0, 0.0], "regret_standard_error": [0.1, 0.0], "rank_correlation": 0.5}
    place = {"experiment": "e", "method": "all methods", "target": "average", "criterion": ["risk", "oracle"]}
    texts = words(mb.plots.regrets(pd.DataFrame(place | values)))
    assert {"risk", "oracle"} & set(texts) == {"risk"}


def test_too_few_datasets_for_a_difference_in_ranks_are_named():
    few = "over 6 datasets no difference can be significant after Holm's correction for 3 comparisons of methods; "
    few += "that takes 7"
    for gains, is_few in (((20, 30, 10, 40, -50, 60), True), ((20, 30, 10, 40, 50, 60, 70), False)):
        assert (few in words(mb.plots.critical_difference(frame_of(*gaining(*gains))))) == is_few
    with pytest.raises(ValueError, match="nothing to draw"):
        mb.plots.critical_difference(frame_of(*gaining(20)))


def test_charts_can_be_changed_and_joined_by_altair(table):
    chart = mb.plots.points(table(at(SRC=0, DARN=1)))
    wide = chart.properties(title="wide", width=500)
    assert (wide.to_dict()["title"], wide.to_dict()["width"], "title" in chart.to_dict()) == ("wide", 500, False)
    assert {"SRC", "DARN", "wide"} <= set(words(chart & wide))
    assert [part["name"] for part in chart.interactive().to_dict()["params"]][:1] == ["shown"]
