"""Third-party distributions: working ones are discovered, broken ones named, and none harms another."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.errors import PluginError
from msda_bench.plugins import Registry, discover

GOOD = '''
    from msda_bench.api import Validator, component, hookimpl

    @component
    class Good(Validator):
        """Always one."""
        name = "NAME"

        def score(self, view):
            return 1.0

    @hookimpl
    def msda_validators():
        return [Good]
'''
HEAD = "from msda_bench.api import Aggregator, Validator, component, hookimpl\n"
HOOK = "@hookimpl\ndef msda_validators():\n    return "


def good(name: str = "good") -> str:
    return GOOD.replace("NAME", name)


@pytest.fixture
def discovered(site: Path) -> Callable[..., Registry]:
    """The registry of the distributions in the test's folder only."""

    def run(*, reverse: bool = False) -> Registry:
        distributions = importlib.metadata.distributions(path=[str(site)])
        points = [point for dist in distributions for point in dist.entry_points]
        return discover(points[::-1] if reverse else points)

    return run


def test_component_records_its_distribution(install, discovered):
    install("kind-stranger", good(), version="2.5")
    entry = discovered().entry("validator", "good")
    assert (entry.distribution, entry.origin) == ("kind-stranger", "kind-stranger 2.5")
    assert entry.create({}).score(None) == 1.0
    assert not discovered().broken


BASE = "class V(Validator):\n    name = 'v'\n"
CLIMBS = BASE.replace("'v'", "'../v'")
RAISING = "class Meta(type(Validator)):\n    @property\n    def name(cls):\n        return 1 / 0\n"
SCORE = "    def score(self, view): ...\n"
BROKEN = {
    "raises at import": ("raise OSError('no licence\\nfound')", ": broken_stranger.py:1: OSError: no licence found"),
    "exits at import": ("raise SystemExit('bye')", ": broken_stranger.py:1: SystemExit: bye"),
    "asks for an absent module": ("import not_there", ".py:1: ModuleNotFoundError: No module named 'not_there'"),
    "is no Python": ("def", "SyntaxError: invalid syntax"),
    "implements no hook": ("x = 1", "(broken_stranger): implements no hook; mark a function such as msda_aggregators"),
    "forgets the mark": ("def msda_validators():\n    return []", "implements no hook; mark a function such as "),
    "misspells a hook": (HEAD + HOOK.replace("validators", "validator") + "[]", "unknown hook 'msda_validator'"),
    "hook takes an argument": (HEAD + HOOK.replace("()", "(x)") + "[]", "msda_validators"),
    "hook raises": (HEAD + HOOK + "1 / 0", "hook msda_validators: broken_stranger.py:4: ZeroDivisionError"),
    "hook exits": (HEAD + HOOK + "exit(3)", "hook msda_validators: broken_stranger.py:4: SystemExit: 3"),
    "hook returns no list": (HEAD + HOOK + "7", "hook msda_validators returned a int; return a list of classes"),
    "hook returns nothing": (HEAD + HOOK + "None", "hook msda_validators returned None; return a list of classes"),
    "hook returns a class": (HEAD + HOOK + "Validator", "returned the class Validator; return a list: [Validator]"),
    "hook returns a mapping": (HEAD + HOOK + "{'v': Validator}", "returned a dict; return a list of classes"),
    "hook returns a string": (HEAD + HOOK + "['Good']", "Good is not a subclass of msda_bench.api.Validator"),
    "hook returns another kind": (
        f"{HEAD}@component\nclass A(Aggregator):\n    name = 'a'\n{HOOK}[A]",
        "A is not a subclass of msda_bench.api.Validator",
    ),
    "attribute raises": (
        f"{HEAD}{RAISING}class V(Validator, metaclass=Meta):\n{SCORE}{HOOK}[V]",
        "V cannot be inspected: broken_stranger.py:5: ZeroDivisionError",
    ),
    "class is not decorated": (HEAD + BASE + SCORE + HOOK + "[V]", "V is not decorated with @component"),
    "class inherits the decoration": (
        f"{HEAD}@component\n{BASE}{SCORE}class W(V):\n    name = 'w'\n{HOOK}[W]",
        "W is not decorated with @component",
    ),
    "class lacks a method": (f"{HEAD}@component\n{BASE}{HOOK}[V]", "V does not define score"),
    "method has another signature": (
        f"{HEAD}@component\n{BASE}    def score(self):\n        return 0.0\n{HOOK}[V]",
        "V has a `score` that cannot be called with (view)",
    ),
    "class has no name": (
        f"{HEAD}@component\nclass V(Validator):\n{SCORE}{HOOK}[V]",
        "V needs a `name` of letters, digits, '_', '.' and '-', at most 64, not None",
    ),
    "name climbs": (f"{HEAD}@component\n{CLIMBS}{SCORE}{HOOK}[V]", "not '../v'"),
    "version is no number": (
        f"{HEAD}@component\n{BASE}    version = '1'\n{SCORE}{HOOK}[V]",
        "V needs a whole `version` of at least 1, not '1'",
    ),
    "version is 0": (f"{HEAD}@component\n{BASE}    version = 0\n{SCORE}{HOOK}[V]", "at least 1, not 0"),
}


