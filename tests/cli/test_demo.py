"""The demonstration: real fits, once, with codes of 8 bits."""

import json
import re
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from starshl.cli.demo import draw_side_by_side
from starshl.reproduction import demo
from starshl.reproduction.demo import NEXT_STEPS, hide_labels


@pytest.fixture(scope="module")
def found(starshl, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    answer = starshl("demo", "--bits", "8", "--json", "--output", folder)
    assert answer.exit_code == 0, answer.output
    assert str(folder) in answer.stderr.splitlines()[0]
    assert json.loads(answer.stdout)["report"] == str(folder / "report.html")
    assert [file.name for file in folder.iterdir()] == ["report.html"]
    assert answer.stderr.count("learning: ") == 9
    assert len(re.findall(r"\(about \d+ s left\)$", answer.stderr, re.MULTILINE)) == 9 + 5
    return json.loads(answer.stdout)


def by_name(found):
    return {(result["labels"], result["method"]): result for result in found["results"]}


def hashers(found):
    return [result for result in found["results"] if result["method"] != "one-vs-one SVC"]


def test_demo_compares_all_labels_few_labels_and_two_baselines_without(found):
    assert [result["labels"] for result in found["results"]] == ["none"] * 2 + ["all"] * 2 + ["5 per class"] * 5
    assert {result["bytes_per_image"] for result in hashers(found)} == {1}
    assert found["n_queries"] + found["n_database"] == 1797


def test_demo_shows_what_labels_and_unlabeled_rows_are_worth(found):
    results = by_name(found)
    precision = {key: result["precision_at_10"] for key, result in results.items()}
    assert precision["all", "*SHL, defaults"] > 0.95
    assert precision["none", "ITQ"] > precision["none", "LSH"]
    assert precision["all", "*SHL, defaults"] > precision["none", "ITQ"]
    assert precision["all", "StarRidge"] > precision["all", "*SHL, defaults"]
    few = results["5 per class", "StarRidge, labeled rows only"]
    all_rows = results["5 per class", "StarRidge"]
    for figure in ("accuracy", "accuracy_unlabeled", "precision_at_10"):
        assert all_rows[figure] > few[figure] + 0.05
    svc = results["5 per class", "one-vs-one SVC"]
    assert svc["precision_at_10"] is svc["bytes_per_image"] is None
    for figure in ("accuracy", "accuracy_unlabeled"):
        assert 0.7 < svc[figure] < all_rows[figure]
    assert results["all", "StarRidge"]["accuracy_unlabeled"] is None


def test_the_page_shows_pictures_then_few_labels_then_curves(found):
    text = Path(found["report"]).read_text()
    marks = ["data:image/png;base64,", "With 5 labels per class</h2>", 'svg class="chart"']
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert all(f"{result['precision_at_10']:.3f}" in text for result in hashers(found))
    assert all(f"<code>{command}</code>" in text for command, _ in NEXT_STEPS)


def test_each_example_of_the_page_is_explained(found):
    text = Path(found["report"]).read_text()
    assert text.count("so many show a") == text.count("A query: ")


def test_an_example_with_less_by_labels_than_without_says_what_happened():
    target = np.array([3] * 10 + [8] * 20)
    shown = [
        demo.Shown("all", "StarRidge", np.array([np.arange(10, 20), np.arange(10, 20)])),
        demo.Shown("none", "LSH", np.array([[*range(7), 10, 11, 12], range(10, 20)])),
    ]
    found = demo.Demonstration(8, 0, np.array([0, 20]), np.arange(30), shown=shown)
    counts, reason = demo.explain_example(found, 0, target)
    assert "0 by StarRidge with all labels, 7 by LSH with no labels" in counts
    assert "takes this 3 for an 8" in reason
    assert "50.0% of the queries" in reason
    assert len(demo.explain_example(found, 1, target)) == 1


def test_the_page_says_nothing_about_claims_or_what_is_missing(found):
    text = Path(found["report"]).read_text()
    assert not any(word in text for word in ("PARTIAL", "does not hold", "claim"))


def test_curves_have_several_lengths_and_rise_for_random_codes(found):
    curves = {curve["method"]: curve["precision_at_10"] for curve in found["curves"]}
    assert {tuple(curve) for curve in curves.values()} == {("4", "8", "16", "32")}
    assert curves["LSH"]["32"] > curves["LSH"]["4"] + 0.3
    by_table = by_name(found)["all", "StarRidge"]["precision_at_10"]
    assert curves["StarRidge"]["8"] == pytest.approx(by_table)


def test_demo_prints_a_table_pictures_and_what_to_try_next(found, starshl, monkeypatch):
    curves = {(curve["labels"], curve["method"]): curve["precision_at_10"] for curve in found["curves"]}
    demonstration = SimpleNamespace(
        n_bits=found["n_bits"],
        seed=found["seed"],
        queries=[found["query"]] * found["n_queries"],
        database=range(found["n_database"]),
        results=found["results"],
        curves=curves,
        shown=[SimpleNamespace(nearest=np.array([found["nearest"]]))],
    )
    monkeypatch.setattr(demo, "demonstrate", lambda *words, **settings: demonstration)
    monkeypatch.setattr(demo, "write_demo_page", lambda *words, **settings: Path("somewhere/report.html"))
    lines = starshl("demo").stdout.splitlines()
    for result in hashers(found):
        assert any(result["method"] in line and f"{result['precision_at_10']:.3f}" in line for line in lines)
    assert sum("one-vs-one SVC" in line for line in lines) == 1
    assert any(line.startswith("StarRidge chose: ") and "spread 50 labels" in line for line in lines)
    assert sum(line.startswith("query") for line in lines) == 1
    end = lines.index("Next, on your own data:")
    assert lines[end - 2].endswith("somewhere/report.html")
    assert [line.split()[:2] for line in lines[end + 1 :]] == [
        ["starshl", command] for command in ("fit", "vectors", "images", "explore")
    ]


@pytest.mark.parametrize("guess", [0.6, 1.0, 1.8])
def test_the_time_left_follows_the_speed_of_the_machine(monkeypatch, guess):
    efforts = [*demo._COMPARED.values(), *demo._CURVES.values()]
    seconds = [3.0 * effort for effort in efforts]
    true_left = [sum(seconds) - done for done in (0.0, *accumulate(seconds))]
    now = [0.0]
    monkeypatch.setattr(demo, "perf_counter", lambda: now[0])
    said = []
    progress = demo._Progress(lambda text: said.append(int(re.search(r"about (\d+) s", text).group(1))), 3 * guess)
    for places in (demo._COMPARED, demo._CURVES):
        for place in progress(places):
            now[0] += 3.0 * places[place]
    assert len(said) == len(efforts)
    assert all(0.5 <= one / left <= 2.0 for one, left in zip(said, true_left, strict=False) if left > 1)


def test_demo_gives_the_same_labels_and_queries_for_the_same_seed():
    y = np.repeat(np.arange(3), 20)
    first, second = (hide_labels(y, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.bincount(first + 1).tolist() == [45, 5, 5, 5]
    assert np.array_equal(first[first >= 0], y[first >= 0])


def test_pictures_stand_side_by_side_under_their_captions():
    images = np.array([[[0.0, 1.0]], [[0.5, 0.0]]])
    assert draw_side_by_side(images, ["one", "two"], blocks=True) == "one  two\n  ██ ▒▒"
    assert draw_side_by_side(images, ["one", "two"], blocks=False) == "one  two\n  ## ::"


def test_demo_refuses_an_output_that_is_no_folder_before_it_learns(starshl, tmp_path):
    (tmp_path / "file").write_text("")
    answer = starshl("demo", "--output", tmp_path / "file")
    assert answer.exit_code != 0
    assert "learning" not in answer.stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make files")
def test_a_folder_in_which_nothing_can_be_made_is_refused_before_the_learning(starshl):
    answer = starshl("demo", "--output", "/proc/starshl-demo")
    assert answer.exit_code == 2
    assert "learning" not in answer.stderr
    assert "cannot be written to" in answer.stderr
