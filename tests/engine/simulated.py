"""CUDA graphs without a GPU: what is recorded is replayed operation by operation, on the CPU."""

import contextlib
from types import SimpleNamespace

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from msda_bench.engine import machine


class Recording(TorchDispatchMode):
    """Lists operations, and undoes what they changed; `replay` does them again on the same tensors."""

    def __init__(self):
        super().__init__()
        self.done, self.former = [], {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = dict(kwargs or {})
        for tensor in self.changed(func, args, given):
            self.former.setdefault(id(tensor), (tensor, tensor.clone()))
        out = func(*args, **given)
        self.done.append((func, args, given, out))
        return out

    @staticmethod
    def changed(func, args, given):
        values = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | given
        writes = {one.name for one in func._schema.arguments if one.alias_info is not None and one.alias_info.is_write}
        return [leaf for name in writes & values.keys() for leaf in tree_leaves(values[name]) if leaf is not None]

    def __exit__(self, *raised):
        super().__exit__(*raised)
        for tensor, former in reversed(self.former.values()):
            tensor.data.copy_(former)

    @torch.no_grad()
    def replay(self):
        for func, args, given, out in self.done:
            for former, value in zip(tree_leaves(out), tree_leaves(func(*args, **given)), strict=True):
                if isinstance(value, torch.Tensor) and former is not value:
                    former.data.copy_(value)


def simulate(monkeypatch):
    """Steps on the CPU take the way of a GPU's; returns the graphs, as they are made."""
    made = []

    def new():
        made.append(Recording())
        return made[-1]

    stream = SimpleNamespace(device=torch.device("cpu"), wait_stream=lambda other: None)
    for name, stands_in in {
        "CUDAGraph": new,
        "graph": lambda recorded, **_: recorded,
        "Stream": lambda device: stream,
        "current_stream": lambda device: stream,
        "stream": lambda stream: contextlib.nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, stands_in)
    monkeypatch.setattr(machine, "records_updates", lambda device: True)
    monkeypatch.setattr(machine, "fuses_for", lambda device: False)
    monkeypatch.setattr(machine, "compiles_for", lambda device: False)  # numba works below torch's operations
    return made
