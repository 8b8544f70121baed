import pytest
import torch

import msda_bench_efficientnet_lite as plugin
from msda_bench.api import DataError, InputSpec
from msda_bench.testing import BackboneContract
from msda_bench_efficientnet_lite import EfficientNetLite0


class TestHead(BackboneContract):
    component = EfficientNetLite0()
    inputs = (InputSpec((3, 64, 64)), InputSpec((12,)))


class TestTrainedOn(BackboneContract):
    component = EfficientNetLite0(trainable="all", hidden=())
    inputs = (InputSpec((3, 64, 64)), InputSpec((12,)))


def test_features_are_those_before_the_last_layer():
    from efficientnet_lite_pytorch import EfficientNet

    images = torch.rand(2, 3, 224, 224)
    whole = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(plugin.checked_file())).eval()
    mean, deviation = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[:, None, :, None, None]
    with torch.no_grad():
        expected = whole.extract_features((images - mean) / deviation).mean((2, 3))
        features = EfficientNetLite0().trunk(None).eval()(images)
    assert features.shape == (2, EfficientNetLite0().width)
    assert torch.allclose(features, expected, atol=1e-5)


def test_other_weights_are_refused(monkeypatch):
    monkeypatch.setattr(plugin, "SHA256", "0" * 64)
    with pytest.raises(DataError, match=r"has sha256 57934424.*, not 0000"):
        EfficientNetLite0().trunk(None)
