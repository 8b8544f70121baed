"""From a suite to its tables and cells, beyond what suites with recorded results show (test_load.py)."""

import pytest

from msda_bench.errors import PluginError, SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.expand import PROTOCOLS
from msda_bench.suite.protocol import Splitting
from msda_bench.suite.search import draws, grid
from tests.suite.conftest import SIZES

DARN, MDMN = "DARN: {discrepancy", "MDMN: {scheme"
SPLIT, LABELS = "split_sources: {clusters: 4}\n", "labelled_target: 50\n"
TARGETS = "targets: [books, dvd]\n"


def cells_of(expansion):
    """One cell of each method."""
    return {planned.method: expansion.cells[planned.key] for planned in expansion.plan.cells}


def test_only_requested_sources_are_used_in_the_datasets_order(expanded, good):
    cells = expanded(good.replace(TARGETS, "targets: [dvd, books]\nsources: [kitchen, dvd, books]\n")).cells.values()
    assert {cell.target: cell.sources for cell in cells} == {"dvd": ("books", "kitchen"), "books": ("dvd", "kitchen")}


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (0, 1, 2)), ("[7, 3]", (7, 3)), ("2-4", (2, 3, 4)), ("'5-5'", (5,)), ("[2147483647]", (2147483647,))],
)
def test_seeds_may_be_a_number_a_list_or_a_span(load, good, text, seeds):
    assert load(good.replace("seeds: 2", f"seeds: {text}")).experiments[0].file.seeds == seeds


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
        ("amazon: {train: all, protocol: transductive}", []),
        ("amazon: {train: 0.5}", ["source_accuracy"]),
        ("music: {train: 0.5}", []),
        ("music: {train: 0.8, test: 0.2}", []),
        ("music: {train: 0.5, test: 0.2}", ["source_accuracy"]),
    ],
)
def test_a_suite_that_names_no_validator_has_that_of_the_task_if_something_is_held_out(expanded, dataset, names):
    expansion = expanded(SIZES.replace("DATASET", dataset))
    assert {tuple(ref.name for ref in cell.validators) for cell in expansion.cells.values()} == {tuple(names)}
    transductive = "protocol: transductive" in dataset
    assert (PROTOCOLS["transductive"] in expansion.plan.experiments[0].notes) == transductive


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


@pytest.mark.parametrize(
    "case",
    [
        ("{}", "adapt"),
        ("{discrepancy: d_A, mu: 0.0}", "adapt + d_A, mu 0"),
        ("{aggregator: {picky: {size: null}}}", "adapt + picky(size=null)"),
        ("{scheme: mdmn, mu: 0.01}", "mdmn, mu 0.01, sources in 4 clusters", SPLIT),
        (
            "{scheme: mdmn, mu: 0.01}",
            "mdmn, mu 0.01, sources in 3 parts by chance, 50 target labels",
            "split_sources: {clusters: 3, by: chance}\nlabelled_target: 50\n",
        ),
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
