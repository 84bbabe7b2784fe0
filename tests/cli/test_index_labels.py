"""Labels and kept vectors on the command line."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from starshl import Collection, StarRidge, load
from starshl.cli.main import app

runner = CliRunner()


def run(folder, command, *words):
    names = [str(folder / word) if (folder / word).exists() or word == "items" else word for word in words]
    return runner.invoke(app, ["index", command, *names])


def answer_of(folder, command, *words):
    result = run(folder, command, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def place(tmp_path):
    """Rows with labels, queries without, and a model that has a codeword for each class."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 6)) + 2.0 * np.eye(6)[y]
    np.savez(tmp_path / "rows.npz", X=X, y=y, key=np.arange(100, 160))
    np.savez(tmp_path / "plain.npz", X=X[:5])
    np.save(tmp_path / "queries.npy", X[:3])
    StarRidge(16, random_state=0).fit(X, y).save(tmp_path / "model.star")
    return tmp_path


@pytest.fixture
def built(place):
    answer = answer_of(place, "build", "items", "model.star", "rows.npz", "--ids", "key", "--keep", "float16")
    assert answer | {"folder": ""} == {
        "folder": "",
        "items": 60,
        "bits": 16,
        "vectors": ["X"],
        "labels": "y",
        "kept": "float16",
    }
    return place


def test_labels_of_a_file_give_items_their_labels_and_codes(built):
    data, hasher = np.load(built / "rows.npz"), load(built / "model.star")
    with Collection(built / "items", read_only=True) as collection:
        assert [item.label for item in collection.get(np.arange(100, 160))] == data["y"].tolist()
        assert collection.codes(np.arange(100, 160)) == hasher.encode_database(data["X"], data["y"])
        np.testing.assert_allclose(collection.vectors([105])[0], data["X"][5], rtol=1e-3)


def test_labels_can_be_ignored(place):
    assert answer_of(place, "build", "items", "model.star", "rows.npz", "--no-labels")["labels"] is None
    with Collection(place / "items", read_only=True) as collection:
        assert {item.label for item in collection.get(np.arange(60))} == {None}
        assert collection.vector_dtype is None


def test_added_items_may_have_labels_in_a_separate_file(built):
    np.savez(built / "plain.npz", X=np.load(built / "rows.npz")["X"][:5] + 1)
    np.save(built / "more.npy", [2, 1, -1, 0, 0])
    assert answer_of(built, "add", "items", "plain.npz", "--labels", str(built / "more.npy"))["stored"] == 5
    with Collection(built / "items", read_only=True) as collection:
        items = collection.get(np.arange(160, 165))
    assert [(item.label, item.code_from) for item in items] == [
        (2, "label"),
        (1, "label"),
        (None, "vector"),
        (0, "label"),
        (0, "label"),
    ]


def test_items_that_come_with_other_labels_are_listed_and_updated_on_request(built):
    np.save(built / "other.npy", [0, 2, -1, 0, 0])
    words = ("add", "items", "plain.npz", "--labels", str(built / "other.npy"))
    refused = run(built, *words)
    assert refused.exit_code == 2
    for text in ("2 items", "101 is 1 there and 2 here", "104 is 1 there and 0 here", "--update-labels"):
        assert text in refused.stderr
    answer = answer_of(built, *words, "--update-labels")
    assert (answer["stored"], answer["present"], answer["relabeled"]) == (0, 5, 2)
    with Collection(built / "items", read_only=True) as collection:
        assert [item.label for item in collection.get(np.arange(100, 105))] == [0, 2, 2, 0, 0]
    assert answer_of(built, *words)["relabeled"] == 0


def test_a_label_that_was_corrected_in_its_column_is_not_stored_as_another_item(built, starshl):
    rows = "".join(f"{number}.5,{number % 7}.25,n{number},{'ab'[number % 2]}\n" for number in range(40))
    (built / "table.csv").write_text("x,y,name,kind\n" + rows)
    table, made = built / "table.csv", built / "made"
    assert starshl("vectors", table, "--labels", "kind", "--drop", "name", "-o", made).exit_code == 0
    table.write_text(table.read_text().replace("n3,b", "n3,a"))
    words = ("index", "add", made, table, "--labels", "kind", "--drop", "name")
    refused = starshl(*words)
    assert (refused.exit_code, "3 is 'b' there and 'a' here" in refused.stderr) == (2, True), refused.output
    assert "1 of them has a new label." in starshl(*words, "--update-labels").stdout
    with Collection(made, read_only=True) as collection:
        assert (len(collection), collection.get([3])[0].label, collection.get([3])[0].metadata) == (40, "a", {})


def test_a_file_of_labels_has_one_for_each_row(built):
    np.save(built / "few.npy", [0, 2])
    result = run(built, "add", "items", "plain.npz", "--labels", str(built / "few.npy"))
    assert (result.exit_code, "few.npy' holds 2 labels, and there are 5 rows" in result.stderr) == (2, True)


