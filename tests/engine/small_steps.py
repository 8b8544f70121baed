"""A small cell of every method of the field."""

from dataclasses import replace
from pathlib import Path

from benchmarks.synthetic import AmazonLike, DigitsLike
from msda_bench.suite.cell import Ref
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.protocol import Protocol
from tests.engine.conftest import ref

FIELD = Path(__file__).parents[2] / "suites" / "field.yaml"
BESIDE = {
    "size": ("DARN", "aggregator", {}),
    "wadn": ("DARN", "aggregator", {}),
    "spectral_l2": ("DARN", "discrepancy", {"iterations": 5}),
    "aad": ("SHOT", "scheme", {}),
    "joint": ("TAR", "scheme", {}),
    "adabn": ("MFSAN", "scheme", {}),
    "pass_through": ("MFSAN", "scheme", {}),
}
"""What the field's suite leaves out, in place of a part of one of its methods."""
SHORTER = {"repeats": 1, "critic_steps": 1, "iterations": 1}
"""Fewer repetitions, to save time."""
NETWORKS = {
    "vectors": ("mlp", {"hidden": [8], "dropout": 0.5}),
    "images": ("convnet", {"channels": [4], "hidden": []}),
}


def field_cells(registry):
    """A cell of each method of the field, and of what its suite leaves out, by name."""
    found = expand(load_suite(FIELD, registry), registry)
    cells = {planned.method: found.cells[planned.key] for planned in reversed(found.plan.cells)}
    for name, (method, kind, params) in BESIDE.items():
        cells[f"{method}-{name}"] = replace(cells[method], **{kind: ref(kind, name, params)})
    return dict(sorted(cells.items()))


def small(cell, inputs, **options):
    """The cell on a few made examples with a small network, and shorter; with options of the protocol."""
    made = AmazonLike(train=40, examples=60) if inputs == "vectors" else DigitsLike(train=40, examples=60)
    *sources, target = made.domains
    return replace(
        cell,
        dataset=Ref("dataset", made.name, made.version, "benchmarks", made.params()),
        fingerprint="none",
        sources=tuple(sources),
        target=target,
        backbone=ref("backbone", *NETWORKS[inputs]),
        scheme=_shorter(cell.scheme),
        discrepancy=_shorter(cell.discrepancy),
        training=Protocol.model_validate(dict(cell.training) | {"epochs": 1, "batch": 8} | options),
    )


def _shorter(part):
    return part and replace(part, params={name: SHORTER.get(name, value) for name, value in part.params.items()})
