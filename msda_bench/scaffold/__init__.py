"""Writes complete distributions as starting points for plugin authors: names, templates filled in, files."""

from __future__ import annotations

import keyword
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from msda_bench.errors import BenchError

_PLACES: dict[str, str] = {
    "common/pyproject.toml.tmpl": "pyproject.toml",
    "common/README.md.tmpl": "README.md",
    "common/tox.ini.tmpl": "tox.ini",
    "common/test_contract.py.tmpl": "tests/test_contract.py",
    "common/test_suite.py.tmpl": "tests/test_suite.py",
    "$template/module.py.tmpl": "src/$module.py",
    "$template/suite.yaml.tmpl": "suite.yaml",
}
_RANKED: dict[str, str] = {"$kind/ranked.yaml.tmpl": "ranked.yaml"}
"""An extra file for the parts of a method; other kinds belong to a protocol, which a reference has fixed."""
RANKING = "msda-bench run poisoned/fonts-poisoned --methods {} --against reference"
"""The command that ranks a new method, by the path of its file."""
_LISTED = """
    assert all(" ".join(DISTRIBUTION) in row["distributions"] for row in rows)"""
_WORDS: Mapping[str, tuple[str, str]] = {
    # kind: (method of the suite that uses the component or $class_name, one-line description)
    "aggregator": ("$class_name", "Weights each source by the inverse of its bound term"),
    "backbone": ("DARN", "A network of one hidden layer"),
    "dataset": ("DARN", "Three shifted synthetic domains with two classes"),
    "discrepancy": ("$class_name", "The squared distance between the mean features"),
    "fitted": ("$class_name", "A linear model on standardised columns, fitted to all sources as one"),
    "metric": ("DARN", "The share of the predictions that are nearly right"),
    "scheme": ("$class_name", "Adds the variance of the sources' risks to the objective"),
    "validator": ("DARN", "Scores a model by the distance between mean outputs on the target and the sources"),
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Names:
    """The names in a new distribution.

    Attributes:
        kind: one of the seven kinds of component.
        component: the component's name in suites, such as inverse_risk.
        class_name: the component's class, such as InverseRisk.
        distribution: the distribution and its folder, such as msda-bench-inverse-risk.
        suite: the small suite in the distribution, such as inverse-risk.
        fitted: whether a scheme is an estimator, fitted at once.
    """

    kind: str
    component: str
    class_name: str
    distribution: str
    suite: str
    fitted: bool = False

    @classmethod
    def of(cls, kind: str, component: str, suite: str | None = None, *, fitted: bool = False) -> Names:
        """Derives all names from a component's; the suite's is the component's with hyphens if none is given.

        Raises:
            BenchError: the name is not valid for a component, a module and a class, or what is fitted is no scheme.
        """
        if fitted and kind != "scheme":
            raise BenchError(f"--fitted is of a scheme, not of a {kind}; remove it")
        if not _NAME.fullmatch(component):
            raise BenchError(
                f"{component!r} cannot name both a component and a module; use at most 40 letters, digits and '_', "
                "with a letter first"
            )
        words = [word for word in _HUMP.sub("_", component).split("_") if word]
        class_name = "".join(word[0].upper() + word[1:] for word in words)
        taken = next((word for word in (component, class_name) if keyword.iskeyword(word)), None)
        if taken:
            raise BenchError(f"{component!r} cannot be used because {taken} is a Python keyword; choose another name")
        suite = suite or "-".join(words).lower()
        return cls(kind, component, class_name, f"msda-bench-{suite}", suite, fitted)

    @property
    def is_ranked(self) -> bool:
        """Whether it is part of a method, which can be ranked among recorded ones."""
        return self.kind in {"aggregator", "discrepancy", "scheme"} and not self.fitted

    @property
    def module(self) -> str:
        """The name of the module, such as msda_bench_inverse_risk."""
        return self.distribution.replace("-", "_")


def render(names: Names) -> dict[str, str]:
    """The text of each file of the distribution by its path in the folder, with forward slashes."""
    words = _words(names)
    places = _PLACES | _RANKED if names.is_ranked else _PLACES
    folder = files("msda_bench.scaffold") / "templates"
    texts = {}
    for template, place in places.items():
        text = folder.joinpath(Template(template).substitute(words)).read_text(encoding="utf-8")
        texts[Template(place).substitute(words)] = Template(text).substitute(words)
    return texts


def write(names: Names, parent: Path) -> Path:
    """Writes the distribution to a new folder below `parent`, named after the distribution.

    Returns:
        The folder.

    Raises:
        BenchError: the folder exists already, or cannot be written.
    """
    folder = parent / names.distribution
    if os.path.lexists(folder):
        raise BenchError(f"{folder} already exists; remove it, or choose another place with --out")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=parent, ignore_cleanup_errors=True) as made:
            for place, text in render(names).items():
                path = Path(made, folder.name, place)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            Path(made, folder.name).rename(folder)
    except OSError as error:
        raise BenchError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return folder


def _words(names: Names) -> dict[str, str]:
    template = "fitted" if names.fitted else names.kind
    method, what = _WORDS[template]
    words = {
        **vars(names),
        "module": names.module,
        "entry": names.suite.replace("-", "_"),
        "template": template,
        "needs": ', "scikit-learn>=1.6"' if names.fitted else "",
        "Kind": "Predictor" if names.fitted else names.kind.capitalize(),
        "a_kind": f"{'an' if names.kind == 'aggregator' else 'a'} {names.kind}",
        "what": what,
        # The leaderboard lists the distributions of a method's own parts; records list all distributions.
        "listed": _LISTED if method == "$class_name" else "",
        "ranks": "",
        "ranked": "",
    }
    if names.is_ranked:
        words["ranks"] = f"| `{RANKING.format('ranked.yaml')}` | ranks its method among recorded ones |\n"
        words["ranked"] = "| `ranked.yaml` | its method, for a recorded protocol |\n"
    return words | {"method": Template(method).substitute(words)}
