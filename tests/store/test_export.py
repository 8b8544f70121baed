"""`msda-bench store export`: one file of many folders' runs, which reads back as they are, and its description."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "results" / name for name in ("ablation-digits-scale", "paper-amazon")]
CITE = ["--cite", str(ROOT / "CITATION.cff"), "--url", "https://example.org/results", "--date", "2026-11-23"]
REQUIRED = {"@context", "@type", "conformsTo", "name", "description", "license", "url", "creator", "datePublished"}
"""By the specification of Croissant 1.0."""


def exported(out: Path) -> dict:
    assert main(["store", "export", *map(str, FOLDERS), "--out", str(out), *CITE]) == 0
    return json.loads((out / "croissant.json").read_text())


def equal_to_the_folders(runs: pd.DataFrame) -> None:
    for folder in FOLDERS:
        rows = runs[runs["folder"] == folder.name].drop(columns="folder").reset_index(drop=True)
        loaded = mb.load_results(folder)
        assert not rows.drop(columns=list(loaded)).notna().any(axis=None)  # what other folders have beside
        rows = rows[list(loaded)].astype(object)
        pd.testing.assert_frame_equal(
            rows.where(rows.notna(), None), plain(loaded), check_dtype=False, check_exact=True
        )
    assert len(runs) == sum(len(mb.load_results(folder)) for folder in FOLDERS)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.astype(object)
    return frame.where(frame.notna(), None)


def test_the_runs_read_back_as_load_results_has_them(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    exported(tmp_path)
    equal_to_the_folders(pd.read_parquet(tmp_path / "runs.parquet"))
    first = (tmp_path / "runs.parquet").read_bytes()
    exported(tmp_path / "again")
    assert (tmp_path / "again" / "runs.parquet").read_bytes() == first


def test_without_pyarrow_they_are_a_compressed_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msda_bench.results.release.find_spec", lambda _: None)
    description = exported(tmp_path)
    assert description["distribution"][0]["name"] == "runs.csv.gz"
    runs = pd.read_csv(tmp_path / "runs.csv.gz", low_memory=False, keep_default_na=False, na_values=[""])
    scores = pd.concat([mb.load_results(folder)["score"] for folder in FOLDERS]).tolist()
    assert [*runs["folder"].unique()] == [folder.name for folder in FOLDERS]
    assert runs["score"].tolist() == pytest.approx(scores, rel=1e-14, nan_ok=True)


def test_its_description_has_what_croissant_requires_of_every_field_and_file(tmp_path: Path) -> None:
    description = exported(tmp_path)
    assert set(description) >= REQUIRED
    assert description["@type"] == "sc:Dataset"
    assert description["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert description["license"] == "https://spdx.org/licenses/MIT.html"
    assert description["creator"] == [{"@type": "Organization", "name": "The msda-bench authors"}]
    assert "2026-11-23" in description["citeAs"]
    (file,) = description["distribution"]
    data = (tmp_path / file["contentUrl"]).read_bytes()
    assert file["@type"] == "cr:FileObject"
    assert (file["sha256"], file["contentSize"]) == (hashlib.sha256(data).hexdigest(), f"{len(data)} B")
    (records,) = description["recordSet"]
    fields = {field["source"]["extract"]["column"]: field for field in records["field"]}
    assert (records["@type"], len(fields)) == ("cr:RecordSet", len(records["field"]))
    read = {"sc:Text": str, "sc:Integer": int, "sc:Float": float, "sc:Boolean": bool}
    runs = (
        pd.read_parquet(tmp_path / "runs.parquet")
        if file["name"].endswith("parquet")
        else pd.DataFrame(columns=[*fields])
    )
    assert list(fields) == list(runs)
    for name, field in fields.items():
        assert (field["@type"], field["@id"], field["source"]["fileObject"]) == (
            "cr:Field",
            f"runs/{name}",
            {"@id": file["@id"]},
        )
        assert field["description"]
        assert all(isinstance(value, read[field["dataType"]]) for value in runs[name].dropna().tolist()), name
    used = {
        key
        for part in (description, file, records, *records["field"], *[field["source"] for field in records["field"]])
        for key in part
    }
    vocabulary = {
        "@context",
        "@type",
        "@id",
        "name",
        "description",
        "version",
        "license",
        "url",
        "creator",
        "datePublished",
    }
    vocabulary |= {"distribution", "contentUrl", "contentSize", "encodingFormat", "sha256"}  # of schema.org
    assert used - vocabulary <= set(description["@context"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cite", "none.cff"], "none.cff: cannot be read; name another one by --cite"),
        (["--cite", "bad.cff"], "bad.cff: authors: Field required"),
        (["--cite", "odd.cff"], "odd.cff: is no YAML in UTF-8"),
        (CITE[:2], "has no `url`, which a description must name"),
        ([str(FOLDERS[0]), *CITE], "two folders are called 'ablation-digits-scale'"),
        ([*CITE, "--out", str(FOLDERS[0])], "would write into the result folder"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.cff").write_text("title: t\nversion: 1.0\nlicense: MIT\n")
    (tmp_path / "odd.cff").write_text("a: [")
    assert main(["store", "export", "--out", "out", str(FOLDERS[0]), *words]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
