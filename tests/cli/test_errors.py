"""Bad input ends in one sentence, exit code 2, no traceback, and nothing half-written."""

import os
import re
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from safetensors.numpy import save_file
from scipy import sparse

from starshl import StarRidge, StarSHL


@pytest.fixture
def refused(starshl, tmp_path):
    """A function that runs a command which must fail, and returns its sentence; nothing new may be on disk."""

    def run(*words):
        before = sorted(os.listdir(tmp_path))
        result = starshl(*words)
        assert result.exit_code == 2, result.output
        assert isinstance(result.exception, SystemExit)
        assert result.stdout == ""
        lines = [line for line in result.stderr.splitlines() if not line.startswith("Warning:")]
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("Error: ")
        assert sorted(os.listdir(tmp_path)) == before
        return lines[0]

    return run


BAD_TABLES = {
    "NaN in a named column": ("a,b,k\n1,2,0\n3,nan,1\n", r"a missing value \('nan'\) in column 'b', line 3.* --impute"),
    "infinity in a named column": ("a,b,k\n1,2,0\ninf,2,1\n", r"infinity \('inf'\) in column 'a', line 3"),
    "NaN without a header": ("1,2,0\n3,nan,1\n", "column 1, line 2"),
    "an empty cell": ("a,b,k\n1,2,0\n3,,1\n", "an empty cell in column 'b', line 3"),
    "text among numbers": ("a,b,k\n1,two,0\n3,4,1\n", "'two' in column 'b', line 2"),
    "a short line": ("a,b,k\n1,2,0\n3,4\n", "has 2 cells in line 3 and 3 in the first line"),
    "a long line": ("a,b,k\n1,2,0\n3,4,5,6\n", "has 4 cells in line 3"),
    "rows shorter than the header": ("a,b,k\n1,2\n3,4\n", "has 2 cells in line 2 and 3 in the first line"),
    "a header alone": ("a,b,k\n", "a header but no rows"),
    "nothing": ("", "is empty"),
    "one row": ("a,b,k\n1,2,0\n", "minimum of 2"),
    "a name twice": ("a,a,k\n1,2,0\n3,4,1\n", "two columns called 'a'"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_csv_is_refused_with_the_place(case, tmp_path, refused):
    text, expected = BAD_TABLES[case]
    (tmp_path / "t.csv").write_text(text)
    label = "k" if text.startswith("a") else "2"
    sentence = refused("fit", tmp_path / "t.csv", "--labels", label, "-o", tmp_path / "m")
    assert re.search(expected, sentence), sentence


def test_text_that_is_not_utf8_is_refused(tmp_path, refused):
    (tmp_path / "t.csv").write_bytes("a,ü\n1,2\n".encode("latin-1"))
    assert "UTF-8" in refused("fit", tmp_path / "t.csv", "-o", tmp_path / "m")


BAD_ARRAYS = {
    "NaN": (np.array([[1.0, np.nan], [1, 2]]), "a missing value (NaN) in column 1"),
    "a vector": (np.zeros(4), r"shape (4,)"),
    "no rows": (np.zeros((0, 3)), "shape (0, 3)"),
    "text": (np.array([["a", "b"]]), "must hold numbers"),
    "complex numbers": (np.ones((3, 2), complex), "must hold numbers"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_a_bad_array_is_refused(case, tmp_path, refused):
    array, expected = BAD_ARRAYS[case]
    np.save(tmp_path / "x.npy", array)
    assert expected in refused("fit", tmp_path / "x.npy", "-o", tmp_path / "m")


def test_array_files_with_objects_or_damage_are_refused(tmp_path, refused):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "whole.npz", X=np.zeros((50, 5)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:700])
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "junk.npy").write_bytes(b"hello")
    (tmp_path / "junk.parquet").write_bytes(b"hello")
    np.savez(tmp_path / "nameless.npz", rows=np.zeros((5, 5)))
    for name in ("objects.npy", "cut.npz", "junk.npz", "junk.npy"):
        assert "not a readable array file" in refused("fit", tmp_path / name, "-o", tmp_path / "m")
    assert "not a readable Parquet file" in refused("fit", tmp_path / "junk.parquet", "-o", tmp_path / "m")
    assert "none called 'X'" in refused("fit", tmp_path / "nameless.npz", "-o", tmp_path / "m")


BAD_WORDS = {
    "a missing input": (("fit", "absent.npy"), "There is no file"),
    "an unknown kind of file": (("fit", "t.xlsx"), "ends in '.xlsx'"),
    "a missing output folder": (("fit", "blobs.npz", "-o", "absent/m"), "There is no folder"),
    "a folder as output": (("fit", "blobs.npz", "-o", "."), "is a folder"),
    "an unknown method": (("fit", "blobs.npz", "--method", "StarSLH"), "Did you mean StarSHL"),
    "a parameter of another method": (("fit", "blobs.npz", "-m", "LSHash", "--C", "3"), "LSHash has no parameter 'C'"),
    "the paper's settings of another method": (("fit", "blobs.npz", "-m", "LSHash", "--paper"), "--paper stands for"),
    "settings of two methods": (
        ("fit", "blobs.npz", "--C", "3", "--unlabeled", "ignore"),
        "Only StarSHL has C, and only StarRidge has unlabeled=ignore. Leave one of them out.",
    ),
    "the paper's settings and those of another method": (
        ("fit", "blobs.npz", "--paper", "--set", "head=linear"),
        "Only StarSHL has paper, and only StarRidge has head.",
    ),
    "lengths that are no numbers": (("fit", "blobs.npz", "--bits", "8;16"), "separated by commas, such as 8,16,32,64"),
    "a length below one": (("fit", "blobs.npz", "--bits", "8,0"), "every length must be at least 1"),
    "a length named twice": (("fit", "blobs.npz", "--bits", "8,16,8"), "names a length twice"),
    "probabilities in a vector": (
        ("predict", "model.safetensors", "blobs.npz", "--proba", "-o", "labels.npy"),
        "it may be .csv, .npz",
    ),
    "a setting without a value": (("fit", "blobs.npz", "--set", "tol"), "NAME=VALUE"),
    "a setting out of range": (("fit", "blobs.npz", "--C", "-1"), "C is -1"),
    "an unknown kernel word": (("fit", "blobs.npz", "--kernels", "rbf"), "'scaled', 'rich', 'paper', 'graph'"),
    "clusters against labels": (
        ("fit", "blobs.npz", "--n-codewords", "7"),
        "Leave --n-codewords out when rows have labels",
    ),
    "unknown kernels": (
        ("fit", "blobs.npz", "--kernels", "poly"),
        "--kernels is 'poly'; choose one of 'scaled', 'rich', 'paper', 'graph', 'precomputed'.",
    ),
    "labels and none": (("fit", "blobs.npz", "--labels", "y", "--no-labels"), "contradict"),
    "an unknown column": (("fit", "blobs.csv", "--labels", "kinds"), "has no column 'kinds' (nearest: 'kind')"),
    "an unknown array": (("fit", "blobs.npz", "--labels", "z"), "'X', 'y'"),
    "a column of an array": (("fit", "blobs.npy", "--labels", "kind"), "has no column 'kind'. It holds one matrix"),
    "a column to drop from an array": (("fit", "blobs.npy", "--drop", "a"), "has no column 'a'. It holds one matrix"),
    "no columns left": (
        ("fit", "blobs.csv", "--drop", "a", "--drop", "b", "--drop", "c", "-l", "kind"),
        "no column left",
    ),
    "an unknown kind of codes": (("encode", "model.safetensors", "blobs.npy", "-o", "c.txt"), "ends in '.txt'"),
    "a missing model": (("encode", "absent", "blobs.npy", "-o", "c.npy"), "There is no model file"),
    "a folder as model": (("info", "."), "it is a folder, and a model is one file"),
    "another file as model": (
        ("info", "blobs.npz"),
        "model file: it seems to be a NumPy archive (.npz).",
    ),
    "a table as model": (("predict", "blobs.csv", "blobs.npy"), "it seems to be a table in text (.csv)."),
    "a matrix as model": (("encode", "blobs.npy", "blobs.csv", "-o", "c.npy"), "it seems to be a NumPy array (.npy)."),
    "a word that is no number": (("fit", "blobs.npz", "--bits", "many"), "--bits"),
    "no support rows": (("compress", "model.safetensors", "--support", "0"), "'--support' / '-s'"),
    "a demonstration without bits": (("demo", "--bits", "0"), "'--bits' / '-b'"),
    "pictures without height": (("index", "binarize", "new", "blobs.npy", "--pictures", "0x3"), "--pictures is 0"),
    "no input": (("fit",), "Missing argument 'INPUT'. See: starshl fit --help"),
    "an unknown option": (("fit", "blobs.npz", "--bitz", "3"), "--bitz"),
    "an unknown command": (("fitt",), "fitt"),
}


@pytest.mark.parametrize("case", BAD_WORDS)
def test_bad_words_are_refused(case, files, tmp_path, monkeypatch, refused):
    words, expected = BAD_WORDS[case]
    monkeypatch.chdir(files)
    if words[0] == "fit" and "-o" not in words:
        words = (*words, "-o", str(tmp_path / "m"))
    assert expected in refused(*words)


def test_rows_that_do_not_fit_the_model_are_refused(files, tmp_path, refused):
    np.save(tmp_path / "wide.npy", np.zeros((2, 5)))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    wide = refused("encode", files / "model.safetensors", tmp_path / "wide.npy", "-o", tmp_path / "c.npy")
    assert "5 features" in wide
    assert "3 features" in wide
    lacking = refused("predict", files / "named.safetensors", tmp_path / "other.csv")
    assert "lacks 1 of the 3 columns" in lacking
    assert "'c'" in lacking


def test_a_model_without_support_rows_cannot_be_compressed(files, tmp_path, starshl, refused):
    assert starshl("fit", files / "blobs.npz", "-m", "LSHash", "-b", 8, "-o", tmp_path / "m").exit_code == 0
    assert "keeps no training rows to encode with" in refused("compress", tmp_path / "m", "-o", tmp_path / "small")


def test_a_model_without_classes_cannot_predict(files, tmp_path, starshl, refused):
    assert starshl("fit", files / "blobs.npz", "-m", "LSHash", "-b", 8, "-o", tmp_path / "m").exit_code == 0
    assert "learns codes, not classes" in refused("predict", tmp_path / "m", files / "blobs.npz")


def damage(content, case):
    if case == "truncated":
        return content[: len(content) // 2]
    if case == "edited":
        return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
    if case == "newer":
        return content.replace(rb"\"format\": 1", rb"\"format\": 9")
    return b""


@pytest.mark.parametrize(
    ("case", "expected"),
    [("truncated", "truncated"), ("edited", "checksum"), ("newer", "Install a newer starshl"), ("empty", "not a read")],
)
def test_a_damaged_or_newer_model_is_refused_by_every_command(case, expected, files, tmp_path, refused):
    content = (files / "model.safetensors").read_bytes()
    (tmp_path / "m").write_bytes(damage(content, case))
    assert (tmp_path / "m").read_bytes() != content
    assert expected in refused("info", tmp_path / "m")
    assert expected in refused("predict", tmp_path / "m", files / "blobs.npy")
    assert expected in refused("encode", tmp_path / "m", files / "blobs.npy", "-o", tmp_path / "c.npy")


def test_a_foreign_safetensors_file_is_refused(tmp_path, refused):
    save_file({"x": np.zeros(3)}, tmp_path / "m")
    assert "not one that starshl wrote" in refused("info", tmp_path / "m")


def test_an_interrupted_fit_leaves_nothing_and_exits_130(files, tmp_path, starshl, monkeypatch):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(StarRidge, "fit", interrupt)
    result = starshl("fit", files / "blobs.npz", "-o", tmp_path / "m")
    assert (result.exit_code, os.listdir(tmp_path)) == (130, [])


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), OSError(28, "No space left on device", "m"), OSError(28, "No space left on device")],
)
def test_an_interrupted_write_leaves_the_old_file(error, files, tmp_path, starshl, monkeypatch):
    old = {"m": b"old model", "c.npz": b"old codes", "y.csv": b"old labels"}
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)

    def fail(*arguments):
        raise error

    monkeypatch.setattr("starshl._common.files.os.replace", fail)
    model, rows = files / "model.safetensors", files / "blobs.npy"
    code = 130 if isinstance(error, KeyboardInterrupt) else 2
    assert starshl("fit", files / "blobs.npz", "-b", 4, "-o", tmp_path / "m").exit_code == code
    assert starshl("encode", model, rows, "-o", tmp_path / "c.npz").exit_code == code
    result = starshl("predict", model, rows, "-o", tmp_path / "y.csv")
    assert result.exit_code == code
    assert (code == 130) or re.search("^Error: No space left on device.* Free some space", result.stderr)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_warnings_of_the_library_are_one_line_each(files, tmp_path, starshl):
    result = starshl("fit", files / "blobs.npz", "-b", 1, "-o", tmp_path / "m")
    assert result.exit_code == 0
    assert all(line.startswith("Warning: ") for line in result.stderr.splitlines())
    assert result.stderr


