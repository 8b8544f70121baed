"""From a suite to its tables and cells, beyond what suites with recorded results show (test_load.py)."""

import json
from pathlib import Path

import pytest

from msda_bench.errors import PluginError, SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.plan_file import parse_plan, plan_to_json
from msda_bench.suite.run_spec import canonical_json
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
    {
        "amazon: {}": ["source_accuracy"],
        "sine: {}": ["source_risk"],
        "amazon: {train: all, target_train: 9}": [],
        "pacs: {train: all, target_train: 9}": [],
        "amazon: {train: {books: all, default: 9}, target_train: 9}": [],
        "amazon: {train: 0.5}": ["source_accuracy"],
        "music: {train: 0.5}": [],
        "music: {train: 0.8, test: 0.2}": [],
        "music: {train: 0.5, test: 0.2}": ["source_accuracy"],
    }.items(),
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
    rates, few = [place / 100 for place in range(1, 61)], [1, 2, 3, 4]
    space = f"{{training.optimizer.adadelta.lr: {rates}, training.warmup: {rates[:50]}, training.epochs: {few}}}"
    with pytest.raises(SuiteError, match="that of SRC has 12000 points, more than 10000"):
        expanded(f"{good}select: {{how: shared, budget: 8, by: source_accuracy, space: {space}}}\n")


def test_random_candidates_differ_and_a_smaller_budget_has_the_first_of_a_larger_ones(expanded, good):
    select = Path(__file__).with_name("select.yaml").read_text()
    good = good.replace("  SRC:", "  chance: {scheme: chance, reference: true}\n  SRC:")  # takes no steps
    drawn = {}
    for budget in (2, 5, 6, 12):
        (table,) = expanded(good + select.replace("budget: 4", f"budget: {budget}")).plan.experiments
        drawn[budget] = {method.name: method.search.candidates for method in table.methods}
        candidates = drawn[budget]["DARN"]
        assert len(candidates) == len({*map(canonical_json, candidates)}) == min(budget, 6)
    for name in ("DANN", "MDMN", "DARN"):
        assert drawn[2][name] == drawn[5][name][:2]
    assert len({canonical_json(drawn[5][name]) for name in ("DANN", "MDMN", "DARN")}) == 3
    grid = [(lr, mu) for lr in (0.3, 1.0) for mu in (0.001, 0.01, 0.1)]
    assert [tuple(settings.values()) for settings in drawn[6]["DARN"]] == grid
    assert drawn[6] == drawn[12]
    assert drawn[2]["chance"] == ({},)