@pytest.mark.parametrize(("code", "reason"), BROKEN.values(), ids=BROKEN)
def test_broken_plugin_is_named_and_does_not_affect_others(install, discovered, code, reason):
    install("broken-stranger", code, version="0.3")
    install("kind-stranger", good())
    registry = discovered()
    (broken,) = registry.broken
    assert broken.line.startswith("broken-stranger 0.3: ")
    assert reason in broken.line
    assert "\n" not in broken.line
    assert registry.names("validator") == ["good"]


def test_valid_classes_of_a_partly_broken_plugin_are_usable(install, discovered):
    install("half", good().replace("[Good]", "[Good, int]"))
    registry = discovered()
    assert registry.names("validator") == ["good"]
    assert "int is not a subclass" in registry.broken[0].line


def test_interruption_by_the_user_is_not_blamed_on_the_plugin(install, discovered):
    install("slow-stranger", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        discovered()


def test_an_unknown_name_gets_a_suggestion_and_the_broken_plugin(install, discovered):
    install("broken-stranger", "raise OSError('no licence')", version="0.3")
    install("kind-stranger", good("softmin"))
    with pytest.raises(PluginError) as raised:
        discovered().entry("validator", "softmiin")
    (line,) = raised.value.lines
    assert line.startswith("unknown validator 'softmiin' (did you mean 'softmin'?); a plugin could not be used: ")
    assert line.endswith("point 'plugin' (broken_stranger): broken_stranger.py:1: OSError: no licence")
    with pytest.raises(PluginError, match=r"^unknown scheme 'softmin' \(known: none\)"):
        discovered().entry("scheme", "softmin")


def test_a_name_of_two_distributions_is_a_conflict_in_one_kind_only(install, discovered):
    install("two", good("twin"), version="2.0b1")
    install("one", good("twin"), version="1.0")
    install("three", good("single"))
    aggregator = good("twin").replace("Validator", "Aggregator").replace("validators", "aggregators")
    install("four", aggregator.replace("score(self, view)", "__call__(self, risks, gaps, mu, state)"))
    registry = discovered()
    claim = "validator 'twin' is claimed by one 1.0 and two 2.0b1; uninstall one of them"
    assert registry.problems == discovered(reverse=True).problems == [claim]
    with pytest.raises(PluginError, match=claim):
        registry.entry("validator", "twin")
    assert registry.entry("validator", "single").distribution == "three"
    assert registry.entry("aggregator", "twin").distribution == "four"


def test_one_class_by_two_entry_points_of_a_distribution_is_one_component(install, discovered, site):
    install("twice", good("twin"))
    points = site / "twice-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"{points.read_text()}again = twice\n")
    registry = discovered()
    assert (registry.problems, registry.entry("validator", "twin").distribution) == ([], "twice")
    assert len(registry.entries) == 1
    install("both", good("same").replace("[Good]", "[Good, component(type('More', (Good,), {}))]"))
    (claim,) = discovered().problems
    assert claim.startswith("validator 'same' is the name of several classes of both 1.0: both.Good and ")


def test_a_distribution_without_metadata_is_usable(install, discovered, site):
    install("bare", good())
    (site / "bare-1.0.dist-info" / "METADATA").unlink()
    install("kind-stranger", good("other"))
    assert discovered().names("validator") == ["good", "other"]
