"""`python -m msda_bench`: the same as `msda-bench`, where the scripts of an environment are not on the path."""

import os
import sys

if __name__ == "__main__":  # workers import this module, too
    if sys.path[0] == os.getcwd():  # noqa: PTH109 - as Python wrote it
        # The command does not search the working folder, either: a random.py of the user's would be imported.
        del sys.path[0]
    from msda_bench.cli.main import entry

    entry()
