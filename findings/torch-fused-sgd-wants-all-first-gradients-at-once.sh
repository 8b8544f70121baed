#!/usr/bin/env bash
# torch 2.13.0, torch.optim.SGD with momentum and fused=True, on a CPU as on a GPU.
# A weight whose first gradient comes in a later step than another's (a head that is trained from the second phase on) has
# no momentum buffer yet, and the fused step fails on it; with fused=False the same steps pass.
# Output: unfused passes; fused raises TypeError (a tensor was expected, None was found).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q torch==2.13.0 numpy
"$folder/venv/bin/python" -W ignore - <<'END'
import torch


def second_step(fused):
    early, late = (torch.zeros(3, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([early, late], lr=0.1, momentum=0.9, fused=fused)
    early.grad = torch.ones(3)
    optimizer.step()
    late.grad = torch.ones(3)
    try:
        optimizer.step()
    except TypeError as error:
        return f"TypeError: {error}"
    return "passes"


print(second_step(False), "|", second_step(True))
assert second_step(False) == "passes"
assert second_step(True).startswith("TypeError")
END
