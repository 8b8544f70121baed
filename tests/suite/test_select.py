"""The part of a plan that `--only` names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.errors import BenchError
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from msda_bench.suite.select import select_cells


def table(name, targets, methods):
    rows = tuple(Method(method, reference=False, recipe="", distributions=()) for method in methods)
    return Experiment(name, "toy", "classification", targets, rows, tuple(range(12)))


NAMES = ("Boston, MA", "A|B = C", "St. John's (NB)", "x,seed=0", '"q"')
TABLES = (table("small", ("books", *NAMES), ("SRC", "DARN")), table("large", ("mnist",), ("DARN", "MDAN")))
CELLS = tuple(
    PlannedCell(table.name, method.name, target, seed, "")
    for table in TABLES
    for method in table.methods
    for target in table.targets
    for seed in table.seeds
)
PLAN = Plan("toy", TABLES, CELLS)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("method=DARN|MDAN", lambda cell: cell.method in {"DARN", "MDAN"}),
        ("method=DARN,method=MDAN", lambda cell: cell.method in {"DARN", "MDAN"}),
        ("method=DARN,target=books", lambda cell: (cell.method, cell.target) == ("DARN", "books")),
        ("experiment=large", lambda cell: cell.experiment == "large"),
        ("seed=1-4", lambda cell: 1 <= cell.seed <= 4),
        ("seed=0-1|10|007", lambda cell: cell.seed in {0, 1, 10, 7}),
        ("seed=5-99", lambda cell: cell.seed >= 5),
        (" method = DARN | SRC , seed = 0 ", lambda cell: cell.method in {"DARN", "SRC"} and cell.seed == 0),
        ("target=Boston, MA,method=SRC", lambda cell: (cell.target, cell.method) == ("Boston, MA", "SRC")),
        ("method=SRC,target=mnist|Boston, MA", lambda cell: (cell.target, cell.method) == ("Boston, MA", "SRC")),
        ("target='Boston, MA'|books", lambda cell: cell.target in {"Boston, MA", "books"}),
        ('target = "A|B = C" , seed=1', lambda cell: (cell.target, cell.seed) == ("A|B = C", 1)),
        ("target=St. John's (NB)|'St. John's (NB)'", lambda cell: cell.target == "St. John's (NB)"),
        ("target='x,seed=0'", lambda cell: cell.target == "x,seed=0"),
        ("target='\"q\"'", lambda cell: cell.target == '"q"'),
    ],
)
def test_a_selection_chooses_the_named_runs(text, chosen):
    assert select_cells(PLAN, text) == tuple(filter(chosen, CELLS))


QUOTES = "; join alternatives with |, and put a name with a comma or | in quotes"
SEEDS = "(known: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["'' is not key=value; join alternatives with |"]),
        ("seed=0,1", ["'1' is not key=value (did you mean 'seed=1'?); join alternatives with |"]),
        ("DARN", ["'DARN' is not key=value (did you mean 'method=DARN'?); join alternatives with |"]),
        ("seeds:1", ["'seeds:1' is not key=value (did you mean 'seed=1'?); join alternatives with |"]),
        ("metod=DARN", ["unknown key 'metod' (did you mean 'method'?)"]),
        ("gpu=1", ["unknown key 'gpu' (known: experiment, method, target, seed)"]),
        ("method=A|", ["method has an empty value"]),
        ("seed=x", ["seed must be a number or a span such as 0-4, not 'x'"]),
        ("seed=4-0", ["seed must be a number or a span such as 0-4, not '4-0' (did you mean 'seed=0-4'?)"]),
        ("seed=-1", ["seed must be a number or a span such as 0-4, not '-1' (did you mean 'seed=1'?)"]),
        ("seed=٣", ["seed must be a number or a span such as 0-4, not '٣'"]),
        ("method=SRC,target=mnist", ["no cell of suite toy meets all conditions"]),
        ("experiment=x", [": no experiment 'x' in this suite (known: small, large)"]),
        ("seed=50-60|99", [f": no seed '{seed}' in this suite {SEEDS}" for seed in ("50-60", "99")]),
        ("target=books|B = C", [f": no target 'B = C' in this suite (did you mean 'A|B = C'?){QUOTES}"]),
        ("target=books,mnist", [f": no target 'books,mnist' in this suite (did you mean 'mnist'?){QUOTES}"]),
        (
            "method=DARNN|SRC,target=bookz",
            [
                ": no method 'DARNN' in this suite (did you mean 'DARN'?)",
                ": no target 'bookz' in this suite (did you mean 'books'?)" + QUOTES,
            ],
        ),
    ],
)
def test_invalid_selections_are_refused(text, lines):
    with pytest.raises(BenchError) as caught:
        select_cells(PLAN, text)
    assert [*caught.value.lines] == [
        f"selection{line}" if line.startswith(": ") else f"selection {text!r}: {line}" for line in lines
    ]


@settings(max_examples=40)
@given(st.text(alphabet="method=seed,|-0123456789 DARN"))
def test_any_text_is_read_or_refused(text):
    try:
        cells = select_cells(PLAN, text)
    except BenchError:
        return
    assert 1 <= len(cells) <= len(CELLS)
