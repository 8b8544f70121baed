"""How near a step comes to what the machine can do."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import markdown, ms
from benchmarks.results import ENGINE, REFERENCE, SHAPES, Results
from benchmarks.roofline import Demand, dense_amazon, digits, sparse_amazon


def roofline(results: Results) -> str:
    """The peaks in words, and a row for each step that was measured; nothing without the peaks."""
    arithmetic, memory = (results.seconds("peak", name) for name in ("arithmetic", "memory"))
    if arithmetic is None or memory is None:
        return ""
    clock = "CPU" if results.clock == "cpu" else "wall"
    text = (
        f"{'One core' if results.device == 'cpu' else 'The GPU'} reached {1e-9 / arithmetic:.0f} GFLOP/s in a large "
        f"float32 product and {1e-9 / memory:.1f} GB/s in a copy beyond the caches."
    )
    if results.occurrence is not None:
        text += (
            f" An Amazon-shaped step keeps {results.occurrence.stored:.0f} values after dropout, of "
            f"{results.occurrence.words:.0f} different words."
        )
    head = ("", "MFLOP", "MB", "arithmetic ms", "memory ms", f"measured {clock} ms")
    rows = [
        _row(f"{SHAPES[work]}, {who}", demand, arithmetic, memory, seconds)
        for work, who, demand in _demands(results)
        if (seconds := results.seconds(work, who))
    ]
    return f"{text}\n\n{markdown((*head, 'larger / measured', 'sum / measured'), rows)}" if rows else text


def _demands(results: Results) -> Iterator[tuple[str, str, Demand]]:
    if results.device != "cpu":  # there the engine's bags of words are dense
        yield "amazon", ENGINE, dense_amazon()
    elif results.occurrence is not None:
        yield "amazon", ENGINE, sparse_amazon(results.occurrence)
    yield "amazon", REFERENCE, dense_amazon()
    yield "digits", ENGINE, digits()
    yield "digits", REFERENCE, digits()


def _row(name: str, demand: Demand, arithmetic: float, memory: float, seconds: float) -> list[str]:
    floors = demand.operations * arithmetic, demand.traffic * memory
    fractions = (f"{bound / seconds:.0%}" for bound in (max(floors), sum(floors)))
    counts = (f"{count / 1e6:.0f}" for count in demand)
    return [name, *counts, *map(ms, floors), ms(seconds), *fractions]
