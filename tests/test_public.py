"""The public modules: what they name exists, is documented and typed, and is all there is to import."""

import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path

import pytest

import msda_bench as mb
from msda_bench import api, functional, testing
from msda_bench.errors import SuiteError
from tests.cli.conftest import SUITE

RESULTS = Path(__file__).parents[1] / "results" / "paper-amazon"


@pytest.mark.parametrize("name", sorted(set(mb.__all__) - {"plots"}))
def test_each_name_is_documented_and_typed(name):
    function = getattr(mb, name)
    assert callable(function)
    text = inspect.getdoc(function) or ""
    assert "Returns:" in text
    hints = inspect.signature(function)
    assert hints.return_annotation is not inspect.Signature.empty
    assert all(value.annotation is not inspect.Parameter.empty for value in hints.parameters.values())
    assert all(f"{name}:" in text for name in hints.parameters)


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'runs'"):
        mb.runs  # noqa: B018
    assert dir(mb) == sorted(mb.__all__)


def test_a_run_from_python_equals_the_commands_and_returns_the_frame(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SUITE)
    runs = mb.run("tiny.yaml", only="seed=0", device="cpu", workers=1, quiet=True)
    assert set(runs["status"]) <= {"ok", "missing", "failed"}
    assert (runs[runs["seed"] == 0]["status"] != "missing").all()
    assert Path("results/tiny/runs.csv").exists()
    again = mb.run(Path("tiny.yaml"), only="seed=0", device="cpu", quiet=True)
    assert again["score"].tolist() == pytest.approx(runs["score"].tolist(), nan_ok=True)
    with pytest.raises(SuiteError, match=r"absent\.yaml"):
        mb.run("absent.yaml")


@pytest.mark.parametrize("door", [api, functional, testing], ids=lambda door: door.__name__)
def test_every_name_exists_once_and_is_documented(door):
    assert len(set(door.__all__)) == len(door.__all__)
    for name in door.__all__:
        thing = getattr(door, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            # A dataclass or a named tuple without a docstring is given its signature for one.
            assert thing.__doc__, f"{name} has no docstring"
            assert not thing.__doc__.startswith(f"{name}("), f"{name} has no docstring of its own"
            # What an author writes is documented.
            assert all(getattr(thing, method).__doc__ for method in getattr(thing, "__abstractmethods__", ())), name


def test_every_module_imports_and_says_what_it_is():
    names = [module.name for module in pkgutil.walk_packages(mb.__path__, "msda_bench.")]
    assert "msda_bench.api" in names
    # Triton comes with torch for CUDA on Linux alone.
    found = importlib.util.find_spec("triton") is not None
    modules = [importlib.import_module(name) for name in names if found or name != "msda_bench.engine.fused"]
    assert [module.__name__ for module in modules if not module.__doc__ and not hasattr(module, "__path__")] == []
