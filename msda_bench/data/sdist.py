"""Fetches a source distribution through pip, so that the user's own index, proxy and certificates apply."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from msda_bench.api import File, Sdist
from msda_bench.atomic import written
from msda_bench.data.check import fault
from msda_bench.errors import DataError

TIMEOUT = 600
"""Seconds after which pip is stopped."""


def download_sdist(file: File, origin: Sdist, path: Path) -> None:
    """Puts the distribution's archive at `path`; nothing is installed.

    Raises:
        DataError: pip is missing, fails, or fetches something else.
        OSError: the cache cannot be written.
    """
    pinned = f"{origin.project}=={origin.version}"
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(f"{pinned} --hash=sha256:{file.sha256}\n", encoding="utf-8")
        brought = Path(folder, "brought")
        _run_pip(file, origin, requirements, brought)
        archives = list(brought.iterdir()) if brought.is_dir() else []
        if len(archives) != 1:
            raise DataError(f"{file.path}: pip fetched {len(archives)} files for {pinned}, expected one")
        reason = fault(archives[0], file)
        if reason is not None:
            raise DataError(f"{file.path}: pip fetched a wrong file for {pinned}: {reason}")
        with archives[0].open("rb") as source, written(path) as stream:
            shutil.copyfileobj(source, stream)


def _run_pip(file: File, origin: Sdist, requirements: Path, destination: Path) -> None:
    # Only this project from source: ":all:" would make pip build the tools that read its metadata from source, too.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", origin.project, "--require-hashes"]
    command += ["--requirement", str(requirements), "--dest", str(destination)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired:
        raise DataError(f"{file.path}: pip took more than {TIMEOUT} s") from None
    if done.returncode == 0:
        return
    if "No module named pip" in done.stderr:
        raise DataError(f"{file.path}: this Python has no pip; run `{sys.executable} -m ensurepip` first")
    raise DataError(f"{file.path}: pip failed: {_last_line(done.stderr) or f'exit status {done.returncode}'}")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or [""])[-1].removeprefix("ERROR:").strip()[:300]
