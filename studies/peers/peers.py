"""Runs what other packages offer for several sources on two real tasks, and changes one thing at a time.

`python studies/peers/peers.py` writes peers.csv beside it: a line for each step, task and probe. It needs the packages
of requirements.txt and the files of the four datasets. Each step runs in a process of its own, for three minutes at
most. `python studies/peers/peers.py PACKAGE ...` runs these packages anew and keeps the other lines.
"""

from __future__ import annotations

import io
import multiprocessing
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context, get_config
from sklearn.naive_bayes import GaussianNB

from msda_bench.api import Array, Dataset
from msda_bench.data import LocalFiles
from msda_bench_builtin import datasets as built_in

MEASURED = Path(__file__).parent / "peers.csv"
SECONDS = 180
TARGET = 4


@dataclass(frozen=True)
class Problem:
    """Labelled rows of three sources and unlabelled ones of a target.

    Attributes:
        x: (n, d) float64, all rows, the target's last.
        y: (n,) classes; the target's are only compared with predictions.
        domain: (n,) 1, 2, 3 for sources, 4 for the target.
    """

    x: Array
    y: Array
    domain: Array

    @property
    def is_target(self) -> Array:
        """(n,) bool."""
        return self.domain == TARGET


Step = Callable[[Problem], Array]
"""Fits to a problem and predicts the classes of its target's rows, in their order."""
Problems = Mapping[str, Callable[[], Problem]]


def load(data: Dataset, sources: tuple[str, ...], target: str) -> Problem:
    """All rows of these domains."""
    files = LocalFiles(dataset=data.name)
    parts = [data.load(name, files) for name in (*sources, target)]
    return Problem(
        x=np.concatenate([part.x for part in parts]).astype(np.float64),
        y=np.concatenate([part.y for part in parts]).astype(np.int64),
        domain=np.repeat(np.arange(1, 5), [len(part.y) for part in parts]),
    )


TABLES: Problems = {
    "hospitals": lambda: load(built_in.Hospitals(), ("cleveland", "hungary", "switzerland"), "long_beach"),
    "reactor": lambda: load(built_in.Reactor(), ("mode_2", "mode_3", "mode_6"), "mode_5"),
}
SIGNALS: Mapping[str, Dataset] = {"watch": built_in.Watch(form="signals"), "spoken_digits": built_in.SpokenDigits()}


def covariances(name: str) -> Problem:
    """Covariance matrices (n, d, d) of the axes of a window, or of ten bands of a recording.

    Of each class and domain 40 rows at most.
    """
    data = SIGNALS[name]
    problem = load(data, data.domains[:3], data.domains[3])
    kept = np.zeros(len(problem.y), bool)
    for domain in range(1, 5):
        for label in np.unique(problem.y):
            kept[np.flatnonzero((problem.domain == domain) & (problem.y == label))[:40]] = True
    signals = problem.x[kept]
    if name == "spoken_digits":
        signals = signals.reshape(len(signals), 10, 4, 32).mean(axis=2)
    signals = signals - signals.mean(axis=2, keepdims=True)
    matrices = np.einsum("nct,ndt->ncd", signals, signals) / signals.shape[2]
    scale = np.trace(matrices, axis1=1, axis2=2).mean() / matrices.shape[1]
    matrices += 1e-3 * scale * np.eye(matrices.shape[1])
    return Problem(matrices, problem.y[kept], problem.domain[kept])


# --- probes


def in_another_order(problem: Problem) -> Problem:
    """Sources' rows permuted; the target's stay, so that predictions can be compared."""
    source = np.flatnonzero(~problem.is_target)
    order = np.arange(len(problem.y))
    order[source] = np.random.default_rng(1).permutation(source)
    return Problem(problem.x[order], problem.y[order], problem.domain[order])


def numbered_in_reverse(problem: Problem) -> Problem:
    """Sources 1, 2, 3 are called 3, 2, 1."""
    return replace(problem, domain=np.where(problem.is_target, TARGET, TARGET - problem.domain))


def in_another_unit(problem: Problem) -> Problem:
    """All numbers times 0.001."""
    return replace(problem, x=problem.x * 0.001)


def in_single_precision(problem: Problem) -> Problem:
    """Inputs as float32."""
    return replace(problem, x=problem.x.astype(np.float32))


def without_a_class(problem: Problem) -> Problem:
    """The first source has no row of the last class."""
    kept = (problem.domain != 1) | (problem.y != problem.y.max())
    return Problem(problem.x[kept], problem.y[kept], problem.domain[kept])


def with_other_target_labels(problem: Problem) -> Problem:
    """The target's labels are permuted."""
    y = problem.y.copy()
    y[problem.is_target] = np.random.default_rng(2).permutation(y[problem.is_target])
    return replace(problem, y=y)


PROBES = {
    "target labels": with_other_target_labels,
    "again": lambda problem: problem,
    "rows": in_another_order,
    "sources": numbered_in_reverse,
    "unit": in_another_unit,
    "float32": in_single_precision,
    "class missing": without_a_class,
}


