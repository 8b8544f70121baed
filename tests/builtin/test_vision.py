"""torchvision is imported only when asked for, also beside a torch without its operators."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS = "from msda_bench_builtin.vision import torchvision; "


def python(code: str) -> subprocess.CompletedProcess[str]:
    path = f"import sys; sys.path[:] = {sys.path!r}; "
    return subprocess.run([sys.executable, "-c", path + code], capture_output=True, text=True, check=False)


def test_networks_and_transforms_work_in_a_new_process_with_any_torch_build() -> None:
    use = "print(torchvision('models').resnet18().fc.in_features, torchvision('transforms.v2').Resize(8).size[0])"
    found = python(f"{OURS}{use}; import torchvision.ops; print('whole')")
    assert (found.returncode, found.stdout.split()) == (0, ["512", "8", "whole"]), found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["RuntimeError('out of luck')", "ImportError('no such thing')"])
def test_other_import_errors_are_passed_on(fault: str) -> None:
    hook = f"""
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            raise {fault}
sys.meta_path.insert(0, Finder())
"""
    found = python(f"\n{hook}\n{OURS}torchvision()")
    assert found.returncode == 1
    assert fault.replace("('", ": ").removesuffix("')") in found.stderr.splitlines()[-1]
    assert "torchvision::nms" not in found.stderr


def test_help_and_component_lists_do_not_import_torchvision() -> None:
    for words in (["--help"], ["plugins"]):
        code = f"from msda_bench.cli.main import main; main({words!r}); sys.exit('torchvision' in sys.modules)"
        assert python(code).returncode == 0