def test_labels_are_set_and_cleared(built):
    expected = {"changed": 2, "label": 2, "codes_from_label": 2, "codes_from_vector": 0}
    assert answer_of(built, "label", "items", "100", "101", "--set", "2") == expected
    hits = answer_of(built, "search", "items", "queries.npy", "-k", "60", "--label", "2", "--no-rescore")[0]
    assert {100, 101} < {hit["id"] for hit in hits}
    assert {hit["label"] for hit in hits} == {2}
    expected = {"changed": 1, "label": None, "codes_from_label": 0, "codes_from_vector": 1}
    assert answer_of(built, "label", "items", "100", "--clear") == expected
    assert run(built, "label", "items", "100", "--clear").stdout.startswith("1 item changed; codes from the label: 0")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("label", "items", "100"), "--set LABEL or --clear"),
        (("label", "items", "100", "--set", "1", "--clear"), "--set LABEL or --clear"),
        (("label", "items", "100", "--set", "cat"), "are whole numbers"),
        (("label", "items", "7", "--set", "1"), "id 7 is not"),
        (("search", "items", "queries.npy", "--metric", "x"), "choose one of 'euclidean', 'cosine'"),
        (("search", "items", "queries.npy", "--rescore", "--radius", "3"), "does nothing with --radius"),
        (("search", "items", "queries.npy", "--by-scores", "--radius", "3"), "--by-scores says how the -k nearest"),
        (
            ("search", "items", "queries.npy", "--min-probability", "2"),
            "--min-probability is 2.0; it must be from 0 to 1",
        ),
        (
            ("search", "items", "queries.npy", "--no-rescore", "--oversample", "3"),
            "oversample is 3",
        ),
        (("search", "items", "--item", "100", "--reject", "0"), "--reject needs a query with a vector"),
        (("build", "new", "model.star", "rows.npz", "--keep", "float32"), "choose one of 'float16', 'int8'"),
    ],
)
def test_bad_requests_are_refused(built, words, message):
    result = run(built, *words)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_kept_vectors_order_the_answers(built):
    found = answer_of(built, "search", "items", "queries.npy", "-k", "5")
    X = np.load(built / "rows.npz")["X"]
    for query, hits in zip(X[:3], found, strict=True):
        assert hits[0]["rescored"] < 1e-2
        distances = np.linalg.norm(X - query, axis=1)
        np.testing.assert_allclose(
            [hit["rescored"] for hit in hits], distances[[hit["id"] - 100 for hit in hits]], atol=1e-2
        )
    assert answer_of(built, "search", "items", "queries.npy", "-k", "1", "--no-rescore")[0][0]["rescored"] is None
    assert answer_of(built, "search", "items", "--item", "104", "-k", "1")[0][0]["id"] == 104


def test_queries_unlike_all_training_rows_find_none_of_the_items(built):
    np.save(built / "strange.npy", np.vstack([np.load(built / "queries.npy")[:1], np.full((1, 6), 90.0)]))
    found = answer_of(built, "search", "items", "strange.npy", "-k", "2", "--reject", "0.05")
    assert [len(hits) for hits in found] == [2, 0]
    assert (
        run(built, "search", "items", "strange.npy", "--reject", "0.05")
        .stdout.splitlines()[-1]
        .endswith(" 1 none of these")
    )


def test_a_radius_finds_all_that_are_near_enough_unless_they_are_rejected(built):
    np.save(built / "strange.npy", np.vstack([np.load(built / "queries.npy")[:1], np.full((1, 6), 90.0)]))
    words = ("search", "items", "strange.npy", "--radius", "16")
    assert [len(hits) for hits in answer_of(built, *words)] == [60, 60]
    assert [len(hits) for hits in answer_of(built, *words, "--reject", "0.05")] == [60, 0]


def test_stored_items_are_explained_by_their_kept_vectors(built):
    (first, *_), _ = answer_of(built, "search", "items", "--item", "104", "--item", "105", "--explain")
    assert (first["id"], first["explanation"]["rescored"]) == (104, 0)


def test_answers_are_explained(built):
    hit = answer_of(built, "search", "items", "queries.npy", "-k", "2", "--explain")[0][0]
    assert len(hit["explanation"]["agreeing"]) + len(hit["explanation"]["differing"]) == 16
    text = run(built, "search", "items", "queries.npy", "-k", "2", "--explain").stdout
    assert text.count("differs from the query in") == 6
    assert "label 0" in text


def test_declared_fields_filter_without_a_warning(place):
    numbers = np.arange(60)
    np.savez(place / "years.npz", X=np.load(place / "rows.npz")["X"], year=1990 + numbers, key=numbers)
    words = ("items", "model.star", "years.npz", "--no-labels", "--ids", "key")
    answer_of(place, "build", *words, "--field", "year=int")
    result = run(place, "search", "items", "--item", "0", "-k", "60", "--where", '{"year": {"<": 1993}}', "--json")
    assert sorted(hit["id"] for hit in json.loads(result.stdout)[0]) == [0, 1, 2]
    assert result.stderr == ""


