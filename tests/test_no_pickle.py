"""Reading data never runs code: no unpickling, no unsafe YAML, no evaluation of text, no shell."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("msda_bench", "plugins")
MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve"}
CALLS = {
    *("eval", "exec", "compile", "__import__"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.full_load_all", "yaml.unsafe_load_all"),
    *("torch.load", "torch.jit.load", "torch.package.PackageImporter", "pandas.read_pickle", "pd.read_pickle"),
    *("os.system", "os.popen", "shutil.unpack_archive"),
}
METHODS = {"extractall", "extract"}
LOADERS = {
    "yaml.Loader",
    "yaml.FullLoader",
    "yaml.UnsafeLoader",
    "yaml.CLoader",
    "yaml.CFullLoader",
    "yaml.CUnsafeLoader",
}
ALLOWED = {
    # The contract kit unpickles what it has just pickled: components must be able to go to other processes.
    ("msda_bench/testing/component.py", "imports pickle"),
    # Weights are read with weights_only=True, which runs no code; of pickle its error alone is named.
    ("msda_bench/component/backbone.py", "imports pickle"),
    ("msda_bench/component/backbone.py", "calls torch.load"),
    # Recordings that numpy pickled; the unpickler looks names up in a table of its own and imports none.
    ("plugins/msda_bench_builtin/datasets/watch.py", "imports pickle"),
}


def sources():
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def offences(tree):
    """Short descriptions of the forbidden calls in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"imports {name.name}" for name in node.names if name.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.partition(".")[0] in MODULES:
                yield f"imports {module}"
            yield from (f"names {module}.{n.name}" for n in node.names if f"{module}.{n.name}" in CALLS | LOADERS)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in LOADERS:
            yield f"names {ast.unparse(node)}"
        elif isinstance(node, ast.Call):
            yield from of_call(node)


def of_call(node):
    name = ast.unparse(node.func)
    options = {word.arg: ast.unparse(word.value) for word in node.keywords}
    if name in CALLS or (isinstance(node.func, ast.Attribute) and node.func.attr in METHODS):
        yield f"calls {name}"
    if name in {"np.load", "numpy.load"} and options.get("allow_pickle") != "False":
        yield f"calls {name} without allow_pickle=False"
    if options.get("allow_pickle", "False") != "False":
        yield f"calls {name} with allow_pickle"
    if options.get("shell", "False") != "False":
        yield f"calls {name} with a shell"


def test_no_module_reads_data_that_could_run_code():
    found = {
        (str(path.relative_to(ROOT)), offence)
        for path in sources()
        for offence in offences(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found <= ALLOWED


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
