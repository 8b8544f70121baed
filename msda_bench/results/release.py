"""A release of results: the runs of many folders in one file, described in JSON-LD by Croissant 1.0 (MLCommons)."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import yaml  # type: ignore[import-untyped, unused-ignore]
from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype
from pydantic import BaseModel, ValidationError

from msda_bench.atomic import make_folder, named, read_file
from msda_bench.errors import DataError
from msda_bench.results.files import refuse_result_folders, replace_file
from msda_bench.results.frame import load_results, typed

FOLDER = "folder"
DESCRIPTION = "croissant.json"
_FORMAT = "http://mlcommons.org/croissant/1.0"
_ALIASES = (
    *("citeAs", "column", "extract", "field", "fileObject", "fileProperty", "fileSet", "format", "includes"),
    *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
    *("repeated", "replace", "separator", "source", "subField", "transform"),
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _ALIASES},
}
"""The context that the specification recommends."""
MEANINGS = {
    FOLDER: "the result folder that the run is from",
    "suite": "the suite",
    "experiment": "the experiment of the suite: a dataset, with its settings",
    "dataset": "the dataset",
    "task": "classification or regression",
    "target": "the domain that the run adapts to and is tested on",
    "method": "the method, as the suite names it",
    "reference": "whether the method is shown but never ranked, such as one that learns from the target's labels",
    "seed": "of the split, the first weights, the batches and dropout; the same for every method",
    "candidate": "where settings are selected: which candidate",
    "left_out": "where settings are selected: the source that played the target",
    "key": "sha256 of all that determines the run",
    "status": "ok, or why there is no score",
    "n_test": "test examples",
    "n_train": "unlabelled training examples of the target, as the run's settings say, as a number or a fraction",
    "n_correct": "those that were classified correctly",
    "sum_squared_error": "of a regression, over the test examples",
    "score": "the metric: accuracy in percent or mean squared error, unless the suite names another; empty unless ok",
    "message": "what went wrong",
    "train_seconds": "seconds of training; runs of one stack share its time",
    "steps": "training steps",
    "device": "cpu or cuda",
    "device_name": "the model of the CPU or GPU",
    "stack": "how many runs were trained together",
    "stack_note": "why the run was not trained in a stack",
    "torch": "version of PyTorch",
    "numba": "version of numba",
    "python": "version of Python",
    "numpy": "version of NumPy",
    "platform": "the operating system",
    "distributions": "the distributions of all components, with their versions",
    "effective_sample_size": "m divided by the squared norm of the sources' weights",
    "weights_norm": "the norm of the sources' weights",
    "target_labels": "whether training used labels of the target",
    "put_back": "what a component changed in its process",
}
_FAMILIES = {
    "metric:": "a metric's value",
    "validator:": "the score of a validator, which sees no label of the target",
    "version:": "the version of a distribution that brings components",
}


class Citation(BaseModel):
    """What a release needs of a CITATION.cff (Citation File Format 1.2)."""

    title: str
    authors: list[dict[str, Any]]
    version: str
    license: str
    url: str | None = None
    abstract: str | None = None

    @property
    def creators(self) -> list[dict[str, str]]:
        """The authors, as schema.org has them."""
        return [
            {"@type": "Organization", "name": str(author["name"])}
            if "name" in author
            else {
                "@type": "Person",
                "name": f"{author.get('given-names', '')} {author.get('family-names', '')}".strip(),
            }
            for author in self.authors
        ]

    @classmethod
    def read(cls, path: Path) -> Citation:
        """The file's contents.

        Raises:
            DataError: it cannot be read, or lacks something.
        """
        with named(path, "cannot be read; name another one by --cite"):
            text = read_file(path)
        try:
            return cls.model_validate(yaml.safe_load(text))
        except (yaml.YAMLError, UnicodeDecodeError):
            raise DataError(f"{path}: is no YAML in UTF-8") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise DataError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def export(folders: Sequence[Path], out: Path, citation: Citation, date: str, url: str) -> tuple[Path, pd.DataFrame]:
    """Writes the runs of result folders as one file, and its description beside it.

    Args:
        folders: result folders with different names.
        out: gets runs.parquet, or runs.csv.gz where pyarrow is missing, and croissant.json.
        citation: title, authors, version and licence of the results.
        date: on which they are published, as 2026-11-23.
        url: their page.

    Returns:
        The file of runs, and the runs.

    Raises:
        BenchError: a folder cannot be read, two have one name, or a file cannot be written.
    """
    refuse_result_folders(out)
    runs = joined(folders)
    name, kind, data = _packed(runs)
    with named(out, "cannot be made"):
        make_folder(out)
    replace_file(out / name, data)
    description = describe(runs, name, kind, data, citation, date, url)
    replace_file(out / DESCRIPTION, (json.dumps(description, indent=2, ensure_ascii=False) + "\n").encode())
    return out / name, runs


def joined(folders: Sequence[Path]) -> pd.DataFrame:
    """The runs of result folders, in order; a first column names the folder.

    Raises:
        BenchError: a folder cannot be read, or two have one name.
    """
    names = [folder.resolve().name for folder in folders]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"two folders are called {twice[0]!r}, and the file names them so; rename one")
    parts = [
        load_results(folder).astype(object).assign(**{FOLDER: name})
        for folder, name in zip(folders, names, strict=True)
    ]
    for part in parts:
        part.attrs = {}
    runs = pd.concat(parts, ignore_index=True)
    more = typed(runs.drop(columns=FOLDER))
    more = more.astype({name: "float64" for name in more if str(name).startswith(("metric:", "validator:"))})
    more.insert(0, FOLDER, runs[FOLDER].astype("category"))
    return more


def _packed(runs: pd.DataFrame) -> tuple[str, str, bytes]:
    """Name, media type and bytes of the file of runs; equal runs give equal bytes."""
    if find_spec("pyarrow") is not None:
        stream = BytesIO()
        runs.to_parquet(stream, index=False)
        return "runs.parquet", "application/x-parquet", stream.getvalue()
    return (
        "runs.csv.gz",
        "application/gzip",
        gzip.compress(runs.to_csv(index=False, lineterminator="\n").encode(), mtime=0),
    )


def describe(
    runs: pd.DataFrame, name: str, kind: str, data: bytes, citation: Citation, date: str, url: str
) -> dict[str, Any]:
    """The Croissant description of a file of runs."""
    authors = " and ".join(creator["name"] for creator in citation.creators)
    title = f"{citation.title}: recorded runs"
    folders = len(runs[FOLDER].unique())
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _FORMAT,
        "name": title,
        "description": citation.abstract
        or f"{len(runs)} runs of methods of domain adaptation from {folders} result folders: a row for each planned "
        "run, with its score, status, validators and the versions that made it.",
        "version": citation.version,
        "license": f"https://spdx.org/licenses/{citation.license}.html",
        "url": url,
        "creator": citation.creators,
        "datePublished": date,
        "citeAs": f"{authors}. {title}. Version {citation.version}, {date}.",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{len(data)} B",
                "encodingFormat": kind,
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "runs",
                "name": "runs",
                "description": "One row for each planned run; one that is not `ok` has no score.",
                "field": [_field(column, runs[column], name) for column in map(str, runs)],
            }
        ],
    }


def _field(column: str, values: pd.Series[Any], file: str) -> dict[str, Any]:
    family, _, of = column.partition(":")
    meaning = MEANINGS.get(column) or f"{_FAMILIES[f'{family}:']}: {of}"
    kinds = (("sc:Boolean", is_bool_dtype), ("sc:Integer", is_integer_dtype), ("sc:Float", is_float_dtype))
    return {
        "@type": "cr:Field",
        "@id": f"runs/{column}",
        "name": column,
        "description": meaning,
        "dataType": next((name for name, holds in kinds if holds(values.dtype)), "sc:Text"),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
    }
