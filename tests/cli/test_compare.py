"""What `compare` alone does; the rest is in test_leaderboard.py, for both."""

from __future__ import annotations

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell


def test_each_comparison_has_its_line(tmp_path, capsys):
    names, seeds = ("SRC", "DARN", "TAR"), tuple(range(10))
    methods = tuple(Method(name, name == "TAR", "", ()) for name in names)
    experiment = Experiment("toy", "toy", "classification", ("x", "y"), methods, seeds)
    store = Store.create(tmp_path / "results")
    cells = []
    for index, name in enumerate(names):
        for place, target in enumerate(experiment.targets):
            for seed in seeds:
                key = f"{index}{place}{seed:02d}" * 16
                cells.append(PlannedCell("toy", name, target, seed, key))
                store.publish(Record(key, {}, "ok", Outcome(100, n_correct=60 + seed + index * (1 + seed))))
    store.write_plan(Plan("suite", (experiment,), tuple(cells)))
    assert main(["compare", str(store.folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [line.split() for line in lines if line.startswith("DARN > SRC")]
    over_seeds = ["+5.50", "3.00", "..", "8.00", "0.0020", "0.0020*", "10/0/0", "10/10"]
    assert [words[3:] for words in found] == [over_seeds] * 3
    assert "fewer than 6 are never significant, and are not shown." in " ".join(" ".join(lines).split())
    assert not [line for line in lines if "TAR" in line]
