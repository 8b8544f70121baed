"""Checks that no method sees labels of the test, that labels exist where they are needed, and of shares of classes."""

from __future__ import annotations

from collections.abc import Mapping

from msda_bench.component.dataset import shifted_domain
from msda_bench.component.sizes import beside_all, is_transductive
from msda_bench.suite.issues import Issues, ValidationIssue, shown_value
from msda_bench.suite.plan import ORACLE
from msda_bench.suite.resolved import ResolvedExperiment


def check_labels(experiment: ResolvedExperiment) -> Issues:
    """The mistakes in how an experiment uses labels."""
    yield from _label_firewall(experiment)
    yield from _no_labels(experiment)
    yield from _ranked_labels(experiment)
    yield from _classes(experiment)


def _label_firewall(experiment: ResolvedExperiment) -> Issues:
    """Sizes that contradict the transductive protocol, and test labels that a method would see in it."""
    for key, what in beside_all(experiment.data):
        yield ValidationIssue(("dataset", experiment.data.name, key), what)
    if is_transductive(experiment.data):
        what = "sees labels of the target, which in `protocol: transductive` are those of the test; remove it"
        yield from _of_label_users(experiment, what)


def _of_label_users(experiment: ResolvedExperiment, what: str) -> Issues:
    """A mistake at each place that lets a method see labels of the target."""
    if experiment.file.labelled_target:
        yield ValidationIssue(("labelled_target",), what, "key")
    for name, method in experiment.methods.items():
        if method.labelled_target:
            yield ValidationIssue(("methods", name, "labelled_target"), what, "key")
        if method.scheme.component.needs_target_labels:
            yield ValidationIssue(("methods", name, "scheme"), f"{method.scheme.name} {what}")


def _no_labels(experiment: ResolvedExperiment) -> Issues:
    """The parts of an experiment that need labels of a target without any."""
    data, select = experiment.data, experiment.file.select
    lacking = [target for target in experiment.targets if target in data.unlabelled_domains]
    if not lacking:
        return
    first = shown_value(lacking[0])
    if len(lacking) < len(experiment.targets):
        why = f"{first} has no labels to be tested on, so no average can; give it a suite of its own"
        yield ValidationIssue(("targets",), f"{why}, and name the others here")
    what = f"needs labels of target {first}, which has none; remove it, or name other targets"
    yield from _of_label_users(experiment, what)
    if shifted_domain(data, lacking[0]) in data.unlabelled_domains:
        yield ValidationIssue(("dataset", data.name, "label_shift", "domain"), what)
    if select is not None and ORACLE in select.criteria:
        yield ValidationIssue(("select", "by" if select.by == ORACLE else "tracks"), f"oracle {what}")


def _ranked_labels(experiment: ResolvedExperiment) -> Issues:
    """Methods that are ranked together must see equally many target labels."""
    counts = {}
    for name, method in experiment.methods.items():
        if not method.reference:
            counts[name] = experiment.labelled_target(method)
    for name, count in counts.items():
        others = ", ".join(map(str, sorted(set(counts.values()) - {count})))
        if others and count != experiment.file.labelled_target:
            what = f"is {count}, but methods ranked with it see {others} target labels; add reference: true"
            yield ValidationIssue(("methods", name, "labelled_target"), what)


def _classes(experiment: ResolvedExperiment) -> Issues:
    """Shares of classes, and their correction, in a regression; shares of another number of classes."""
    data, task = experiment.data, experiment.task
    wanted, loc = data.label_shift, ("dataset", data.name, "label_shift")
    if isinstance(wanted, Mapping):
        count = len(wanted.get("shares", ()))
        if not task.has_classes:
            yield ValidationIssue(loc, "shifts classes; the task is regression", "key")
        elif count not in {0, task.classes}:
            what = f"has {count} numbers; {data.name} has {task.classes} classes"
            yield ValidationIssue((*loc, "shares"), what)
    if task.has_classes:
        return
    for name, method in experiment.methods.items():
        if method.prior_correction is not None:
            what = "corrects shares of classes; the task is regression"
            yield ValidationIssue(("methods", name, "prior_correction"), what, "key")
