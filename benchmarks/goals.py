"""What was to be reached on a CPU, and what was."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.many_runs import LARGE
from benchmarks.markdown import markdown, ms
from benchmarks.results import AS_SCRIPT, ENGINE, REFERENCE, TWO_ENGINES, TWO_REFERENCES, Results

LARGEST = "k = 4096, batch 4096"


def goals(results: Results) -> str:
    """A table of the goals for which all was measured; nothing on a GPU."""
    rows = [(goal, found) for goal, reached in GOALS.items() if results.device == "cpu" and (found := reached(results))]
    return markdown(("goal", "reached"), rows, texts=2) if rows else ""


def _amazon(results: Results) -> str:
    ratio = _ratio(results, "amazon", REFERENCE, ENGINE)
    return f"{_verdict(ratio >= 8)}: {ratio:.2f} times, by CPU time" if ratio else ""


def _both_cores(results: Results) -> str:
    row, ratios = results.get("two cores, amazon", TWO_ENGINES), _beside_two_references(results, "amazon")
    cores = row.cost.cpu / row.cost.wall if row else 0
    return ratios and f"{_verdict(cores >= 1.8)}: {cores:.2f} of them; {ratios}"


def _digits(results: Results) -> str:
    ratio, ratios = _wall(results, "digits", AS_SCRIPT), _beside_two_references(results, "digits")
    return ratios and f"{_verdict(ratio >= 1.5)}: {ratios}"


def _beside_two_references(results: Results, work: str) -> str:
    script, twice = (_wall(results, work, way) for way in (AS_SCRIPT, TWO_REFERENCES))
    if not (script and twice):
        return ""
    return f"{script:.2f} times one process of the reference with two threads, {twice:.2f} times two with one thread"


def _sharpmax(results: Results) -> str:
    names = ("bisection", "sort", "softmax")
    bisection, sort, softmax = (
        _ratio(results, "sharpmax", f"{name}: {LARGEST}", f"sharpmax: {LARGEST}") for name in names
    )
    if not (bisection and sort and softmax):
        return ""
    good = bisection > 1 and sort > 1 and 1 / softmax <= 10
    return (
        f"{_verdict(good)}: bisection takes {bisection:.2f} times as long, the sort {sort:.2f} times, and it takes "
        f"{1 / softmax:.0f} times as long as softmax"
    )


def _overhead(results: Results) -> str:
    rows = results.tables.get("overhead", {}).values()
    cpu, wall = (sum(getattr(row.cost, clock) for row in rows) for clock in ("cpu", "wall"))
    return f"{_verdict(wall < 5e-3)}: {ms(cpu)} ms of CPU time, {ms(wall)} ms of wall time" if rows else ""


def _folder(results: Results) -> str:
    rows = {name: row for name, row in results.tables.get("folder", {}).items() if not name.startswith(str(LARGE))}
    if not rows:
        return ""
    slowest, largest = max(row.cost.wall for row in rows.values()), max(results.folders[name] for name in rows)
    return f"{_verdict(slowest < 10 and largest < 5e8)}: at most {slowest:.1f} s of wall time, {largest / 1e6:.0f} MB"


def _large_folder(results: Results) -> str:
    row = results.get("folder", name := f"{LARGE}: leaderboard")
    if row is None:
        return ""
    wall, peak = row.cost.wall, results.folders[name]
    return f"{_verdict(wall < 60 and peak < 2e9)}: {wall:.0f} s of wall time, {peak / 1e6:.0f} MB"


GOALS: dict[str, Callable[[Results], str]] = {
    "Amazon, DARN: at least 8 times the reference's run-steps per second and core": _amazon,
    "Amazon, DARN, two cores: both used": _both_cores,
    "digits, DARN, two cores: 1.5 times the reference": _digits,
    "sharpmax, k = 4096, batch 4096: faster than bisection and than a sort, at most 10 times softmax": _sharpmax,
    "suite, plan, store and report: under 5 ms a cell": _overhead,
    "20,000 records compared, or rendered: within 10 s and 500 MB": _folder,
    "200,000 records compared: within 60 s and 2 GB": _large_folder,
}


def _wall(results: Results, work: str, way: str) -> float:
    """How many times faster than that way the engine's two workers are; 0 if not measured."""
    slow, fast = (results.get(f"two cores, {work}", row) for row in (way, TWO_ENGINES))
    return slow.cost.wall / fast.cost.wall if slow and fast else 0


def _ratio(results: Results, table: str, slow: str, fast: str) -> float:
    """Of two rows' times; 0 if one was not measured."""
    above, below = (results.seconds(table, row) for row in (slow, fast))
    return above / below if above and below else 0


def _verdict(good: bool) -> str:  # noqa: FBT001
    return "yes" if good else "no"
