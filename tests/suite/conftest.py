"""A valid suite, and toys among the installed components."""

import re
from pathlib import Path

import pytest

from msda_bench import __version__
from msda_bench.api import Aggregator, Dataset, InputSpec, Task, component
from msda_bench.errors import SuiteError
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite

HERE = f"msda-bench {__version__}"
GOOD = Path(__file__).with_name("good.yaml").read_text()
SIZES = Path(__file__).with_name("sizes.yaml").read_text()


def toy(base, name, **members):
    """A component without parameters of its own."""
    return component(type(name, (base,), {"name": name, "__doc__": "A toy.", "__module__": __name__, **members}))


def points(name, among, **members):
    """A dataset with these domains."""
    members = {"domains": tuple(among.split()), "load": raises(NotImplementedError()), **members}
    return toy(Dataset, name, task=Task("classification", 2), input=InputSpec((2,)), **members)


def raises(error):
    def method(*_):
        raise error

    return method


@component
class Picky(Aggregator):
    """A component with a required parameter and a check that may raise anything."""

    name = "picky"
    size: int | None

    def __call__(self, risks, gaps, mu, state):
        raise NotImplementedError

    def __post_init__(self):
        if self.size == 13:
            raise RuntimeError("bad\nluck")


TOYS = (
    points("lonely", "only"),
    points("bare", ""),
    points("faulty", "", domains=property(raises(KeyError("no\ndomains")))),
    Picky,
)


@pytest.fixture(scope="session")
def registry():
    """What is installed, and toys."""
    return Registry([*discover().entries, *(Entry(cls.kind, cls, "toys", "1.0") for cls in TOYS)])


@pytest.fixture
def replaced(registry):
    """A registry with other members of one component."""

    def replaced(kind, of, /, **members):
        # A class of its own: Python remembers of a class that it has what a protocol asks for.
        other = toy(registry.entry(kind, of).cls, **{"name": of, **members})
        rest = [entry for entry in registry.entries if (entry.kind, entry.name) != (kind, of)]
        return Registry([*rest, Entry(kind, other, "toys", "1.0")])

    return replaced


@pytest.fixture(scope="session")
def good():
    return GOOD


@pytest.fixture
def load(tmp_path, registry):
    """Loads a text as tmp_path/s.yaml."""

    def load(text, components=registry):
        path = tmp_path / "s.yaml"
        path.write_text(text, newline="")
        return load_suite(path, components)

    return load


@pytest.fixture
def expanded(load, registry):
    """The expansion of a text."""

    def expanded(text, components=registry):
        return expand(load(text, components), components)

    return expanded


@pytest.fixture
def mistakes(load):
    """The lines reported about a text, each without the folder and `s.yaml:`.

    Lines of this file, where the toys are, have no number.
    """

    def mistakes(*text):
        with pytest.raises(SuiteError) as caught:
            load(*text)
        reported = [line.rpartition("s.yaml:")[2] if ":" in line else line for line in caught.value.lines]
        return [re.sub(r"conftest\.py:[0-9]+", "conftest.py:N", line) for line in reported]

    return mistakes
