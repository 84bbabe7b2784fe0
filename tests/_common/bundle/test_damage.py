"""Files that were damaged, edited or made up are refused, and cost no more memory than their size allows."""

import json
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save

import starshl
from starshl._common.bundle import FORMAT, pack_values, read_bundle, read_checksum, unpack_values
from starshl._common.files import array_digest
from starshl._common.strict_json import parse_json
from starshl.exceptions import BundleFormatError

REFUSALS = (BundleFormatError, ValueError, FileNotFoundError)


GARBAGE = (None, -1, 0, 10**15, 1.5, float("nan"), "", "os:system", [], {}, [1, 2], True, "<f8", "|O", "a" * 999)


def seal(header, arrays):
    """Return a file with a right checksum around whatever the header says, NaN included."""
    digest = array_digest(arrays, head=json.dumps(header, sort_keys=True) + "\n")
    return save(arrays, metadata={"starshl": json.dumps({"header": header, "sha256": digest}, sort_keys=True)})


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Truncate, overwrite, insert or delete bytes, or change letters of the header."""
    damaged = bytearray(content)
    header_end = 8 + int.from_bytes(content[:8], "little")
    place = int(rng.integers(len(content)))
    match rng.integers(6):
        case 0:
            damaged = damaged[:place]
        case 1:
            damaged[place] ^= 1 << int(rng.integers(8))
        case 2:
            damaged[place:place] = rng.bytes(int(rng.integers(1, 20)))
        case 3:
            del damaged[place : place + int(rng.integers(1, 20))]
        case 4:
            damaged[int(rng.integers(8, header_end))] = int(rng.integers(32, 127))
        case 5:
            damaged[: header_end // 2] = rng.bytes(8) + damaged[8 : header_end // 2]
    return bytes(damaged)


@pytest.mark.parametrize("name", ["StarSHL", "graph", "LSHash"])
def test_damaged_files_are_refused_or_give_the_same_model(name, models, rows, tmp_path):
    path = tmp_path / "model.star"
    models[name].save(path)
    content, scores = path.read_bytes(), models[name].decision_function(rows)
    rng = np.random.default_rng(1)
    n_refused = 0
    for _ in range(400):
        path.write_bytes(damage(content, rng))
        try:
            loaded = starshl.load(path)
        except REFUSALS:
            n_refused += 1
        else:
            assert np.array_equal(loaded.decision_function(rows), scores)
    assert n_refused > 350


def edit_leaf(tree, rng):
    """Replace, delete or rename one entry somewhere in a header."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[rng.integers(len(keys))]
        if isinstance(tree[key], (dict, list)) and tree[key] and rng.random() < 0.85:
            tree = tree[key]
            continue
        if isinstance(tree, dict) and rng.random() < 0.2:
            value = tree.pop(key)
            if rng.random() < 0.5:
                tree[str(GARBAGE[rng.integers(len(GARBAGE))])] = value
        else:
            tree[key] = GARBAGE[rng.integers(len(GARBAGE))]
        return


def edit_array(arrays, rng):
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    match rng.integers(6):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = array[: len(array) // 2]
        case 2:
            arrays[name] = np.ascontiguousarray(array.T[:1])
        case 3:
            arrays[name] = array.astype(np.float32 if array.dtype != np.float32 else np.int8)
        case 4:
            arrays[name] = np.full_like(array, np.nan if array.dtype.kind == "f" else 77)
        case 5:
            arrays[name] = array.ravel()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["StarSHL", "graph", "LSHash"])
def test_files_edited_with_a_right_checksum_are_refused_or_give_a_model_that_works(name, models, rows, tmp_path):
    path = tmp_path / "model.star"
    models[name].save(path)
    rng = np.random.default_rng(2)
    n_refused = 0
    for _ in range(300):
        header, arrays = read_bundle(path)
        if rng.random() < 0.6:
            edit_leaf(header, rng)
        else:
            edit_array(arrays, rng)
        edited = tmp_path / "edited.star"
        edited.write_bytes(seal(header, arrays))
        try:
            loaded = starshl.load(edited)
        except REFUSALS:
            n_refused += 1
        else:
            loaded.n_jobs = None
            assert loaded.decision_function(rows).shape == (len(rows), models[name].n_bits)
    assert n_refused > 150


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"format": FORMAT + 1}, "newer starshl"),
        ({"format": 0}, "format number"),
        ({"format": "1"}, "format number"),
        ({"method": "os:system"}, "no method 'os:system'"),
        ({"method": "starshl._common.bundle:write_bundle"}, "no method"),
        ({"method": None}, "no method"),
        ({"kernels": [{"name": "os.system", "fields": {}}] * 6}, "kernel 'os.system'"),
        ({"kernels": []}, "does not match"),
        ({"n_train": 3}, "does not match"),
        ({"n_train": 10**15}, "does not match"),
        ({"fitted": {"predict": {"kind": "value", "value": 1}}}, "complete model|learned attribute"),
    ],
)
def test_edited_headers_are_explained(edit, message, models, tmp_path):
    path = tmp_path / "model.star"
    models["StarSHL"].save(path)
    header, arrays = read_bundle(path)
    path.write_bytes(seal(header | edit, arrays))
    with pytest.raises(REFUSALS, match=message):
        starshl.load(path)


