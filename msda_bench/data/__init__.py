"""Data: finds, fetches and checks files, and splits domains."""

from msda_bench.data.download import fetch
from msda_bench.data.files import LocalFiles, verify_arrays
from msda_bench.data.folders import Folders, absent, describe_absent, folders

__all__ = ["Folders", "LocalFiles", "absent", "describe_absent", "fetch", "folders", "verify_arrays"]