# --- skada


def skada_steps() -> dict[str, Step]:
    """Each adapter before naive Bayes, JDOT around it."""
    import skada
    from skada import make_da_pipeline

    steps: dict[str, Step] = {"none": _skada_step(lambda: make_da_pipeline(GaussianNB()))}
    for name in sorted(dir(skada)):
        if name.endswith("Adapter") and name != "BaseAdapter":
            adapter = getattr(skada, name)
            requesting = GaussianNB().set_fit_request(sample_weight="Reweight" in name or "MMDTarS" in name)
            steps[name.removesuffix("Adapter")] = _skada_step(
                lambda adapter=adapter, behind=requesting: make_da_pipeline(adapter(), behind)
            )
    steps["JDOT"] = _skada_step(lambda: skada.JDOTClassifier(GaussianNB().set_fit_request(sample_weight=True)))
    steps["DASVM"] = _skada_step(skada.DASVMClassifier)
    return steps


def _skada_step(make: Callable[[], Any]) -> Step:
    def step(problem: Problem) -> Array:
        y = np.where(problem.is_target, -1, problem.y)
        domain = np.where(problem.is_target, -problem.domain, problem.domain)
        model = make().fit(problem.x, y, sample_domain=domain)
        target = problem.x[problem.is_target]
        predicted: Array = model.predict(target, sample_domain=domain[problem.is_target])
        alone = [
            model.predict(target[[row]], sample_domain=domain[problem.is_target][[row]])[0]
            for row in range(0, len(target), 10)
        ]
        _note("one at a time", np.asarray(alone), predicted[::10])
        return predicted

    return step


# --- POT


def pot_steps() -> dict[str, Step]:
    """Each class of ot.da on the pooled sources, JCPOT on a list of them. Naive Bayes learns from the moved rows."""
    import ot.da

    steps: dict[str, Step] = {}
    for name, cls in vars(ot.da).items():
        if isinstance(cls, type) and issubclass(cls, ot.da.BaseTransport) and cls is not ot.da.BaseTransport:
            steps[name.removesuffix("Transport")] = _pot_step(cls, several=name == "JCPOTTransport")
    return steps


def _pot_step(cls: Callable[[], Any], *, several: bool) -> Step:
    def step(problem: Problem) -> Array:
        source, target = problem.x[~problem.is_target], problem.x[problem.is_target]
        labels = problem.y[~problem.is_target]
        if several:
            groups = [problem.domain == number for number in (1, 2, 3)]
            plan = cls().fit(
                Xs=[problem.x[group] for group in groups], ys=[problem.y[group] for group in groups], Xt=target
            )
            shares = plan.transform_labels(ys=[problem.y[group] for group in groups])
            return np.asarray(shares).argmax(axis=1)
        plan = cls().fit(Xs=source, ys=labels, Xt=target)
        moved = plan.transform(Xs=source)
        if not np.isfinite(moved).all():
            raise ArithmeticError("moved rows are not finite, and nothing was raised")
        predicted = GaussianNB().fit(moved, labels).predict(target)
        apart = plan.transform(Xs=source[:-1])
        other = GaussianNB().fit(apart, labels[:-1]).predict(target)
        _note("without a source row", other, predicted)
        return predicted

    return step


# --- pyRiemann


def riemann_steps() -> dict[str, Step]:
    """Steps of pyRiemann before the nearest mean, as its examples put them together; all get the target's labels."""
    from pyriemann.classification import MDM
    from pyriemann.transfer import MDWM, TLCenter, TLClassifier, TLDummy, TLRotate, TLScale, encode_domains
    from sklearn.pipeline import make_pipeline

    def chained(*makers: Callable[[str], Any], weights: Mapping[str, float] | None) -> Step:
        def step(problem: Problem) -> Array:
            x, y = encode_domains(problem.x, problem.y.astype(str), problem.domain.astype(str))
            last = TLClassifier("4", MDM(), domain_weight=weights)
            model = make_pipeline(*(make("4") for make in makers), last).fit(x, y)
            return model.predict(x[problem.is_target]).astype(np.int64)

        return step

    def weighted(problem: Problem) -> Array:
        x, y = encode_domains(problem.x, problem.y.astype(str), problem.domain.astype(str))
        return MDWM(0.5, "4").fit(x, y).predict(x[problem.is_target]).astype(np.int64)

    sources = {"1": 1.0, "2": 1.0, "3": 1.0, "4": 0.0}
    return {
        "TLDummy": chained(lambda _: TLDummy(), weights=sources),
        "TLCenter": chained(TLCenter, weights=sources),
        "TLCenter, TLScale": chained(TLCenter, lambda name: TLScale(name, centered_data=True), weights=sources),
        "TLCenter, TLScale, TLRotate": chained(
            TLCenter, lambda name: TLScale(name, centered_data=True), TLRotate, weights=sources
        ),
        "TLDummy, no domain_weight": chained(lambda _: TLDummy(), weights=None),
        "MDWM": weighted,
    }


