"""From `select` and `search` in a suite to candidates, their draws and their cells."""

from pathlib import Path

import pytest

from msda_bench.errors import SuiteError
from msda_bench.suite.search import draws, grid, grid_size

SELECT = Path(__file__).with_name("select.yaml").read_text(encoding="utf-8")
GRID = SELECT.replace("random", "grid").replace("[0.001, 0.01, 0.1]", "[0.01, 0.1]")
LR, GAMMA = "training.optimizer.adadelta.lr", "aggregator.sharpmax.gamma"
ORACLE = "by oracle, the score on the target's own test labels, which are not available in practice"


@pytest.fixture
def searching(good):
    """A suite in which one method searches a parameter of its own."""
    return good.replace("DARN: {", f"DARN: {{search: {{{GAMMA}: [0.1, 0.9]}}, ") + SELECT


def test_every_candidate_is_a_cell_of_its_own_settings(expanded, searching):
    expansion = expanded(searching)
    (table,) = expansion.plan.experiments
    tried = {method.name: method.search.candidates for method in table.methods}
    paths = {name: set(candidates[0]) for name, candidates in tried.items()}
    assert paths == {"SRC": {LR}, "TAR": {LR}, "DANN": {LR, "mu"}, "MDMN": {LR, "mu"}, "DARN": {LR, "mu", GAMMA}}
    assert tried["SRC"] == ({LR: 0.3}, {LR: 1.0})
    mine = [cell for cell in expansion.plan.cells if (cell.method, cell.target, cell.seed) == ("DARN", "dvd", 1)]
    assert [cell.candidate for cell in mine] == [0, 1, 2, 3]
    for planned, wanted in zip(mine, tried["DARN"], strict=True):
        cell = expansion.cells[planned.key]
        assert (cell.target, cell.seed, cell.mu) == ("dvd", 1, wanted["mu"])
        assert cell.training.identity()["optimizer_params"] == {"lr": wanted[LR], "rho": 0.9, "eps": 1e-6}
        assert cell.aggregator.params == {"gamma": wanted[GAMMA]}


def test_keys_depend_on_the_settings_and_not_on_the_search(expanded, good):
    assert set(expanded(good).cells) <= set(expanded(good + GRID).cells)  # lr 1.0 and mu 0.01 are in the grid
    first, other = (
        expanded(good + SELECT.replace("by: source_accuracy", f"by: {by}")) for by in ("source_accuracy", "oracle")
    )
    assert list(other.cells) == list(first.cells)
    assert other.plan != first.plan


def test_rows_and_notes_name_the_selection_criterion(expanded, good, searching):
    (table,) = expanded(searching).plan.experiments
    assert {method.name: method.recipe for method in table.methods} == {
        "SRC": "pooled, best of 2 (lr) by source_accuracy",
        "TAR": "target_only, best of 2 (lr) by oracle",
        "DANN": "pooled + d_A, mu *, best of 4 (lr, mu) by source_accuracy",
        "MDMN": "mdmn, mu *, best of 4 (lr, mu) by source_accuracy",
        "DARN": "adapt + d_A + sharpmax(gamma=*), mu *, best of 4 (lr, mu, gamma) by source_accuracy",
    }
    among = "for each target and seed, among 4 candidates"
    assert table.notes[3:] == (
        f"Settings selected by source_accuracy, without target labels, {among} drawn at random.",
        "Fewer candidates than 4, since the search space has no more: SRC 2, TAR 2.",
        f"Trained with the target's labels, and so selected {ORACLE}: TAR.",
    )
    (table,) = expanded(good + GRID.replace("by: source_accuracy", "by: oracle")).plan.experiments
    assert table.notes[3] == f"Settings selected {ORACLE}, {among} of a grid."
    assert all(method.recipe.endswith("by oracle") for method in table.methods)


DROPOUT = "backbone.mlp.dropout"
SHARED = f"""select:
  how: shared
  budget: 8
  by: source_accuracy
  space: {{{LR}: [0.3, 1.0, 3.0], {DROPOUT}: [0.2, 0.5]}}
"""


def test_a_shared_grid_has_at_most_ten_thousand_points(expanded, good):
    many = SHARED.replace("[0.2, 0.5]", str([place / 10_000 for place in range(4000)]))
    with pytest.raises(SuiteError, match="that of SRC has 12000 points, more than 10000"):
        expanded(good + many)


def test_a_grid_has_every_combination_with_the_last_varying_fastest():
    space = {"a": (1, 2), "b": (5, 6)}
    assert grid_size(space) == 4
    assert grid(space) == [{"a": 1, "b": 5}, {"a": 1, "b": 6}, {"a": 2, "b": 5}, {"a": 2, "b": 6}]
    assert grid({}) == [{}]


SPACE = {"lr": (0.1, 0.3, 1.0), "mu": tuple(range(50))}


def test_draws_depend_on_suite_method_and_path_alone():
    pinned = [{"lr": 0.3, "mu": 5}, {"lr": 0.1, "mu": 43}, {"lr": 1.0, "mu": 44}]
    twenty = draws(SPACE, 20, ("suite", "DARN"))
    assert draws(SPACE, 3, ("suite", "DARN")) == twenty[:3] == pinned
    assert all(drawn not in twenty[:index] for index, drawn in enumerate(twenty))
    assert len(twenty) == 20
    assert twenty[:6] not in [draws(SPACE, 6, owner) for owner in (("suite", "MDAN"), ("other", "DARN"))]
    alone = draws({"mu": SPACE["mu"]}, 3, ("suite", "DARN"))
    assert [drawn["mu"] for drawn in alone] == [drawn["mu"] for drawn in twenty[:3]]
    two = draws({"x": SPACE["mu"], "y": SPACE["mu"]}, 4, ("suite", "DARN"))
    assert [drawn["x"] for drawn in two] != [drawn["y"] for drawn in two]


@pytest.mark.parametrize("budget", [1, 5, 6, 12])
def test_a_small_space_is_exhausted_without_repeats(budget):
    space = {"a": (1, 2, 3), "b": ("x", "y")}
    drawn = draws(space, budget, ("suite", "m"))
    assert len(drawn) == min(budget, 6)
    assert all(candidate in grid(space) and candidate not in drawn[:index] for index, candidate in enumerate(drawn))
    assert budget < 6 or drawn == grid(space)
