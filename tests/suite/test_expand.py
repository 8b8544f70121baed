"""From a suite to its tables and cells: targets, sources, options, recipes, notes, and candidates of a search."""

from pathlib import Path

import pytest

from msda_bench.errors import PluginError, SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.expand import EQUAL_STEPS, PROTOCOLS
from msda_bench.suite.plan import Experiment, Method, plan_to_json
from msda_bench.suite.protocol import Splitting
from msda_bench.suite.search import draws, grid
from tests.suite.conftest import HERE, SIZES

DARN, MDMN = "DARN: {discrepancy", "MDMN: {scheme"
SPLIT, LABELS = "split_sources: {clusters: 4}\n", "labelled_target: 50\n"
TARGETS = "targets: [books, dvd]\n"


def cells_of(expansion):
    """One cell of each method."""
    return {planned.method: expansion.cells[planned.key] for planned in expansion.plan.cells}


def test_tables_and_cells_are_in_order(expanded, good):
    expansion = expanded(good)
    recipes = {
        "SRC": "pooled",
        "TAR": "target_only",
        "DANN": "pooled + d_A, mu 0.01",
        "MDMN": "mdmn, mu 0.01",
        "DARN": "adapt + d_A + sharpmax(gamma=0.9), mu 0.01",
    }
    assert expansion.plan.experiments == (
        Experiment(
            name="good",
            dataset="amazon",
            task="classification",
            targets=("books", "dvd"),
            methods=tuple(Method(name, name == "TAR", recipe, (HERE,)) for name, recipe in recipes.items()),
            seeds=(0, 1),
            alpha=0.05,
            notes=("Two seeds only.", EQUAL_STEPS, PROTOCOLS["held_out"]),
            baseline="SRC",
        ),
    )
    expected = [(method, target, seed) for method in recipes for target in ("books", "dvd") for seed in (0, 1)]
    assert [(cell.method, cell.target, cell.seed) for cell in expansion.plan.cells] == expected
    assert list(expansion.cells) == [cell.key for cell in expansion.plan.cells]
    assert all(cell.key == key for key, cell in expansion.cells.items())


def test_only_requested_sources_are_used_in_the_datasets_order(expanded, good):
    cells = expanded(good.replace(TARGETS, "targets: [dvd, books]\nsources: [kitchen, dvd, books]\n")).cells.values()
    assert {cell.target: cell.sources for cell in cells} == {"dvd": ("books", "kitchen"), "books": ("dvd", "kitchen")}


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (0, 1, 2)), ("[7, 3]", (7, 3)), ("2-4", (2, 3, 4)), ("'5-5'", (5,)), ("[2147483647]", (2147483647,))],
)
def test_seeds_may_be_a_number_a_list_or_a_span(load, good, text, seeds):
    assert load(good.replace("seeds: 2", f"seeds: {text}")).experiments[0].file.seeds == seeds


@pytest.mark.parametrize(("dataset", "validator"), [("amazon", "source_accuracy"), ("sine", "source_risk")])
def test_the_default_validator_and_targets_are_those_of_the_task(expanded, good, dataset, validator):
    text = good.replace("{amazon: {train: 2000}}", dataset).replace("validators: [source_accuracy]\n", "")
    expansion = expanded(text.replace(TARGETS, ""))
    assert all([ref.name for ref in cell.validators] == [validator] for cell in expansion.cells.values())
    assert len(expansion.plan.experiments[0].targets) == 4


def test_a_default_validator_that_is_not_installed_is_refused(expanded, registry, good):
    fewer = Registry([entry for entry in registry.entries if entry.name != "source_accuracy"])
    with pytest.raises(PluginError, match=r"^unknown validator 'source_accuracy'"):
        expanded(good.replace("validators: [source_accuracy]\n", ""), fewer)


