"""The networks have the papers' structure; what of torchvision's networks is used, and the origin of their weights."""

import copy
import functools
import hashlib
import re

import pytest
import torch
from torch import nn

from msda_bench.api import DataError, Dropout, InputSpec, PluginError, Predictor, Task
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles, fetch
from msda_bench.plugins import discover
from msda_bench.suite.choice import make
from msda_bench_builtin.backbones import ConvNet, ConvNet1d, Linear, Mlp, Torchvision, headless
from msda_bench_builtin.backbones.headless import torchvision
from tests.data.conftest import Site, only_line, serving
from tests.own import refusal, suite

TWO = Task("classification", 2)
TEN = Task("classification", 10)


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_mlp_is_the_papers_amazon_network():
    network = Mlp().build(TWO, InputSpec((5000,), sparse=True))
    expected = (5000 * 1000 + 1000) + (1000 * 500 + 500) + (500 * 100 + 100)
    assert parameters(network.features) == expected
    assert parameters(network.predictor) == 100 * 2 + 2
    kinds = [type(layer).__name__ for layer in network.features]
    assert kinds == ["Dropout", "BagLinear", "ReLU"] + ["Dropout", "Linear", "ReLU"] * 2
    assert {layer.rate for layer in network.features if isinstance(layer, Dropout)} == {0.7}


def test_convnet_is_the_papers_digits_network():
    network = ConvNet().build(TEN, InputSpec((3, 32, 32)))
    convolutions = (3 * 64 + 64 * 128 + 128 * 256) * 9 + 64 + 128 + 256
    assert network.feature_dim == 2304
    assert parameters(network.features) == convolutions
    assert parameters(network.predictor) == (2304 * 2048 + 2048) + (2048 * 1024 + 1024) + (1024 * 10 + 10)
    sizes = []
    x = torch.rand(2, 3, 32, 32)
    for layer in network.features:
        x = layer(x)
        sizes.append(tuple(x.shape[1:]))
    assert sizes[2::3] == [(64, 15, 15), (128, 7, 7), (256, 3, 3)]
    assert network.predictor(x).shape == (2, 10)


def test_convnet_refuses_small_images_and_other_input():
    ConvNet().build(TEN, InputSpec((3, 15, 15)))
    for shape, says in (((3, 14, 32), "at least 15x15, not"), ((5000,), "needs images")):
        with pytest.raises(PluginError, match=says):
            ConvNet().build(TEN, InputSpec(shape))


def test_convnet1d_averages_its_convolutions_over_time():
    network = ConvNet1d(channels=(4, 6), kernel=5).build(TEN, InputSpec((3, 20)))
    assert parameters(network.features) == (3 * 5 + 1) * 4 + (4 * 5 + 1) * 6
    first, second = (layer for layer in network.features.modules() if isinstance(layer, nn.Conv1d))
    x = given = torch.rand(2, 3, 20)
    for convolution in (first, second):
        x = nn.functional.conv1d(x, convolution.weight, convolution.bias, padding=2).relu()
    torch.testing.assert_close(network.features(given), x.mean(2))
    skipping = ConvNet1d(channels=(4, 6), kernel=5, stride=4).build(TEN, InputSpec((3, 20))).features
    assert [layer.kernel_size for layer in skipping.modules() if isinstance(layer, nn.Conv1d)] == [(8,), (5,)]
    for shape in ((12,), (3, 8, 8)):
        with pytest.raises(PluginError, match="needs signals"):
            ConvNet1d().build(TEN, InputSpec(shape))


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("norm", ["none", "batch", "domain", "layer"])
def test_padding_a_signal_changes_nothing_in_training_or_test(norm, stride):
    """Neither the features nor the statistics of batch normalisation; where all is known, they are torch's."""
    backbone, channels, time = ConvNet1d(channels=(4, 6), kernel=4, stride=stride, norm=norm), 2, 20
    masked = backbone.build(TEN, InputSpec((2 * channels, time), mask=channels)).features
    x = torch.cat([torch.randn(5, channels, time), torch.ones(5, channels, time)], 1)
    x[1, :, 13:] = 0
    longer = nn.functional.pad(x, (0, 11))
    other, plain = copy.deepcopy(masked), backbone.build(TEN, InputSpec((2 * channels, time))).features
    torch.testing.assert_close(other(longer), masked(x))
    torch.testing.assert_close(other.state_dict(), masked.state_dict())
    torch.testing.assert_close(other.eval()(longer), masked.eval()(x))
    whole, known = x.clone(), masked.train()
    whole[:, channels:] = 1
    before = [value.clone() for value in known.state_dict().values()]
    plain.load_state_dict(dict(zip(plain.state_dict(), before, strict=True)))
    torch.testing.assert_close(plain(whole), known(whole))
    torch.testing.assert_close(plain.eval()(whole), known.eval()(whole))


