"""Networks in folders: ONNX files of texts and pictures, found with what belongs to them, or refused."""

import json
import shutil
import sys
import types

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from starshl import Collection
from starshl.collection import import_texts
from starshl.data.features import Embedder, make_embedder
from starshl.data.features.onnx_model import load_text_model
from starshl.exceptions import ChecksumError, MissingExtraError

WORDS = ["[CLS]", "[SEP]", "[UNK]", "red", "blue", "car", "bread"]
SIDE = 4


def _save(path, nodes, inputs, output, constants=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    given = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    made = [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])]
    graph = helper.make_graph(
        nodes, "small", given, made, [numpy_helper.from_array(np.asarray(v), n) for n, v in constants]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def text_folder(folder, *, seed=0, inputs=("input_ids", "attention_mask"), shape=("n", "length")):
    """Write a network whose token vectors are rows of a table, and its tokenizer."""
    table = np.random.default_rng(seed).normal(size=(len(WORDS), 5)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", inputs[0]], ["tokens"])]
    given = [(name, TensorProto.INT64, list(shape)) for name in inputs]
    _save(folder / "model.onnx", nodes, given, ("tokens", [*shape, 5]), [("table", table)])
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 0), ("[SEP]", 1)])
    tokenizer.enable_truncation(8)
    tokenizer.save(str(folder / "tokenizer.json"))
    return table


def picture_folder(folder, **settings):
    """Write a network that averages the channels of pictures, and the size of its pictures."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixel_values"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["channels"]),
    ]
    given = [("pixel_values", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])]
    _save(folder / "onnx" / "model.onnx", nodes, given, ("channels", ["n", 3]))
    about = {"size": {"height": SIDE, "width": SIDE}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
    (folder / "preprocessor_config.json").write_text(json.dumps(about | settings))


def test_a_text_is_the_mean_of_its_tokens_at_length_one(tmp_path):
    table = text_folder(tmp_path / "words")
    embedder = make_embedder(f"onnx:{tmp_path / 'words'}")
    assert (embedder.name, embedder.takes, embedder.dimension) == ("onnx:words", ("texts",), 5)
    mean = table[[0, 3, 5, 1]].mean(axis=0)
    assert np.allclose(embedder.embed(["red car", "bread"])[0], mean / np.linalg.norm(mean), atol=1e-6)
    assert "1 text of 2 is longer than 8 tokens" in embedder.cut_note(["red " * 7, "blue"])


def test_the_first_token_counts_where_the_model_says_so(tmp_path):
    table = text_folder(tmp_path / "words")
    (tmp_path / "words" / "1_Pooling").mkdir()
    (tmp_path / "words" / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    rows = make_embedder(f"onnx:{tmp_path / 'words'}").embed(["red car", "bread"])
    assert np.allclose(rows, table[0] / np.linalg.norm(table[0]), atol=1e-6)


def test_pictures_are_brought_to_the_size_and_scale_of_the_model(tmp_path):
    picture_folder(tmp_path / "colors")
    embedder = make_embedder(f"onnx:{tmp_path / 'colors'}")
    assert (embedder.takes, embedder.dimension) == (("pictures",), 3)
    red = np.zeros((30, 20, 3), np.uint8)
    red[..., 0] = 255
    assert embedder.embed([red]).round(5).tolist() == [[1, -1, -1]]
    embedder.save(tmp_path / "embedder.star")
    assert np.array_equal(Embedder.load(tmp_path / "embedder.star").embed([red]), embedder.embed([red]))


def test_a_folder_that_moved_is_named_again_and_another_model_is_refused(tmp_path):
    text_folder(tmp_path / "words")
    import_texts(["red car", "blue car", "bread"] * 8, tmp_path / "texts", embedder=f"onnx:{tmp_path / 'words'}")
    shutil.move(tmp_path / "words", tmp_path / "moved")
    load_text_model.cache_clear()
    with Collection(tmp_path / "texts") as texts, pytest.raises(FileNotFoundError, match="embedder='onnx:FOLDER'"):
        texts.embed(["red car"])
    with Collection(tmp_path / "texts", embedder=f"onnx:{tmp_path / 'moved'}") as texts:
        assert texts.search(texts.embed(["bread"]), k=1)[0][0].metadata["text"] == "bread"
    text_folder(tmp_path / "words", seed=1)
    load_text_model.cache_clear()
    with Collection(tmp_path / "texts") as texts, pytest.raises(ChecksumError, match="another one than before"):
        texts.embed(["red car"])
    with (
        Collection(tmp_path / "texts", embedder=f"onnx:{tmp_path / 'words'}") as texts,
        pytest.raises(ChecksumError, match="same weights"),
    ):
        texts.embed(["red car"])


def _without_tokenizer(folder):
    text_folder(folder)
    (folder / "tokenizer.json").unlink()


def _broken_tokenizer(folder):
    text_folder(folder)
    (folder / "tokenizer.json").write_text('{"model": 7}')


def _two_models(folder):
    text_folder(folder)
    shutil.copy(folder / "model.onnx", folder / "b.onnx")
    (folder / "model.onnx").rename(folder / "a.onnx")


def _broken_model(folder):
    text_folder(folder)
    (folder / "model.onnx").write_bytes(b"no model")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda folder: folder.mkdir(), FileNotFoundError, "no ONNX file"),
        (lambda folder: None, FileNotFoundError, "no folder"),
        (_without_tokenizer, FileNotFoundError, r"neither tokenizer\.json"),
        (_two_models, FileNotFoundError, "2 ONNX files"),
        (_broken_tokenizer, ValueError, "not a tokenizer"),
        (_broken_model, ValueError, "not an ONNX model"),
        (
            lambda folder: text_folder(folder, inputs=("ids",)),
            ValueError,
            "takes ids; a model of texts",
        ),
        (lambda folder: text_folder(folder, shape=("n", 128)), ValueError, "fixed shape"),
        (lambda folder: picture_folder(folder, size=None), ValueError, "how large pictures are"),
        (lambda folder: picture_folder(folder, image_std=[0, 0, 0]), ValueError, "one per channel"),
    ],
)
def test_folders_that_lack_something_are_refused(tmp_path, make, error, message):
    make(tmp_path / "model")
    with pytest.raises(error, match=message):
        make_embedder(f"onnx:{tmp_path / 'model'}")


class _Tensor:
    def __init__(self, values):
        self.values = np.asarray(values, np.float32)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class _Model:
    """What is used of a model of sentence-transformers."""

    weight = 1.0
    max_seq_length = 4

    def __init__(self, name, device):
        self.name = name

    def __getitem__(self, number):
        return self

    def state_dict(self):
        return {"weight": _Tensor([self.weight])}

    def encode(self, texts, **_):
        return np.array([[len(text) * self.weight, 1.0] for text in texts])

    def tokenizer(self, text):
        return {"input_ids": text.split()}


def test_a_model_of_sentence_transformers_is_used_where_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="sentence-transformers"):
        make_embedder("sentence-transformers:small")
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=_Model))
    embedder = make_embedder("sentence-transformers:small")
    assert (embedder.name, embedder.takes, embedder.dimension) == ("sentence-transformers:small", ("texts",), 2)
    assert embedder.embed(["four"]).tolist() == [[4, 1]]
    assert "1 text of 2 is longer than 4 tokens" in embedder.cut_note(["a b c d e", "a"])
    embedder.save(tmp_path / "embedder.star")
    assert Embedder.load(tmp_path / "embedder.star").digest == embedder.digest