@pytest.mark.parametrize("number", [0, -1, 2**31, 10**15, True, 3.0, "3", None], ids=repr)
def test_number_of_features_that_the_file_cannot_have_is_refused(number, models, tmp_path):
    path = tmp_path / "model.star"
    models["LSHash"].save(path)
    header, arrays = read_bundle(path)
    header["fitted"]["n_features_in_"] = {"kind": "value", "value": number}
    path.write_bytes(seal(header, arrays))
    with pytest.raises(BundleFormatError, match="n_features_in_"):
        starshl.load(path)


def test_attributes_that_are_not_learned_are_never_set(models, tmp_path):
    path = tmp_path / "model.star"
    models["LSHash"].save(path)
    for name in ("transform", "__class__", "_n_features_out", "get_params", "x y_"):
        header, arrays = read_bundle(path)
        header["fitted"][name] = {"kind": "value", "value": 1}
        (tmp_path / "edited.star").write_bytes(seal(header, arrays))
        with pytest.raises(BundleFormatError, match="not a learned attribute"):
            starshl.load(tmp_path / "edited.star")


def test_deeply_nested_header_is_refused(tmp_path):
    path = tmp_path / "deep.star"
    path.write_bytes(save({}, metadata={"starshl": "[" * 200_000}))
    with pytest.raises(BundleFormatError):
        starshl.load(path)


def test_graph_with_indices_out_of_range_is_refused(models, tmp_path):
    path = tmp_path / "model.star"
    models["graph"].save(path)
    header, arrays = read_bundle(path)
    name = next(name for name in arrays if name.endswith("edge_columns"))
    arrays[name] = arrays[name].copy()
    arrays[name][-1] = 10**9
    path.write_bytes(seal(header, arrays))
    with pytest.raises(BundleFormatError, match="FittedGraphGaussian"):
        starshl.load(path)


def text_file(tmp_path, **edits):
    """Write a sealed file with one text entry, edited, and return its path."""
    plain, arrays = pack_values({"words": np.array(["ab", "c", ""])}, "v.")
    arrays = {name: edits.get(name.removeprefix("v.words."), array) for name, array in arrays.items()}
    plain["words"] |= {key: edits[key] for key in ("dtype", "shape") if key in edits}
    path = tmp_path / "text.star"
    path.write_bytes(seal({"format": FORMAT, "values": plain}, arrays))
    return path


@pytest.mark.parametrize(
    "edits",
    [
        {"dtype": "<U500000000"},
        {"dtype": "<U9999999999"},
        {"dtype": "<U1"},
        {"dtype": "<M8[s]"},
        {"dtype": "(1000000000,)<U9"},
        {"dtype": 3},
        {"shape": [-1]},
        {"shape": [3, -1]},
        {"shape": [10**12]},
        {"shape": [2**62, 4]},
        {"shape": [True, 3]},
        {"shape": [1.0, 3]},
        {"shape": 3},
        {"shape": [1] * 40 + [3]},
        {"ends": np.array([2, 1, 3])},
        {"ends": np.array([-1, 2, 3])},
        {"ends": np.array([2**63 - 1, -(2**63), 3])},
        {"ends": np.array([2, 3, 10**9])},
        {"ends": np.array([2, 3, 2])},
        {"ends": np.array([2.0, 3.0, 3.0])},
        {"ends": np.array([[2, 3, 3]])},
        {"ends": np.array([3])},
        {"utf8": np.array([255, 254, 253], np.uint8)},
        {"utf8": np.array([97.0, 98.0, 99.0])},
        {"utf8": np.array([97, 98, 99, 100], np.uint8)},
    ],
    ids=str,
)
def test_crafted_text_is_refused_without_using_memory(edits, tmp_path):
    header, arrays = read_bundle(text_file(tmp_path, **edits))
    tracemalloc.start()
    try:
        with pytest.raises(BundleFormatError):
            unpack_values(header["values"], arrays, "v.")
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