def test_a_missing_extra_is_named(files, tmp_path, refused, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "pip install 'starshl[parquet]'" in refused("fit", tmp_path / "t.parquet", "-o", tmp_path / "m")


def test_errors_stay_on_standard_error_with_json(files, refused):
    assert "There is no model file" in refused("info", files / "absent", "--json")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet", ".safetensors"])
def test_damaged_files_of_any_kind_end_in_a_result_or_a_sentence(suffix, files, blobs, tmp_path, starshl):
    rng = np.random.default_rng(0)
    whole = files / f"blobs{suffix}" if suffix != ".safetensors" else files / "model.safetensors"
    if suffix == ".parquet":
        whole = tmp_path / "blobs.parquet"
        parquet.write_table(arrow.table({name: blobs[0][:, j] for j, name in enumerate("abc")}), whole)
    content = np.frombuffer(whole.read_bytes(), np.uint8)
    path = tmp_path / f"damaged{suffix}"
    for _ in range(30):
        damaged = content[: rng.integers(1, len(content) + 1)].copy()
        damaged[rng.integers(0, len(damaged), 3)] = rng.integers(0, 256, 3)
        path.write_bytes(damaged.tobytes())
        if suffix == ".safetensors":
            result = starshl("info", path)
        else:
            result = starshl("encode", files / "model.safetensors", path, "-o", tmp_path / "c.npz")
        assert result.exit_code in (0, 2), (damaged.tobytes(), result.exception)
        assert "Traceback" not in result.output


def linked(kind, path, folder):
    if kind == "itself":
        return path
    if kind == "another spelling":
        return folder / ".." / folder.name / path.name
    link = folder / f"{kind}-{path.name}".replace(" ", "-")
    (os.symlink if kind == "symbolic link" else os.link)(path, link)
    return link


@pytest.mark.parametrize("kind", ["itself", "another spelling", "symbolic link", "hard link"])
def test_an_output_that_is_an_input_is_refused_before_any_work(kind, files, tmp_path, monkeypatch, refused):
    for name in ("blobs.csv", "blobs.npz", "model.safetensors", "named.safetensors"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    np.save(tmp_path / "y.npy", np.repeat([0, 1, 2], 20))
    monkeypatch.setattr("starshl.hashers.catalog.load", None)
    monkeypatch.setattr("starshl.data.tables.reading.read_table", None)
    model, rows, labels = tmp_path / "named.safetensors", tmp_path / "blobs.csv", tmp_path / "y.npy"
    cases = [
        (("fit", rows, "-l", "kind"), rows),
        (("fit", tmp_path / "blobs.npz", "-l", labels), labels),
        (("encode", model, tmp_path / "blobs.npz"), tmp_path / "blobs.npz"),
        (("predict", model, rows), rows),
        (("predict", model, tmp_path / "blobs.npz", "-l", labels), labels),
        (("compress", model), model),
    ]
    contents = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for number, (words, input) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        output = linked(kind, input, folder if "link" in kind else tmp_path)
        assert "same file as the input" in refused(*words, "-o", output.with_name(output.name))
    assert {path: path.read_bytes() for path in contents} == contents


def test_partitions_are_not_overwritten_by_what_is_made_of_them(files, tmp_path, refused):
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("a.npy", "b.npy"):
        np.save(parts / name, np.ones((4, 3)))
    address = ("--cluster", "tcp://127.0.0.1:1")
    assert "same file as the input" in refused("fit", parts, "-o", parts / "b.npy", *address)
    model = files / "model.safetensors"
    assert "the one that is read" in refused("encode", model, parts / "*.npy", "-o", parts, *address)


def test_a_label_file_that_exists_or_is_missing_is_told_as_such(files, tmp_path, refused):
    model, rows = files / "named.safetensors", files / "blobs.csv"
    missing = refused("predict", model, rows, "--labels", tmp_path / "truth.npy")
    assert missing.endswith(f"There is no file '{tmp_path / 'truth.npy'}' either.")
    (tmp_path / "truth.npy").write_bytes(b"junk")
    assert "not a readable array file" in refused("predict", model, rows, "--labels", tmp_path / "truth.npy")
    dropped = refused("predict", model, rows, "--drop", tmp_path / "truth.npy")
    assert "has no column" in dropped
    assert "no file" not in dropped


def test_all_bad_columns_of_a_csv_are_told_at_once_with_the_option_that_drops_them(tmp_path, refused):
    (tmp_path / "t.csv").write_text("a,b,c d,k\n1,x,,0\n2,y,,1\n")
    sentence = refused("fit", tmp_path / "t.csv", "-l", "k", "-o", tmp_path / "m")
    assert "'x' in column 'b', line 2; it has an empty cell in column 'c d', line 2" in sentence
    assert sentence.endswith("To leave them out: --drop 'b,c d'")


def test_a_column_of_ids_is_warned_of_with_the_option_that_drops_it(files, tmp_path, starshl):
    lines = (files / "blobs.csv").read_text().splitlines()
    rows = [f"{number},{line}" for number, line in enumerate(lines[1:], 100)]
    (tmp_path / "t.csv").write_text("\n".join([f"id,{lines[0]}", *rows]))
    words = ("fit", tmp_path / "t.csv", "-l", "kind", "-b", 6, "-o", tmp_path / "m")
    assert "every row of 'id'" in starshl(*words).stderr
    assert "To drop it: --drop id\n" in starshl(*words).stderr
    assert starshl(*words, "--drop", "id").stderr == ""


@pytest.mark.parametrize("words", [("fit", "blobs.npz"), ("demo",), ("index", "build"), ("index", "binarize")])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(words, files, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(files)

    def refuse(dir):
        raise PermissionError(13, "Permission denied", dir)

    monkeypatch.setattr("starshl.cli.options.tempfile", SimpleNamespace(TemporaryFile=refuse))
    monkeypatch.setattr("starshl.reproduction.demo.demonstrate", None)
    monkeypatch.setattr("starshl.data.tables.reading.read_table", None)
    if words[0] == "index":
        words = (*words, tmp_path / "new", *(["named.safetensors"] if "build" in words else []), "blobs.npz")
    else:
        words = (*words, "-o", tmp_path / "m")
    assert "cannot be written to" in refused(*words)


@pytest.mark.parametrize("command", ["demo", "reproduce", "report"])
def test_a_report_folder_below_a_file_is_refused_before_any_work(command, tmp_path, monkeypatch, refused):
    (tmp_path / "file").write_text("")
    for work in ("reproduction.demo.demonstrate", "reproduction.plan.make_plan", "reproduction.report.write_report"):
        monkeypatch.setattr(f"starshl.{work}", None)
    assert "is a file" in refused(command, "-o", tmp_path / "file" / "report")


def test_a_model_that_needs_functions_is_refused_without_speaking_python(blobs, tmp_path, files, refused):
    X, y = blobs
    StarSHL(6, kernels=[lambda a, b: float(a @ b)], random_state=0).fit(X, y).save(tmp_path / "m")
    sentence = refused("encode", tmp_path / "m", files / "blobs.npy", "-o", tmp_path / "c.npy")
    assert sentence.endswith("The command line cannot supply functions: use this model from Python.")
    assert "load(" not in sentence


def test_a_sparse_matrix_for_a_method_that_cannot_take_it_is_refused_with_a_way_out(tmp_path, refused):
    sparse.save_npz(tmp_path / "t.npz", sparse.random(30, 20, density=0.2, format="csr", random_state=0))
    words = ("fit", tmp_path / "t.npz", "-m", "KMeansHash", "-b", 4, "-o", tmp_path / "m")
    assert "Reduce it to a dense matrix of fewer columns first" in refused(*words)


def test_a_collection_in_place_of_a_model_is_called_one_with_the_commands_for_it(files, tmp_path, starshl):
    made = starshl("vectors", files / "blobs.npy", "-o", tmp_path / "items")
    assert made.exit_code == 0, made.output
    result = starshl("card", tmp_path / "items")
    assert result.exit_code == 2
    assert "takes a model file" in result.stderr
    assert f"starshl explore {tmp_path / 'items'}" in result.stderr
