"""`msda-bench sources` on folders written by the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Curves, Record


def weighted(record: Record, method: str, target: str, seed: int) -> Record:
    curves = Curves([["p"], ["q"]], [[1.0, 1.0]], [[0.0, 0.0]], [[0.75, 0.25]])
    return replace(record, curves=curves if method == "DARN" else None)


@pytest.fixture
def folder(make_results: Callable[..., Path]) -> Path:
    return make_results(records=weighted)


def test_sources_prints_weights(folder, capsys):
    assert main(["sources", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "toy (toy), DARN, target x" in out
    assert "0.750" in out
    said = " ".join(out.split())
    assert "note: the worth of the sources of toy is unknown: unknown dataset 'toy'" in said
    assert "weight: alpha" in out


def test_json_is_one_document(folder, capsys):
    assert main(["sources", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [table["rows"][0]["target"] for table in document["tables"]] == ["x", "y"]
    assert len(document["notes"]) == 1


def test_missing_files_are_reported(make_results, capsys):
    def lose(record: Record, method: str, target: str, seed: int) -> Record | None:
        return None if (method, target, seed) == ("DARN", "x", 0) else weighted(record, method, target, seed)

    assert main(["sources", str(make_results(records=lose)), "--quiet"]) == 1
    out = capsys.readouterr().out
    assert "DARN: 1 of 12 runs missing" in out
    assert "weight: alpha" not in out


def test_a_missing_folder_is_an_error(tmp_path, capsys):
    assert main(["sources", str(tmp_path / "none")]) == 2
    assert "msda-bench: error:" in capsys.readouterr().err
