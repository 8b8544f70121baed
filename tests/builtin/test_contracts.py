"""Every built-in component keeps its contract, with defaults and other parameters, and the pages name it."""

import re

import pytest
import yaml

from msda_bench.functional import MISSING_TEXTS
from msda_bench.plugins import discover
from msda_bench.testing import checks, contract
from msda_bench_builtin.aggregators import Sharpmax
from msda_bench_builtin.backbones import ConvNet1d, Mlp
from msda_bench_builtin.datasets import Amazon, Digits, Stress
from msda_bench_builtin.schemes import Regularised, Wjdot
from tests.reader import text_of

OURS = {(entry.kind, entry.name): entry for entry in discover().entries if entry.distribution == "msda-bench"}
# `estimator` needs a file: schemes/test_own.py.
COMPONENTS = [entry.create({}) for entry in OURS.values() if entry.name != "estimator"]
COMPONENTS += [
    Sharpmax(gamma=0.3, scale="code"),
    Mlp(hidden=()),
    ConvNet1d(norm="batch", stride=3, kernel=4, bottleneck=5),
    *(ConvNet1d(norm=norm) for norm in ("domain", "layer")),
    *(Regularised(by="bnm"), Regularised(by="entropy"), Wjdot(plan="entropic")),
    Digits(copies="reduced", domains=("mnist_m", "svhn"), train=0.1),
    Digits(domains=("synth_fonts", "mnist_m_made"), train=20, test=10, made_train=30, made_test=20),
    Amazon(train={"books": 100, "default": "all"}, target_train=0.5),
    Stress(protocol="transductive", train="all"),
]


@pytest.mark.parametrize(
    ("component", "check"),
    [
        pytest.param(component, check, id=f"{component.kind}-{component.name}-{number}-{check}")
        for number, component in enumerate(COMPONENTS)
        for check in checks(component)
    ],
)
def test_component_keeps_its_contract(component, check):
    getattr(contract(component), check)()


METHODS, DATASETS = (text_of(f"docs/{page}.md") for page in ("methods", "datasets"))
KIND = {"discrepancy": "Discrepancies", "aggregator": "Aggregators", "scheme": "Schemes", "validator": "Validators"}


@pytest.mark.parametrize("kind", KIND)
def test_every_method_part_and_validator_has_a_row(kind):
    section = METHODS.split(f"\n## {KIND[kind]}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    assert sorted(rows) == sorted(name for other, name in OURS if other == kind)


def test_defaults_are_the_documented_ones():
    """Defaults decide the numbers of every suite that does not name them, so a change must be one of the page too."""
    row = re.compile(r"^\| (\w+) \| `(\w+)` \| `(.*)` \|$", flags=re.MULTILINE)
    written = {(kind, name): yaml.safe_load(f"{{{text}}}") for kind, name, text in row.findall(METHODS + DATASETS)}
    every, images = (yaml.safe_load(f"{{{text}}}") for text in re.findall(r"`(\w+: .*)`[,.]", DATASETS)[-2:])
    for (kind, name), entry in OURS.items():
        if name == "estimator":
            continue
        params = entry.create({}).params()
        assert set(params.pop("missing", MISSING_TEXTS)) == set(MISSING_TEXTS), "the page on own data names them"
        if name == "torchvision":
            params["weights"] = params["weights"]["name"]
        shared = every | (images if "side" in params else {}) if kind == "dataset" else {}
        assert params == shared | written.pop((kind, name), {}), name
    assert not written
