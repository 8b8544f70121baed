"""Third-party distributions: working ones are discovered, broken ones named, and none harms another."""

from __future__ import annotations

import textwrap

import pytest
import torch

from msda_bench.errors import PluginError
from msda_bench.plugins import discover

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


def test_component_records_its_distribution(install, discovered):
    install("kind-stranger", good(), version="2.5")
    entry = discovered().entry("validator", "good")
    assert (entry.distribution, entry.distribution_version, entry.origin) == (
        "kind-stranger",
        "2.5",
        "kind-stranger 2.5",
    )
    assert entry.create({}).score(None) == 1.0
    assert not discovered().broken


BROKEN = {
    "raises at import": ("raise OSError('no licence\\nfound')", ": broken_stranger.py:1: OSError: no licence found"),
    "exits at import": ("raise SystemExit('bye')", ": broken_stranger.py:1: SystemExit: bye"),
    "asks for an absent module": (
        "import not_installed_anywhere",
        ".py:1: ModuleNotFoundError: No module named 'not_installed_anywhere'",
    ),
    "is no Python": ("def", "SyntaxError: invalid syntax"),
    "implements no hook": ("x = 1", "(broken_stranger): implements no hook; mark a function"),
    "forgets the mark": (
        "def msda_validators():\n    return []",
        "implements no hook; mark a function such as msda_aggregators with @hookimpl",
    ),
    "misspells a hook": (HEAD + "@hookimpl\ndef msda_validator():\n    return []", "unknown hook 'msda_validator'"),
    "hook takes an argument": (HEAD + "@hookimpl\ndef msda_validators(x):\n    return []", "msda_validators"),
    "hook raises": (HEAD + HOOK + "1 / 0", "hook msda_validators: broken_stranger.py:4: ZeroDivisionError"),
    "hook exits": (HEAD + HOOK + "exit(3)", "hook msda_validators: broken_stranger.py:4: SystemExit: 3"),
    "hook returns no list": (HEAD + HOOK + "7", "hook msda_validators: TypeError"),
    "hook returns a string": (HEAD + HOOK + "['Good']", "Good is not a subclass of msda_bench.api.Validator"),
    "hook returns a component of another kind": (
        HEAD + "@component\nclass A(Aggregator):\n    name = 'a'\n" + HOOK + "[A]",
        "A is not a subclass of msda_bench.api.Validator",
    ),
    "attribute raises": (
        HEAD
        + "class Meta(type(Validator)):\n    @property\n    def name(cls):\n        return 1 / 0\n"
        + "class V(Validator, metaclass=Meta):\n    def score(self, view): ...\n"
        + HOOK
        + "[V]",
        "V cannot be inspected: broken_stranger.py:5: ZeroDivisionError",
    ),
    "class is not decorated": (
        HEAD + "class V(Validator):\n    name = 'v'\n    def score(self, view): ...\n" + HOOK + "[V]",
        "V is not decorated with @component",
    ),
    "class inherits the decoration": (
        HEAD
        + "@component\nclass V(Validator):\n    name = 'v'\n    def score(self, view): ...\n"
        + "class W(V):\n    name = 'w'\n"
        + HOOK
        + "[W]",
        "W is not decorated with @component",
    ),
    "class lacks a method": (
        HEAD + "@component\nclass V(Validator):\n    name = 'v'\n" + HOOK + "[V]",
        "V does not define score",
    ),
    "class has no name": (
        HEAD + "@component\nclass V(Validator):\n    def score(self, view): ...\n" + HOOK + "[V]",
        "V needs a `name` of letters, digits, '_', '.' and '-', at most 64, not None",
    ),
    "name climbs": (
        HEAD + "@component\nclass V(Validator):\n    name = '../v'\n    def score(self, view): ...\n" + HOOK + "[V]",
        "not '../v'",
    ),
    "version is no number": (
        HEAD
        + "@component\nclass V(Validator):\n    name = 'v'\n    version = '1'\n    def score(self, view): ...\n"
        + HOOK
        + "[V]",
        "V needs a whole `version` of at least 1, not '1'",
    ),
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


def test_process_changes_made_by_an_import_are_undone_and_reported(install, discovered):
    install("rude-stranger", "import torch\ntorch.set_default_dtype(torch.float64)\n" + textwrap.dedent(good()))
    registry = discovered()
    assert torch.get_default_dtype() == torch.float32
    (line,) = registry.changed
    assert line.startswith("rude-stranger 1.0: entry point 'plugin' (rude_stranger) changed torch's default dtype: ")
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


def test_unknown_name_lists_the_broken_plugin(install, discovered):
    install("broken-stranger", "raise OSError('no licence')", version="0.3")
    install("kind-stranger", good("softmin"))
    with pytest.raises(PluginError) as raised:
        discovered().entry("validator", "softmiin")
    (line,) = raised.value.lines
    assert "unknown validator 'softmiin' (did you mean 'softmin'?)" in line
    assert (
        "broken-stranger 0.3: entry point 'plugin' (broken_stranger): broken_stranger.py:1: OSError: no licence" in line
    )


def test_collision_names_both_distributions(install, discovered):
    install("one", good("twin"), version="1.0")
    install("two", good("twin"), version="2.0b1")
    install("three", good("single"))
    registry = discovered()
    claim = "validator 'twin' is claimed by one 1.0 and two 2.0b1; uninstall one of them"
    assert registry.conflicts == [claim]
    with pytest.raises(PluginError, match=claim):
        registry.entry("validator", "twin")
    assert registry.entry("validator", "single").distribution == "three"


def test_one_name_in_two_kinds_does_not_collide(install, discovered):
    install("one", good("twin"))
    aggregator = good("twin").replace("Validator", "Aggregator").replace("validators", "aggregators")
    install("two", aggregator.replace("score(self, view)", "__call__(self, risks, gaps, mu, state)"))
    registry = discovered()
    assert not registry.conflicts
    assert registry.entry("aggregator", "twin").distribution == "two"


def test_two_distributions_with_the_same_entry_point_name_are_both_loaded(install, discovered):
    install("one", good("first"), entry="plugin")
    install("two", good("second"), entry="plugin")
    assert discovered().names("validator") == ["first", "second"]


def test_order_does_not_depend_on_the_file_system(install, site):
    import importlib.metadata

    install("b-dist", good("twin"))
    install("a-dist", good("twin"))
    points = [point for dist in importlib.metadata.distributions(path=[str(site)]) for point in dist.entry_points]
    expected = ["validator 'twin' is claimed by a-dist 1.0 and b-dist 1.0; uninstall one of them"]
    assert discover(points).conflicts == discover(points[::-1]).conflicts == expected


def test_distribution_without_metadata_is_usable(install, discovered, site):
    install("bare", good())
    (site / "bare-1.0.dist-info" / "METADATA").unlink()
    install("kind-stranger", good("other"))
    assert discovered().names("validator") == ["good", "other"]


def test_built_in_components_are_discovered_like_plugins():
    registry = discover()
    assert registry.entry("aggregator", "sharpmax").distribution == "msda-bench"
