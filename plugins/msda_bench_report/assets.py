"""Assembles the frame of the page: templates that escape all text, scripts, and a policy that blocks all loading."""

from __future__ import annotations

import base64
import contextlib
import csv
import gzip
import hashlib
import json
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from msda_bench.atomic import cache_folder, read_cache, write_cache
from msda_bench.errors import printable
from msda_bench.results.report import mean_text
from msda_bench.results.words import counted, listed, spans
from msda_bench_report.figures import shown_rows

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_PLAIN = 300_000
"""The maximum size of an uncompressed download, in bytes."""
_MOST_LIBRARY = 1 << 24
"""The maximum size of the chart libraries in bytes."""
_KINDS = {".csv": "text/csv", ".md": "text/markdown", ".tex": "application/x-tex"}
_PACKAGE = "msda_bench_report"


def environment() -> Environment:
    """A Jinja environment with the filters and functions of the templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"plain": printable, "spans": spans, "listed": listed, "json": json_block, "rows": shown_rows}
    made.filters["score"] = lambda row: mean_text(row).replace("+-", "±")
    papers = csv.DictReader(asset("methods.csv").splitlines())
    made.globals |= {"counted": counted, "papers": {row["label"]: row for row in papers}}
    return made


def asset(name: str) -> Markup:
    """Reads one of our files beside the templates, unescaped."""
    text = resources.files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - ours


def library() -> tuple[str, str]:
    """Vega, Vega-Lite and Vega-Embed as one script that defines `vegaEmbed`; vl-convert contains it (BSD-3-Clause).

    Returns:
        The script, compressed with gzip, in base64: a third of its size. And the digest that allows the page to run it.
    """
    import vl_convert

    # Bundling takes seconds and depends only on the version, so its result is cached.
    path = cache_folder() / "page" / f"vega-{version('vl-convert-python')}.js.gz"
    packed = read_cache(path, _MOST_LIBRARY)
    if packed is None:
        bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]
        packed = gzip.compress(f"(() => {{{bundle}}})();".encode(), mtime=0)  # a function keeps its short names local
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_cache(path, packed)
    return base64.b64encode(packed).decode(), digest(gzip.decompress(packed))


def json_block(value: Any) -> Markup:
    """Writes JSON that is safe in a script element: ASCII without `<`, `>` or `&`."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def download(name: str, text: str) -> tuple[str, str]:
    """The name and data address of a text to download; a long text is compressed with gzip."""
    kind, data = _KINDS[Path(name).suffix], text.encode()
    if len(data) > _MOST_PLAIN:
        name, kind, data = f"{name}.gz", "application/gzip", gzip.compress(data, mtime=0)
    return name, f"data:{kind};base64,{base64.b64encode(data).decode()}"


def policy(style: str, *scripts: str) -> str:
    """A content security policy that allows this style, the scripts of these digests and embedded images alone."""
    allowed = " ".join(f"'{script}'" for script in scripts)
    return (
        f"default-src 'none'; style-src '{digest(style)}'; script-src {allowed}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def digest(text: str | bytes) -> str:
    """The digest by which a policy names a style or a script."""
    data = text.encode() if isinstance(text, str) else text
    return f"sha256-{base64.b64encode(hashlib.sha256(data).digest()).decode()}"
