"""Third-party schemes keep the contract."""

import pytest

from msda_bench.data import Folders, LocalFiles
from msda_bench.testing import BackboneContract, examine
from tests.strangers.heads import Heads
from tests.strangers.source_free import SourceFree
from tests.strangers.teacher import Teacher
from tests.strangers.tiny_net import FILE, WEIGHTS, TinyNet


@pytest.mark.parametrize("scheme", [Heads, Teacher, SourceFree])
def test_third_party_schemes_keep_the_contract(scheme):
    found = list(examine(scheme()))
    assert [finding for finding in found if finding.outcome == "broken"] == []
    assert sum(finding.outcome == "kept" for finding in found) >= 13


class TestTinyNet(BackboneContract):
    component = TinyNet()

    @pytest.fixture(autouse=True)
    def _weights(self, tmp_path, monkeypatch):
        path = tmp_path / FILE.path
        path.parent.mkdir()
        path.write_bytes(WEIGHTS)
        monkeypatch.setattr(type(self), "files", LocalFiles(Folders(tmp_path, tmp_path)))


class TestTinyNetTrainedOn(TestTinyNet):
    component = TinyNet(trainable="all", hidden=(4,))


def test_contract_of_a_network_without_its_weights_is_skipped_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path))
    (finding,) = [finding for finding in examine(TinyNet()) if "shapes" in finding.clause]
    assert finding.outcome == "skipped"
    assert "backbone 'tiny_net' cannot be checked here: tiny/weights.bin: not in" in finding.reason
