"""The page on datasets says of the two tasks of practice what the records say."""

import re

import msda_bench as mb
from tests.reader import ROOT, table, text_of

PAGE = text_of("docs/datasets.md")
SECTION = PAGE.split("`msda-bench run practice`")[1].split("\n## ")[0]
RECORDED = ROOT / "results" / "practice"


def test_means_and_gains_of_practice_are_those_of_the_records():
    board = mb.leaderboard(RECORDED)
    board = board[board["target"] == "average"].set_index(["experiment", "method"])
    assert board["n_ok"].eq(10).all()
    head, *rows = table(SECTION, "| SRC |")
    assert [name for name, *_ in rows] == list(board.index.unique("experiment"))
    for name, *cells in rows:
        form = ".3f" if name.endswith("concentration") else ".1f"
        for method, cell in zip(head[1:], cells, strict=True):
            recorded = (name, method) in board.index
            assert cell == (format(board.loc[(name, method), "mean"], form) if recorded else ""), (name, method)
    sentence = SECTION.split("\n\n")[-1]
    gains = [
        "{:+.1f} [{:+.1f}, {:+.1f}]".format(*board.loc[key, ["gain", "gain_low", "gain_high"]])
        for key in [("crises", "AdaBN"), ("crises", "MCC"), ("crises", "DARN"), ("gas-drift", "MCC")]
    ]
    assert re.findall(r"[-+][\d.]+ \[[-+\d., ]+\]", sentence) == gains
    assert (
        board.loc["gas-drift"].query("~reference.astype('bool')")["gain"].max()
        == board.loc[("gas-drift", "MCC"), "gain"]
    )
