from __future__ import annotations

import pytest
import torch

from msda_bench.running.local import slots


@pytest.mark.parametrize(
    ("visible", "there", "workers", "wanted"),
    [
        (None, 2, 2, ["0", "1"]),
        (None, 2, 3, ["0", "1", "0"]),
        ("3,GPU-5", 2, 2, ["3", "GPU-5"]),
        ("1,-1,0", 1, 2, ["1", "1"]),  # the driver stops reading at what is no GPU
    ],
)
def test_each_worker_gets_one_of_the_users_gpus(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, there: int, workers: int, wanted: list[str]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    assert [slot["CUDA_VISIBLE_DEVICES"] for slot in slots("cuda", workers)] == wanted