def test_linear_appends_the_bias_column():
    network = Linear().build(Task("regression"), InputSpec((1,)))
    assert network.features(torch.tensor([[2.0], [3.0]])).tolist() == [[2, 1], [3, 1]]
    assert parameters(network.predictor) == 2
    plain = Linear(bias_column=False).build(Task("regression"), InputSpec((1,)))
    assert plain.features(torch.tensor([[2.0]])).tolist() == [[2]]
    assert parameters(plain.predictor) == 2


SMALL = "shufflenet_v2_x0_5"
FAMILIES = {
    "alexnet": 4096, "convnext_tiny": 768, "densenet121": 1024, "efficientnet_v2_s": 1280, "maxvit_t": 512,
    "mnasnet0_5": 1280, "mobilenet_v2": 1280, "mobilenet_v3_small": 1024, "regnet_x_400mf": 400, "resnet18": 512,
    "resnext50_32x4d": 2048, SMALL: 1024, "swin_t": 768, "swin_v2_t": 768, "vgg11": 4096, "vit_b_32": 768,
    "wide_resnet50_2": 2048,
}  # fmt: skip


@functools.cache
def network(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        made = torchvision("models").get_model(name, weights=None)
    return made.eval()


@pytest.fixture
def supplied(where):
    """A backbone with weights from a file of this content, and its files."""

    def make_one(name, content, **params):
        path = where.given / "mine.pth"
        path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
        weights = {"file": "mine.pth", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        return Torchvision(model=name, weights=weights, **params), LocalFiles(where, "mine")

    return make_one


def as_published(name):
    """The weights under the names in torchvision's files, without counters that old files do not have."""
    old = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))(\d)")
    state = network(name).state_dict()
    for key in [*state]:
        state[old.sub(r"\1.\2", key)] = state.pop(key)
        if name == "densenet121" and key.endswith("num_batches_tracked"):
            del state[old.sub(r"\1.\2", key)]
    return state


@pytest.mark.parametrize("name", ["densenet121", "mnasnet0_5", "mobilenet_v3_small", "regnet_y_400mf", SMALL])
def test_features_are_the_input_of_the_last_layer(supplied, name):
    backbone, files = supplied(name, as_published(name))
    images = torch.rand(2, 3, 64, 64)
    mean, deviation = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[:, None, :, None, None]
    last = [layer for layer in network(name).modules() if isinstance(layer, nn.Linear)][-1]
    with torch.no_grad():
        found = backbone.trunk(files).eval()(images)
        torch.testing.assert_close(last(found), network(name)((images - mean) / deviation))
    assert found.shape == (2, backbone.width)


@pytest.mark.parametrize(("name", "width"), FAMILIES.items())
def test_one_network_of_each_family_gives_its_features(name, width):
    assert (headless.width(name), headless.fault(name, 224, 224)) == (width, None)


class Code:
    def __reduce__(self):
        return print, ("code has run",)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"<!DOCTYPE html><title>404</title>", "holds no weights, or code as well, which is never run; save "),
        ({"fc.weight": Code()}, "holds no weights, or code as well, which is never run; save "),
        (b"", "empty \\(0 bytes\\); name a file of weights"),
        (b"PK\x03\x04 and then nothing", "cannot be read as weights: .*; replace it"),
        ({0: torch.zeros(1)}, "holds a dict with 0, not weights by name; "),
        ([1, 2], "holds a list, not weights by name; save a `state_dict\\(\\)` alone"),
        ({"state_dict": {}, "epoch": 3}, "holds a dict with state_dict, epoch, not weights by name; "),
        ({"a": torch.zeros(2, 2).to_sparse()}, "holds a dict with a, not weights by name; "),
        ({"a": torch.zeros(2, 2, device="meta")}, "holds a dict with a, not weights by name; "),
        ({"a\x1b[2J": torch.zeros(1)}, "not the weights of this network: .* 1 not in the network \\(a "),
    ],
)
def test_a_wrong_file_is_named_in_one_line_and_runs_no_code(supplied, capsys, content, fault):
    backbone, files = supplied(SMALL, content)
    line = only_line(backbone.trunk, files)
    assert re.search(f"mine.pth: {fault}", line)
    assert line.isprintable()
    assert "code has run" not in capsys.readouterr().out