def test_a_field_can_be_declared_later(place):
    numbers = np.arange(60)
    np.savez(place / "years.npz", X=np.load(place / "rows.npz")["X"], year=1990 + numbers)
    answer_of(place, "build", "items", "model.star", "years.npz", "--no-labels")
    where = ("items", "--item", "0", "--where", '{"year": 1990}')
    assert "(`starshl index declare`)" in run(place, "search", *where).stderr
    assert answer_of(place, "declare", "items", "year=int") == {"fields": {"year": "int"}}
    assert run(place, "search", *where).stderr == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("year",), "such as year=int"),
        (("year=date",), "types are int, float"),
        (("name=int",), "has 'a' as 'name'"),
    ],
)
def test_bad_fields_are_refused(place, words, message):
    np.savez(place / "names.npz", X=np.load(place / "rows.npz")["X"][:2], name=np.array(["a", "b"]))
    answer_of(place, "build", "items", "model.star", "names.npz", "--no-labels")
    result = run(place, "declare", "items", *words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_wrong_label_is_listed_with_how_to_correct_it(built):
    with Collection(built / "items") as collection:
        collection.set_labels([100], [1])
    found = answer_of(built, "suspects", "items", "--limit", "1")["suspects"]
    assert [(each["id"], each["label"]) for each in found] == [(100, 1)]
    result = run(built, "suspects", "items")
    assert result.exit_code == 0
    assert "index label" in result.output
    assert "--set" in result.output


def test_a_refit_lets_the_hasher_know_new_labels(built):
    with Collection(built / "items") as collection:
        collection.set_labels(np.arange(100, 110), [7] * 10, warn_unknown=False)
    answer = answer_of(built, "refit", "items")
    assert (answer["bits"], answer["labels"], answer["classes"]) == (16, 60, 4)
    with Collection(built / "items", read_only=True) as collection:
        assert 7 in collection.hasher.class_labels


def test_classes_are_renamed_merged_removed_and_undone_in_the_shell_and_predict_follows(tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    names = np.array(["nil", "one", "two"])[y]
    np.savez(tmp_path / "rows.npz", X=X[:60])
    with Collection.create(tmp_path / "items", StarRidge(16, random_state=0).fit(X, names)) as collection:
        collection.add(X[:60], labels=names[:60])

    def predicted():
        result = runner.invoke(app, ["predict", str(tmp_path / "items"), str(tmp_path / "rows.npz"), "--json"])
        assert result.exit_code == 0, result.output
        return set(json.loads(result.stdout)["predictions"])

    n_nil = int((y[:60] == 0).sum())
    assert f"nil renamed to zero; zero has {n_nil} items" in run(tmp_path, "rename", "items", "nil", "zero").output
    assert f"undone: nil renamed to zero; nil has {n_nil}" in run(tmp_path, "undo", "items").output
    run(tmp_path, "rename", "items", "nil", "zero")
    answer = answer_of(tmp_path, "merge", "items", "one", "two")
    assert (answer["kind"], answer["items"]) == ("merge", 60 - n_nil)
    listed = run(tmp_path, "classes", "items").output
    assert "change 3: nil renamed to zero (undone)" in listed
    assert "one merged into two" in listed
    assert predicted() == {"zero", "two"}
    run(tmp_path, "remove-class", "items", "two")
    assert predicted() == {"zero"}
    assert run(tmp_path, "undo", "items", "--change", "99").exit_code != 0
    run(tmp_path, "undo", "items")
    assert predicted() == {"zero", "two"}


def test_hits_say_how_likely_they_are_and_unlikely_ones_can_be_left_out(built):
    text = run(built, "search", "items", "queries.npy", "-k", "3", "--no-rescore").stdout
    assert text.splitlines()[0].split() == ["query", "distance", "likely", "id"]
    assert re.search(r" [0-9]+\.[0-9]% ", text.splitlines()[1])
    everything = answer_of(built, "search", "items", "queries.npy", "-k", "60", "--no-rescore")[0]
    likely = answer_of(built, "search", "items", "queries.npy", "-k", "60", "--no-rescore", "--min-probability", "0.5")
    assert likely[0] == [hit for hit in everything if hit["probability"] >= 0.5]
    assert len(likely[0]) < len(everything)
    none = run(built, "search", "items", "queries.npy", "--no-rescore", "--min-probability", "1").stdout
    assert len(re.findall(r"^ +[0-2] nothing as likely as that$", none, re.MULTILINE)) == 3


def test_labels_are_guessed_and_found_by_their_guesses(built):
    unlabeled = [str(item) for item in range(130, 160)]
    assert run(built, "label", "items", "--clear", *unlabeled).exit_code == 0
    refused = run(built, "search", "items", "--item", "100", "--guess", "1")
    assert refused.exit_code == 2
    assert "starshl index guess" in refused.stderr
    found = answer_of(built, "guess", "items")
    assert found["by"] == "hasher"
    assert sum(each["items"] for each in found["guesses"]) == 30
    shown = run(built, "search", "items", "--item", "100", "--guess", "1").stdout
    assert "perhaps 1 (" in shown
    hits = answer_of(built, "search", "items", "--item", "100", "--guess", "1")[0]
    assert {hit["guess"]["label"] for hit in hits} == {1}
    assert "guessed from 30 labels: 30 items" in run(built, "guess", "items", "--by", "lesson").stdout
