"""A tiny network with weights in a file, and byte images, as a third-party distribution may provide them."""

import hashlib
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from msda_bench.api import (
    DataError,
    Dataset,
    DomainData,
    Embedding,
    File,
    InputSpec,
    Pretrained,
    Task,
    Url,
    component,
    hookimpl,
)

WIDTH = 8
LOG = "TINY_NET_LOG"
WEIGHTS = np.sin(np.arange(WIDTH * 3 * 9, dtype=np.float32)).tobytes()
FILE = File(
    "tiny/weights.bin", hashlib.sha256(WEIGHTS).hexdigest(), len(WEIGHTS), Url(("file:///nowhere/weights.bin",))
)


class Slow(nn.Module):
    """The identity with a delay; logs the number of examples."""

    def forward(self, x):
        with Path(os.environ.get(LOG, os.devnull)).open("a") as log:
            log.write(f"{len(x)}\n")
        time.sleep(float(os.environ.get("TINY_NET_SLEEP", "0")))
        return x


@component
class TinyNet(Pretrained):
    """One convolution with weights from a file."""

    name = "tiny_net"
    width = WIDTH
    files = (FILE,)

    def trunk(self, files):
        content = files.path(FILE).read_bytes()
        if len(content) != len(WEIGHTS):
            raise DataError(f"{FILE.path}: not {len(WEIGHTS)} bytes")
        convolution = nn.Conv2d(3, WIDTH, 3, stride=2)
        weights = np.frombuffer(bytearray(content), np.float32).reshape(WIDTH, 3, 3, 3)
        convolution.load_state_dict({"weight": torch.from_numpy(weights), "bias": torch.zeros(WIDTH)})
        return nn.Sequential(Slow(), convolution, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Counting(nn.Module):
    def forward(self, texts):
        return torch.tensor([[len(text), text.count("\xc4"), text.count("\n")] for text in texts], dtype=torch.float32)


@component
class Letters(TinyNet):
    """Counts letters, those that are an A, and lines of a text."""

    name = "letters"

    def embedding(self, input):
        return Embedding("letters", 3, lambda _: Counting(), texts=True)


@component
class Stripes(Dataset):
    """Vertical and horizontal stripes of three widths, in memory."""

    name = "stripes"
    domains = ("thin", "middle", "thick", "unused")
    task = Task("classification", 2)
    input = InputSpec((3, 8, 8))
    train: int = 100

    def load(self, domain, files):
        place = 1 + self.domains.index(domain)
        draws = np.random.Generator(np.random.Philox(key=place))
        y = draws.integers(0, 2, 600)
        x = draws.integers(0, 256, (600, 3, 8, 8), np.uint8)
        lines = np.arange(8) // place % 2 == 0
        x[y == 0] //= np.where(lines, 1, 4)[:, None].astype(np.uint8)
        x[y == 1] //= np.where(lines, 1, 4)[None, :].astype(np.uint8)
        return DomainData(x, y)


@hookimpl
def msda_datasets():
    return [Stripes]


@hookimpl
def msda_backbones():
    return [TinyNet, Letters]