# --- ComBat


def combat_steps() -> dict[str, Step]:
    """Columns as features, domains as batches, no covariates; naive Bayes learns from the harmonised sources."""
    from combat.pycombat import pycombat
    from neuroCombat import neuroCombat

    def by_neuro(problem: Problem) -> Array:
        batches = pd.DataFrame({"batch": problem.domain})
        return np.asarray(neuroCombat(dat=problem.x.T, covars=batches, batch_col="batch")["data"]).T

    def by_py(problem: Problem) -> Array:
        return np.asarray(pycombat(pd.DataFrame(problem.x.T), list(problem.domain))).T

    return {"neuroCombat": _harmonised(by_neuro), "pycombat": _harmonised(by_py)}


def _harmonised(harmonise: Callable[[Problem], Array]) -> Step:
    def step(problem: Problem) -> Array:
        x = harmonise(problem)
        if not np.isfinite(x).all():
            columns = (~np.isfinite(x)).any(axis=0).sum()
            raise ArithmeticError(f"{columns} of {x.shape[1]} columns are not finite, and nothing was raised")
        model = GaussianNB().fit(x[~problem.is_target], problem.y[~problem.is_target])
        return np.asarray(model.predict(x[problem.is_target]))

    return step


PACKAGES: dict[str, tuple[Callable[[], dict[str, Step]], Problems]] = {
    "skada": (skada_steps, TABLES),
    "pot": (pot_steps, TABLES),
    "pyriemann": (riemann_steps, {name: lambda name=name: covariances(name) for name in SIGNALS}),
    "combat": (combat_steps, TABLES),
}


# --- one step on one task

_noted: dict[str, float] = {}


def _note(probe: str, found: Array, expected: Array) -> None:
    _noted.setdefault(probe, 100 * float(np.mean(found != expected)))


def measure(package: str, task: str, name: str) -> Iterator[tuple[str, str]]:
    """Runs a step as it is, and under each probe.

    Yields:
        (probe, what was seen): accuracy on the target in percent for `accuracy`, else predictions that differ in
        percent, the names of what was changed, or the error.
    """
    make, problems = PACKAGES[package]
    step, problem = make()[name], problems[task]()
    kept = [part.copy() for part in (problem.x, problem.y, problem.domain)]
    before = _state()
    first = _outcome(step, problem)
    after = _state()
    if isinstance(first, str):
        yield "accuracy", first
        return
    yield "accuracy", f"{100 * np.mean(first == problem.y[problem.is_target]):.1f}"
    for probe, seen in _noted.items():
        yield probe, f"{seen:.1f}"
    for part, copy in zip((problem.x, problem.y, problem.domain), kept, strict=True):
        if not np.array_equal(part, copy):
            yield "arrays", "changed"
    changed = [name for name in before if before[name] != after[name]]
    yield "state", ", ".join(changed) or "none"
    for probe, change in PROBES.items():
        other = _outcome(step, change(problem))
        yield probe, other if isinstance(other, str) else f"{100 * np.mean(other != first):.1f}"


def _state() -> dict[str, str]:
    return {
        "numpy.random": repr(np.random.get_state()),  # noqa: NPY002 - the global generator is what is watched
        "random": repr(random.getstate()),
        "scikit-learn": repr(get_config()),
        "warnings": repr(warnings.filters),
        "numpy.errstate": repr(np.geterr()),
    }


def _outcome(step: Step, problem: Problem) -> Array | str:
    try:
        return step(problem)
    except Exception as error:  # noqa: BLE001 - whatever another package raises is a result here
        first_line, _, _ = str(error).strip().partition("\n")
        return f"{type(error).__name__}: {first_line[:90]}"


def _worker(package: str, task: str, name: str, results: Any) -> None:
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), config_context():
        warnings.simplefilter("ignore")
        for line in measure(package, task, name):
            results.put(line)


def run(package: str, task: str, name: str) -> list[tuple[str, str]]:
    """`measure` in a process that is ended after three minutes."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=_worker, args=(package, task, name, results))
    process.start()
    process.join(SECONDS)
    late = process.is_alive()
    process.kill()
    found = []
    while not results.empty():
        found.append(results.get())
    if late:
        found.append(("time", f"not done after {SECONDS} s"))
    return found


def main(names: list[str]) -> None:
    """Runs the packages, and writes the table after each step."""
    kept = pd.read_csv(MEASURED, dtype=str) if MEASURED.exists() else pd.DataFrame(columns=["package"])
    lines = [row for row in kept.to_dict("records") if names and row["package"] not in names]
    for package in names or PACKAGES:
        make, problems = PACKAGES[package]
        for name in make():
            for task in problems:
                for probe, seen in run(package, task, name):
                    print(package, name, task, probe, seen, sep=" | ", flush=True)
                    lines.append({"package": package, "step": name, "task": task, "probe": probe, "seen": seen})
                pd.DataFrame(lines).to_csv(MEASURED, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