def test_many_wide_text_entries_share_one_limit_of_memory():
    plain, arrays = pack_values({f"words{k}": np.array(["ab"], dtype="U1000") for k in range(100)})
    for spec in plain.values():
        spec["dtype"] = "<U15000000"  # 60 MB each
    with pytest.raises(BundleFormatError, match="Text of fixed width"):
        unpack_values(plain, arrays)


def test_text_that_could_not_be_read_back_is_not_saved():
    with pytest.raises(TypeError, match="dtype object"):
        pack_values({"words": np.empty(1, dtype="U20000000")})


@pytest.mark.parametrize(
    "edit",
    [
        {"dtype": "|S500000000"},
        {"dtype": "|S0"},
        {"dtype": "<U2"},
        {"dtype": "|V2"},
        {"shape": [-1]},
        {"shape": [3]},
        {"shape": [2**63, 2]},
    ],
    ids=str,
)
def test_crafted_byte_strings_are_refused(edit):
    plain, arrays = pack_values({"words": np.array([b"ab", b"cd"])})
    plain["words"] |= edit
    with pytest.raises(BundleFormatError):
        unpack_values(plain, arrays)


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "value", "value": {"float": "1"}},
        {"kind": "value", "value": {"float": ["inf"]}},
        {"kind": "value", "value": [1]},
        {"kind": "list", "value": [[1]]},
        {"kind": "tuple", "value": [{}]},
        {"kind": "objects", "value": [[1]]},
        {"kind": "objects", "value": "abc"},
        {"kind": ["value"], "value": 1},
        {"value": 1},
        [],
        None,
    ],
    ids=str,
)
def test_values_of_unknown_form_are_refused(spec):
    with pytest.raises(BundleFormatError):
        unpack_values({"setting": spec}, {})


@pytest.mark.parametrize("number", [True, 1.0, "1", None, 0, -1, float("nan"), [1], 10**30], ids=str)
def test_format_number_must_be_a_known_integer(number, models, tmp_path):
    path = tmp_path / "model.star"
    models["LSHash"].save(path)
    header, arrays = read_bundle(path)
    path.write_bytes(seal(header | {"format": number}, arrays))
    with pytest.raises(BundleFormatError):
        starshl.load(path)


def nested(depth):
    return json.loads("[" * depth + "]" * depth)


@pytest.mark.parametrize("depth", [70, 300, 900])
@pytest.mark.parametrize("place", ["extra", "params", "fitted"])
def test_nested_headers_with_a_right_checksum_are_refused(depth, place, models, tmp_path):
    path = tmp_path / "model.star"
    models["LSHash"].save(path)
    header, arrays = read_bundle(path)
    header[place] = {"deep": nested(depth)}
    path.write_bytes(seal(header, arrays))
    for read in (starshl.load, read_checksum):
        with pytest.raises(BundleFormatError, match="deep"):
            read(path)


@pytest.mark.parametrize("text", ["{", "[" * 200_000, '{"header": 3}', '{"header": {"format": 1}}', "3", "null", "NaN"])
def test_reading_the_checksum_of_a_damaged_file_says_so(text, tmp_path):
    path = tmp_path / "model.star"
    path.write_bytes(save({}, metadata={"starshl": text}))
    with pytest.raises(BundleFormatError, match=r"model\.star"):
        read_checksum(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 1}', "twice"),
        ('[{"b": {"a": 1, "a": 2}}]', "twice"),
        ("[NaN]", "NaN"),
        ("[-Infinity]", "Infinity"),
        ("[1e999]", "too large"),
        ("[" * 65 + "]" * 65, "deep"),
        ('{"a":' * 70 + "1" + "}" * 70, "deep"),
        ("[" * 10**6, "deep"),
        ("1" * 10_000, "digits"),
    ],
    ids=lambda text: text[:20],
)
def test_json_with_a_doubtful_meaning_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_json(text)


def test_json_of_ordinary_depth_is_read():
    assert parse_json('{"a": [1, 2.5, null, "x", {"b": true}]}') == {"a": [1, 2.5, None, "x", {"b": True}]}
    assert parse_json("[" * 60 + "]" * 60) == nested(60)
