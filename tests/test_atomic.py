from __future__ import annotations

import pytest

from msda_bench.atomic import written


def interrupted(path):
    with written(path) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt


def test_bytes_appear_only_after_a_successful_block(tmp_path):
    path = tmp_path / "deep" / "f"
    with written(path) as stream:
        stream.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_bytes() == b"new"
    assert [file.name for file in path.parent.iterdir()] == ["f"]