@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        ("amazon: {train: all, target_train: 9}", []),
        ("pacs: {train: all, target_train: 9}", []),
        ("amazon: {train: {books: all, default: 9}, target_train: 9}", []),
        ("amazon: {train: 0.5}", ["source_accuracy"]),
        ("music: {train: 0.5}", []),
        ("music: {train: 0.8, test: 0.2}", []),
        ("music: {train: 0.5, test: 0.2}", ["source_accuracy"]),
    ],
)
def test_a_suite_that_names_no_validator_has_none_if_nothing_is_held_out(expanded, dataset, names):
    (cell, *_) = expanded(SIZES.replace("DATASET", dataset)).cells.values()
    assert [validator.name for validator in cell.validators] == names


@pytest.mark.parametrize(
    ("dataset", "notes"),
    [
        ("amazon: {train: all, target_train: 0.5, test: 0.25}", [PROTOCOLS["held_out"]]),
        ("amazon: {train: {books: 2000, dvd: all, default: 0.5}, target_train: 9}", [PROTOCOLS["held_out"]]),
        ("amazon: {train: all, protocol: transductive}", [PROTOCOLS["transductive"]]),
        (
            "amazon: {corrupt: {source: dvd, labels: shuffle}}",
            [PROTOCOLS["held_out"], "The labels of source dvd are shuffled (`corrupt`)."],
        ),
    ],
)
def test_a_table_has_notes_on_its_protocol_and_on_shuffled_labels(expanded, dataset, notes):
    (table,) = expanded(SIZES.replace("DATASET", dataset)).plan.experiments
    assert table.notes[1:] == tuple(notes)
    assert table.corrupted == ("dvd" if len(notes) == 2 else None)


def test_a_suite_with_too_many_cells_is_refused(expanded, good):
    text = good.replace("seeds: 2", "seeds: 10000").replace("[books, dvd]", "[books]")
    more = "".join(f"  m{index}: {{}}\n" for index in range(6))
    with pytest.raises(SuiteError, match=r"^suite good asks for 110000 cells; at most 100000, so split it$"):
        expanded(text.replace("  SRC:", f"{more}  SRC:"))


@pytest.mark.parametrize(
    ("old", "new", "baseline"),
    [
        ("", "", "SRC"),
        ("  SRC: {scheme: pooled}\n", "", None),
        ("  SRC: {scheme: pooled}\n", "  SRC: {scheme: pooled}\n  SRC2: {scheme: pooled}\n", None),
        ("SRC: {scheme: pooled}", "SRC: {scheme: pooled, reference: true}", None),
        ("alpha: 0.05}", "baseline: DANN}", "DANN"),
    ],
)
def test_the_only_method_that_pools_without_adaptation_is_the_baseline(expanded, good, old, new, baseline):
    (table,) = expanded(good.replace(old, new)).plan.experiments
    assert table.baseline == baseline


def test_what_comparisons_are_to_show_reaches_the_plan_and_changes_no_key(expanded, good):
    texts = good, good.replace("alpha: 0.05}", "margin: 1, primary: [DARN], headroom: TAR}")
    plain, named = (expanded(text).plan for text in texts)
    (table,) = named.experiments
    assert (table.margin, table.primary, table.headroom) == (1.0, ("DARN",), "TAR")
    assert named.cells == plain.cells
    assert not {"margin", "primary", "headroom"} & {*plan_to_json(plain)["experiments"][0]}


