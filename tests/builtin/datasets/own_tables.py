"""Tables and arrays of a user's own, and suites that name them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HEAD = "site,disease,age,sex\n"
PLAIN = HEAD + "".join(
    f"{site},{'yes' if row % 2 else 'no'},{row * 1.5},{'f' if row % 3 else 'm'}\n" for site in "ab" for row in range(8)
)
TABLE = {"domain": "site", "label": "disease"}
X, Y, SITE = np.arange(48, dtype=np.float32).reshape(16, 3) % 7, np.arange(16) % 2, np.repeat([0, 1], 8)


def suite(folder: Path, dataset: str, params: Mapping[str, Any]) -> str:
    text = {
        "schema": 1,
        "name": "mine",
        "dataset": {dataset: params},
        "targets": "all",
        "seeds": 1,
        "backbone": {"mlp": {"hidden": [4]}},
        "training": {"epochs": 1, "batch": 4, "optimizer": {"adam": {"lr": 0.01}}},
        "methods": {"SRC": {"scheme": "pooled"}},
    }
    path = folder / "mine.yaml"
    path.write_text(json.dumps(text))
    return str(path)


def npz(*, compressed: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **({"x": X, "y": Y, "site": SITE} | arrays))
    return stream.getvalue()
