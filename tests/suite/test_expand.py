"""From a suite to its tables and cells, beyond what suites with recorded results show (test_load.py)."""

import json
from pathlib import Path

import pytest

from msda_bench.errors import PluginError, SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.plan import parse_plan, plan_to_json
from msda_bench.suite.search import draws, grid
from tests.suite.conftest import HERE, SIZES


def test_a_suite_of_every_option_plans_the_golden_tables_and_cells(registry, golden):
    suite = load_suite(Path(__file__).with_name("every.yaml"), registry)
    plan = expand(suite, registry).plan
    plain = plan_to_json(plan)
    assert suite.fetch
    assert parse_plan(json.dumps(plain).encode()) == plan
    lines = map(canonical_json, (*plain["experiments"], *plain["cells"]))
    golden("every.jsonl", "".join(f"{line}\n" for line in lines).replace(HERE, "msda-bench"))


def test_a_default_validator_that_is_not_installed_is_refused(expanded, registry, good):
    fewer = Registry([entry for entry in registry.entries if entry.name != "source_accuracy"])
    with pytest.raises(PluginError, match=r"^unknown validator 'source_accuracy'"):
        expanded(good.replace("validators: [source_accuracy]\n", ""), fewer)


@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        ("amazon: {}", ["source_accuracy"]),
        ("sine: {}", ["source_risk"]),
        ("amazon: {train: all, target_train: 9}", []),
        ("pacs: {train: all, target_train: 9}", []),
        ("amazon: {train: {books: all, default: 9}, target_train: 9}", []),
        ("amazon: {train: 0.5}", ["source_accuracy"]),
        ("music: {train: 0.5}", []),
        ("music: {train: 0.8, test: 0.2}", []),
        ("music: {train: 0.5, test: 0.2}", ["source_accuracy"]),
    ],
)
def test_a_suite_that_names_no_validator_has_that_of_the_task_if_something_is_held_out(expanded, dataset, names):
    cells = expanded(SIZES.replace("DATASET", dataset)).cells.values()
    assert {tuple(ref.name for ref in cell.validators) for cell in cells} == {tuple(names)}


def test_a_suite_with_too_many_cells_is_refused(expanded, good):
    text = good.replace("seeds: 2", "seeds: 10000").replace("[books, dvd]", "[books]")
    more = "".join(f"  m{index}: {{}}\n" for index in range(6))
    with pytest.raises(SuiteError, match=r"^suite good asks for 110000 runs; at most 100000, so split it$"):
        expanded(text.replace("  SRC:", f"{more}  SRC:"))


def test_a_shared_grid_has_at_most_ten_thousand_points(expanded, good):
    rates = [place / 10_000 for place in range(4000)]
    space = f"{{training.optimizer.adadelta.lr: [0.3, 1.0, 3.0], backbone.mlp.dropout: {rates}}}"
    with pytest.raises(SuiteError, match="that of SRC has 12000 points, more than 10000"):
        expanded(f"{good}select: {{how: shared, budget: 8, by: source_accuracy, space: {space}}}\n")


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
