"""Loading a suite refuses schemes that cannot train as requested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from msda_bench.api import Batch, Discrepancy, Group, Parts, Phase, Scheme, Step, component
from msda_bench.errors import SuiteError
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.load import Suite, load_suite
from msda_bench.testing import toy
from msda_bench.testing.toy import Blobs, OneLayer
from msda_bench.testing.trial import trained

SUITE = """\
schema: 1
name: leaning
dataset: toy_blobs
seeds: 1
backbone: toy_one_layer
training: {epochs: 1, batch: 4, optimizer: sgd}
methods:
  SRC: {scheme: pooled}
  OURS: METHOD
"""


@component
class Leaning(Scheme):
    """Classifies the target, even if the discrepancy ignores it."""

    name = "leaning"

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        seen = parts.forward(batch)
        confident = parts.predictor(seen.target).square().mean()  # type: ignore[arg-type]
        gaps = parts.critic(seen.source, seen.target)
        objective, weights, state = parts.aggregate(seen.risks, gaps, state)
        return Step(objective + confident, seen.risks, gaps, weights, state)


@component
class LeaningOpenly(Leaning):
    """Declares `needs_target`."""

    name = "leaning_openly"
    needs_target = True


@component
class Refusing(Leaning):
    """Never draws the target, but passes it to the discrepancy."""

    name = "refusing"
    needs_target = False


@component
class Unbuildable(Leaning):
    """A scheme whose critic cannot be built."""

    name = "unbuildable"

    def build(self, network: Any, k: int, discrepancy: Discrepancy | None) -> Any:
        raise KeyError("width")


@component
class Leaving(Leaning):
    """Raises what no `except Exception` catches."""

    name = "leaving"

    def build(self, network: Any, k: int, discrepancy: Discrepancy | None) -> Any:
        raise GeneratorExit


@component
class Uneven(LeaningOpenly):
    """A group of one source, and one of all."""

    name = "uneven"

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        return (sources[:1], sources)


def load(folder: Path, method: str, epoch: str = "equal") -> Suite:
    path = folder / "suite.yaml"
    path.write_text(SUITE.replace("METHOD", method).replace("training: {", f"training: {{epoch: {epoch}, "))
    classes: tuple[type[Any], ...] = (Blobs, OneLayer, Leaning, LeaningOpenly, Refusing, Unbuildable, Leaving, Uneven)
    strangers = [Entry(cls.kind, cls, "stranger", "1") for cls in classes]
    return load_suite(path, Registry([*discover().entries, *strangers]))


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("{scheme: leaning}", "9:18: methods.OURS.scheme: scheme 'leaning' needs the target"),
        ("{scheme: leaning, discrepancy: none}", ": TypeError: linear()"),
        ("{scheme: refusing, discrepancy: mmd, mu: 1}", "let the scheme set needs_target = True"),
        (
            "{scheme: unbuildable, discrepancy: mmd, mu: 1}",
            "cannot be built for toy_blobs: tests/suite/test_check_schemes.py:",
        ),
        ("{scheme: leaving, discrepancy: mmd, mu: 1}", "GeneratorExit: no message"),
        ("{scheme: uneven}", "scheme 'uneven': its groups hold 1 and 2 domains; add epoch: scheme to training"),
        ("{scheme: alternate, discrepancy: mmd, mu: 1}", "9:18: methods.OURS.scheme: scheme 'alternate' trains"),
    ],
)
def test_impossible_combinations_are_refused_at_their_place(tmp_path: Path, method: str, said: str) -> None:
    with pytest.raises(SuiteError) as refused:
        load(tmp_path, method)
    (line,) = refused.value.lines
    assert said in line


@pytest.mark.parametrize(
    "method",
    [
        "{scheme: leaning, discrepancy: mmd, mu: 1}",
        "{scheme: leaning_openly}",
        "{scheme: leaning_openly, discrepancy: d_A, mu: 1}",
        "{scheme: cdan}",
        "{scheme: adapt}",
        "{scheme: alternate, discrepancy: wasserstein, mu: 1}",
    ],
)
def test_valid_combinations_are_accepted(tmp_path: Path, method: str) -> None:
    assert load(tmp_path, method).name == "leaning"


def test_a_scheme_with_needs_target_gets_the_target_with_any_discrepancy() -> None:
    assert trained(LeaningOpenly(), toy.Blind(), toy.Mean(), 0.1, Blobs())[0].status == "ok"


def test_uneven_groups_are_for_the_schemes_own_rule(tmp_path: Path) -> None:
    assert load(tmp_path, "{scheme: uneven}", "scheme").experiments