def test_weights_of_another_network_are_refused_with_some_of_their_names(supplied):
    state = network(SMALL).state_dict()
    state["conv1.0.weight"] = state["conv1.0.weight"][:5]
    state["more"] = state.pop("conv5.1.bias")
    state["conv1.1.weight"] = state["conv1.1.weight"].long()
    state["conv5.0.weight"] = torch.zeros(1, dtype=torch.float64).expand(1 << 44)  # 128 TB, if it were ever copied
    backbone, files = supplied(SMALL, state)
    line = only_line(backbone.trunk, files)
    assert "1 missing (conv5.1.bias); 1 not in the network (more); 2 of another shape (conv1.0.weight (5," in line
    assert "1 of another kind (conv1.1.weight torch.int64); name the network" in line


def test_a_file_may_hold_another_classifier_and_half_precision(supplied):
    state = copy.deepcopy(network(SMALL)).half().state_dict()
    state["fc.weight"], state["fc.bias"] = torch.zeros(7, 1024), torch.zeros(7)
    backbone, files = supplied(SMALL, state)
    assert {value.dtype for value in backbone.trunk(files).parameters()} == {torch.float32}


@pytest.fixture
def published(monkeypatch):
    """Serves a small network's weights at torchvision's address; `published(digits)` sets the hash in their name."""
    member = torchvision("models").get_model_weights(SMALL)["IMAGENET1K_V1"]
    with serving(Site({})) as site:

        def publish(content, digits):
            site.pages[f"/{SMALL}-{digits}.pth"] = content
            monkeypatch.setattr(member.value, "url", f"{site.address}/{SMALL}-{digits}.pth")
            seen = functools.partial(member.value.transforms, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
            monkeypatch.setattr(member.value, "transforms", seen)
            return site

        yield publish


def test_named_weights_are_fetched_on_request_and_checked_by_the_hash_in_their_name(published, where, tmp_path):
    torch.save(network(SMALL).state_dict(), tmp_path / "weights")
    content = (tmp_path / "weights").read_bytes()
    digits = hashlib.sha256(content).hexdigest()[:8]
    site = published(content, digits)
    backbone = Torchvision(model=SMALL)
    with pytest.raises(DataError, match=f"torchvision/{SMALL}-{digits}.pth: not in"):
        backbone.trunk(LocalFiles(where, "torchvision"))
    assert not site.asked
    fetch(backbone.files, where)
    trunk = backbone.trunk(LocalFiles(where, "torchvision"))
    assert trunk[0].mean.flatten().tolist() == [0.5, 0.5, 0.5]
    assert trunk[0].deviation.flatten().tolist() == [0.25, 0.25, 0.25]
    assert torch.equal(trunk.state_dict()["1.conv1.0.weight"], network(SMALL).state_dict()["conv1.0.weight"])
    fetch(backbone.files, where)
    assert len(site.asked) == 1


def test_a_key_holds_name_and_hash_and_does_not_fit_other_weights(published):
    published(b"", "0123456789")
    chosen = make(discover(), "backbone", "torchvision", {"model": SMALL, "weights": "IMAGENET1K_V1"})
    assert chosen.spec.params["weights"] == {"name": "IMAGENET1K_V1", "sha256": "0123456789"}
    assert make(discover(), "backbone", "torchvision", chosen.spec.params).spec == chosen.spec
    published(b"", "76543210")
    with pytest.raises(PluginError, match=r"IMAGENET1K_V1 has sha256 76543210\.\.\. in this torchvision, not 01234567"):
        make(discover(), "backbone", "torchvision", chosen.spec.params)


@pytest.mark.parametrize(
    ("params", "fault"),
    [
        ({"model": "resnet19"}, r"torchvision has no network 'resnet19' \(did you mean 'resnet18'\?\)"),
        ({"weights": "IMAGENET_V1"}, r"no weights for resnet18 of the name 'IMAGENET_V1' \(did you mean 'IMAGENET1K"),
        ({"weights": "none"}, "features of random weights are useless: name weights, or set trainable: all"),
        ({"weights": {"file": "x", "sha256": "0123"}}, "sha256 must be 64 digits of 0-9 and a-f"),
        ({"weights": {"file": "x"}}, "must be the name of torchvision's weights, {file: PATH, "),
        ({"weights": 3}, "must be the name of torchvision's weights, {file: PATH, sha256: HEX}, or none"),
        ({"model": "squeezenet1_0"}, "squeezenet1_0 has no linear layer at its end, so its features cannot be taken"),
        ({"model": "googlenet"}, "googlenet classifies in several places, so its features cannot be taken; choose an"),
    ],
)
def test_impossible_parameters_are_refused_in_one_line(params, fault):
    with pytest.raises(PluginError, match=fault) as caught:
        make(discover(), "backbone", "torchvision", params)
    assert len(caught.value.lines) == 1


@pytest.mark.parametrize(
    ("data", "backbone", "fault"),
    [
        ({"crop": 48, "scale": [0.5, 1], "flip": True, "jitter": 0.1, "grey": 0.1}, {"trainable": "all"}, None),
        ({"crop": 64, "flip": False, "jitter": 0}, {"trainable": "head"}, None),  # nothing is changed
        ({}, {"trainable": "none"}, None),
        ({"flip": True, "crop": 48}, {"trainable": "none"}, "folder.crop: .* used: .*: all, or remove crop, flip"),
        ({"grey": 0.1, "scale": [1, 1]}, {"trainable": "none"}, "scale: cannot be used: .* or remove scale, grey"),
        ({}, {"batch_norm": "train"}, "backbone.torchvision.batch_norm: changes nothing, .*; set trainable: all"),
        ({}, {"trainable": "none", "hidden": [9]}, "hidden: changes nothing, .*; set trainable: head or rem"),
        # Also the default, which whoever writes it takes to have an effect.
        ({}, {"trainable": "none", "dropout": 0.5}, "dropout: changes nothing, .*; set trainable: head or rem"),
    ],
)
def test_options_without_effect_are_refused_when_the_suite_is_loaded(tmp_path, capsys, data, backbone, fault):
    folder = {"folder": "nowhere", "domains": ["a", "b", "c"], "classes": 3, "side": 64, "train": 9}
    network = {"torchvision": {"model": "resnet18", **backbone}}
    path = suite(tmp_path, "image_folder", folder | data, backbone=network)
    assert re.search(fault, refusal(capsys, path)) if fault else main(["validate", path]) == 0


def test_unsuitable_images_are_refused_before_anything_is_read():
    backbone = Torchvision(model="vit_b_32")
    assert backbone.embedding(InputSpec((3, 224, 224))).width == 768
    with pytest.raises(PluginError, match="vit_b_32 does not accept images of 64 x 64: Wrong image height"):
        backbone.embedding(InputSpec((3, 64, 64)))
    with pytest.raises(PluginError, match="backbone torchvision needs images"):
        backbone.embedding(InputSpec((64,)))


def test_a_fine_tuned_network_draws_nothing_from_the_global_generator(where):
    backbone = Torchvision(model="efficientnet_b0", weights=None, trainable="all")
    features = backbone.build(TWO, InputSpec((3, 32, 32)), LocalFiles(where)).features.train()
    before = torch.get_rng_state()
    features(torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert torch.equal(torch.get_rng_state(), before)
    dropped = [layer.rate for layer in features.modules() if isinstance(layer, headless.Dropout)]
    assert dropped == [0.2, 0.5]


def test_every_scheme_that_copies_a_fine_tuned_network_keeps_its_weights_and_statistics(supplied):
    """Copies once drew new weights and had statistics of zero; with such copies this fails, at best_single first."""
    state = network(SMALL).state_dict()
    for name, value in state.items():
        if name.endswith("running_mean"):
            value.fill_(0.3)
    registry = discover()
    backbone, files = supplied(SMALL, state, trainable="all", hidden=(8,), norm="batch")
    d_a = registry.entry("discrepancy", "d_A").create({})
    copied = set()
    trained = [one for one in registry.entries if one.kind == "scheme" and not issubclass(one.cls, Predictor)]
    for entry in trained:
        built = backbone.build(Task("classification", 3), InputSpec((3, 32, 32)), files)
        scheme = entry.create({})
        critic = scheme.build(built, 3, d_a if scheme.uses_discrepancy else None)
        wanted = built.features[0].state_dict()
        for trunk in (module for module in critic.modules() if isinstance(module, type(built.features[0]))):
            copied.add(entry.name)
            torch.testing.assert_close(trunk.state_dict(), wanted, rtol=0, atol=0)
            kept, own = ({value.data_ptr() for value in part.parameters()} for part in (built.features, trunk))
            assert not kept & own
    assert {"ensemble", "best_single", "decision", "kd3a"} <= copied