@pytest.mark.parametrize(
    "case",
    [
        ("{}", "adapt"),
        ("{discrepancy: d_A, mu: 0.0}", "adapt + d_A, mu 0"),
        ("{discrepancy: {d_A: {sign: code}}, mu: 1}", "adapt + d_A(sign=code), mu 1"),
        ("{aggregator: {sharpmax: {gamma: 1}}, discrepancy: d_A, mu: 0.5}", "adapt + d_A + sharpmax, mu 0.5"),
        ("{aggregator: {picky: {size: null}}}", "adapt + picky(size=null)"),
        ("{scheme: mdmn, mu: 0.01}", "mdmn, mu 0.01, sources in 4 clusters", SPLIT),
        (
            "{scheme: mdmn, mu: 0.01}",
            "mdmn, mu 0.01, sources in 3 parts by chance, 50 target labels",
            "split_sources: {clusters: 3, by: chance}\nlabelled_target: 50\n",
        ),
        ("{scheme: pooled, optimizer: {adam: {lr: 0.0002}}}", "pooled, adam(lr=0.0002)"),
        (
            "{scheme: pooled, training: {optimizer: sgd, schedule: {polynomial: {b: 0.5}}, lr_factors: {critic: 2}}}",
            "pooled, sgd, schedule polynomial(b=0.5), lr_factors(critic=2)",
        ),
        (
            "{scheme: pooled, training: {stages: {all: {lr_factors: {features: 0.1}, warmup: 3}}}}",
            "pooled, all afresh: warmup 3 lr_factors(features=0.1)",
        ),
        (
            "{scheme: pooled, training: {warmup: 0.05, clip: null, lr_factors: {}, average: {ema: 0.9}}}",
            "pooled, warmup 0.05, clip none, lr_factors none, average(ema=0.9)",
        ),
    ],
)
def test_a_recipe_names_what_differs_from_the_default(expanded, good, case):
    method, recipe, *options = case
    (table,) = expanded(good.replace("SRC: {scheme: pooled}", f"SRC: {method}") + "".join(options)).plan.experiments
    assert table.methods[0].recipe == recipe


def test_a_recipe_names_updates_per_step(expanded):
    method = "{scheme: {mcd: {repeats: 1}}, optimizer: adam}"
    text = SIZES.replace("{DATASET}", "fonts").replace("{scheme: pooled}", method)
    (row, *_) = expanded(text).plan.experiments[0].methods
    assert row.recipe == "mcd(repeats=1), adam, 3 updates a step"


def test_sources_are_split_only_for_methods_that_separate_them(expanded, good):
    cells, whole = cells_of(expanded(good + SPLIT)), cells_of(expanded(good))
    assert {name for name, cell in cells.items() if cell.split_sources} == {"MDMN", "DARN"}
    assert cells["DARN"].split_sources == Splitting(clusters=4)
    assert {name for name in cells if cells[name].key == whole[name].key} == {"SRC", "DANN", "TAR"}
    unsplit = cells_of(expanded(f"{good}split_sources: {{clusters: 1}}\nlabelled_target: 0\n"))
    assert {name: cell.key for name, cell in unsplit.items()} == {name: cell.key for name, cell in whole.items()}


def test_a_methods_option_overrides_its_suites(expanded, good):
    text = good.replace(DARN, "Fine: {split_sources: {clusters: 8, by: chance}}\n  " + DARN)
    cells = cells_of(expanded(text.replace(MDMN, "MDMN: {split_sources: {clusters: 1}, scheme") + SPLIT))
    splits = {name: cells[name].split_sources for name in ("Fine", "MDMN", "DARN")}
    assert splits == {"Fine": Splitting(clusters=8, by="chance"), "MDMN": None, "DARN": Splitting(clusters=4)}


def test_all_methods_but_the_oracle_get_target_labels_and_report_them(expanded, good):
    expansion = expanded(good + LABELS)
    labels = {name: cell.labelled_target for name, cell in cells_of(expansion).items()}
    assert labels == {"SRC": 50, "TAR": 0, "DANN": 50, "MDMN": 50, "DARN": 50}
    (table,) = expansion.plan.experiments
    assert table.notes[-1] == "Trained with 50 labelled examples of the target: SRC, DANN, MDMN, DARN."
    expansion = expanded(good.replace(DARN, "More: {labelled_target: 9, reference: true}\n  " + DARN))
    cells = cells_of(expansion)
    assert (cells["More"].labelled_target, cells["DARN"].labelled_target) == (9, 0)
    assert expansion.plan.experiments[0].notes[-1] == "Trained with 9 labelled examples of the target: More."


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
