"""Data: finds, fetches and checks files, and splits domains."""

from msda_bench.data.download import fetch
from msda_bench.data.files import Folders, LocalFiles, absent, describe_absent, folders, verify_arrays

__all__ = ["Folders", "LocalFiles", "absent", "describe_absent", "fetch", "folders", "verify_arrays"]
