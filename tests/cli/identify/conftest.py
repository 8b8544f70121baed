"""What the tests of `msda-bench data identify` share."""

import pytest

from msda_bench.cli.main import main


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def identify(capsys):
    """`identify(words)`: the exit code, the lines on stdout with single spaces, and those on stderr."""

    def run(*words):
        code = main(["data", "identify", *map(str, words)])
        out, err = capsys.readouterr()
        return code, [" ".join(line.split()) for line in out.splitlines()], err.splitlines()

    return run


@pytest.fixture
def told(identify):
    """`told(words)`: what a command that ends well says on stdout, line by line."""

    def run(*words):
        code, out, _ = identify(*words)
        assert code == 0
        return "\n".join(out)

    return run


def refused(result):
    code, _, (line,) = result
    assert code == 2
    return line.removeprefix("msda-bench: error: ")
