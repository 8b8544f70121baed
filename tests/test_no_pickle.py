"""Reading data never runs code: no unpickling, no unsafe YAML, no evaluation of text, no shell."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("msda_bench", "plugins")
MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve"}
NAMES = {
    *("eval", "exec", "compile", "__import__"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.full_load_all", "yaml.unsafe_load_all"),
    *("yaml.Loader", "yaml.FullLoader", "yaml.UnsafeLoader", "yaml.CLoader", "yaml.CFullLoader", "yaml.CUnsafeLoader"),
    *("torch.load", "torch.jit.load", "torch.package.PackageImporter", "pandas.read_pickle", "pd.read_pickle"),
    *("os.system", "os.popen", "shutil.unpack_archive"),
}
METHODS = {"extractall", "extract"}
ALLOWED = {
    # The contract kit unpickles what it has just pickled: components must be able to go to other processes.
    ("msda_bench/testing/component.py", "imports pickle"),
    # Weights are read with weights_only=True, which runs no code; of pickle its error alone is named.
    ("msda_bench/component/backbone.py", "imports pickle"),
    ("msda_bench/component/backbone.py", "names torch.load"),
    # A model that the user stores with joblib has an estimator's function by value; to load one is to run its code.
    ("msda_bench/engine/fitted.py", "imports cloudpickle"),
    # Recordings that numpy pickled; the unpickler looks names up in a table of its own and imports none.
    ("plugins/msda_bench_builtin/datasets/watch.py", "imports pickle"),
}


def offences(tree):
    """Short descriptions of what is forbidden in a module."""
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                names = [f"{module}{name.name}" for name in node.names]
                yield from (f"imports {name}" for name in names if name.partition(".")[0] in MODULES or name in NAMES)
            case ast.Attribute() | ast.Name():
                if (name := ast.unparse(node)) in NAMES or getattr(node, "attr", "") in METHODS:
                    yield f"names {name}"
            case ast.Call() if ast.unparse(node.func) in {"np.load", "numpy.load"}:
                if not any(word.arg == "allow_pickle" for word in node.keywords):
                    yield "calls numpy.load without allow_pickle"
            case ast.keyword(arg="allow_pickle" | "shell") if ast.unparse(node.value) != "False":
                yield f"calls with {node.arg}"


def test_no_module_reads_data_that_could_run_code():
    found = {
        (str(path.relative_to(ROOT)), offence)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for offence in offences(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == ALLOWED


FORBIDDEN = """
import pickle
import os, joblib.numpy_pickle
from cloudpickle import loads
from torch import load
from yaml import FullLoader
np.load(path)
np.load(path, allow_pickle=True)
numpy.load(path, mmap_mode='r')
np.lib.format.read_array(stream, allow_pickle=flag)
torch.load(path, weights_only=True)
yaml.load(text, Loader=yaml.SafeLoader)
yaml.parse(text, Loader=yaml.UnsafeLoader)
eval(text)
exec(text)
compile(text, 'x', 'exec')
archive.extractall(folder)
tar.extract(member)
shutil.unpack_archive(path)
os.system(command)
subprocess.run(command, shell=True)
"""
HARMLESS = "np.load(path, allow_pickle=False); re.compile(text); model.eval(); yaml.safe_load(text); s.load()"


def test_each_forbidden_call_is_found_and_harmless_ones_pass():
    for line in FORBIDDEN.split("\n")[1:-1]:
        assert list(offences(ast.parse(line))), line
    assert list(offences(ast.parse(HARMLESS))) == []
