"""TableFeatures: numbers, categories and text of one table, by name or position."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from starshl.data.features import TableFeatures


def frame(seed=0, n_rows=30):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "price": np.where(rng.random(n_rows) < 0.2, np.nan, rng.lognormal(5, 1, n_rows)),
            "color": np.where(rng.random(n_rows) < 0.2, np.nan, rng.choice(["red", "blue"], n_rows).astype(object)),
            "note": rng.choice(["a fast red car", "a slow car", "fresh bread", "old bread"], n_rows),
            "doors": rng.integers(2, 6, n_rows),
            "used": rng.random(n_rows) < 0.5,
        }
    )
    return table


def oracle():
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(strategy="most_frequent", missing_values=np.nan), OneHotEncoder(sparse_output=False)
    )
    text = make_pipeline(TfidfVectorizer(sublinear_tf=True), TruncatedSVD(3, random_state=0))
    return ColumnTransformer(
        [("n", numbers, ["price", "doors", "used"]), ("c", categories, ["color"]), ("t", text, "note")]
    )


def test_features_are_those_of_a_column_transformer():
    table, other = frame(0), frame(1)
    numeric = {"used": float}
    expected = oracle().fit(table.astype(numeric)).transform(other.astype(numeric))
    result = TableFeatures(text="note", n_components=3).fit(table).transform(other)
    assert np.allclose(result, expected, rtol=0, atol=1e-12)


def test_columns_may_come_in_any_order_and_with_others():
    table = frame()
    step = TableFeatures(text="note").fit(table)
    expected = step.transform(table)
    shuffled = table[["used", "note", "color", "doors", "price"]].assign(more=1)
    assert np.array_equal(step.transform(shuffled), expected)
    with pytest.raises(ValueError, match="lacks the columns 'color'"):
        step.transform(table.drop(columns="color"))


def test_arrays_and_polars_frames_give_the_same_as_pandas():
    table = frame()
    expected = TableFeatures(text="note").fit(table).transform(table)
    cells = table.astype(object).where(table.notna(), None).to_numpy()
    assert np.array_equal(TableFeatures(text=2).fit(cells).transform(cells), expected)
    assert np.array_equal(TableFeatures(text=2).fit(cells.tolist()).transform(cells.tolist()), expected)
    columns = {name: cells[:, j].tolist() for j, name in enumerate(table)}
    assert np.array_equal(TableFeatures(text="note").fit_transform(pl.DataFrame(columns)), expected)
    with pytest.raises(ValueError, match="expecting 5 features"):
        TableFeatures(text=2).fit(cells).transform(cells[:, :4])


def test_missing_integers_of_pandas_are_filled():
    table = pd.DataFrame({"n": pd.array([1, None, 5], dtype="Int64"), "s": pd.array(["a", None, "a"], dtype="string")})
    assert TableFeatures(scale=False).fit_transform(table).tolist() == [[1, 1], [3, 1], [5, 1]]


def test_number_as_a_category_is_the_same_whole_or_with_a_point():
    step = TableFeatures(categories=[0]).fit(np.array([[1], [2], [2]]))
    assert step.transform(np.array([[2.0], [1.0], [3.0]])).tolist() == [[0, 1], [1, 0], [0, 0]]


def test_infinity_and_huge_integers_are_categories_like_any_other():
    table = np.array([[np.inf], [-np.inf], [2**60 + 1], ["red"]], dtype=object)
    step = TableFeatures().fit(table)
    assert step.encoder_.category_values_.tolist() == ["-inf", str(2**60 + 1), "inf", "red"]


def test_columns_can_be_dropped():
    table = frame().drop(columns=["note", "color"])
    assert TableFeatures(drop=["price"]).fit(table).n_features_out_ == 2
    assert np.array_equal(
        TableFeatures(drop=["price"]).fit_transform(table), TableFeatures(drop=[0]).fit_transform(table.to_numpy())
    )


def test_without_imputing_missing_categories_are_a_category_and_numbers_stay_missing():
    table = np.array([[1.0, "a"], [None, None]], dtype=object)
    result = TableFeatures(impute=False, scale=False).fit_transform(table)
    assert np.array_equal(result, [[1, 1, 0], [np.nan, 0, 1]], equal_nan=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"text": "notes"}, "the column 'notes'"),
        ({"text": 9}, "text is 9"),
        ({"text": "note", "drop": ["note"], "categories": ["note"]}, "is named twice"),
        ({"text": "note", "drop": ["note"]}, "Column 'note' is named twice"),
        ({"categories": ["color", "color", "note"]}, "Column 'color' is named twice"),
        ({"categories": []}, "Column 'color' holds something"),
        ({"drop": ["price", "color", "note", "doors", "used"]}, "No column is left"),
        ({"categories": "all"}, "categories is 'all'"),
        ({"scale": "no"}, "scale is 'no'"),
        ({"text": "note", "n_components": 0}, "n_components is 0"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TableFeatures(**settings).fit(frame())


def test_columns_whose_names_read_the_same_are_refused():
    with pytest.raises(ValueError, match="of the name '1'"):
        TableFeatures().fit(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=[1, "1"]))


def test_dates_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match="to numbers or text"):
        TableFeatures().fit(pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"])}))


def test_text_where_the_fit_saw_numbers_is_refused_with_its_place():
    step = TableFeatures().fit(pd.DataFrame({"age": [1.0, 2.0], "city": ["Rome", "Oslo"]}))
    with pytest.raises(ValueError, match="'age' holds 'old' in row"):
        step.transform(pd.DataFrame({"age": [1.0, "old"], "city": ["Rome", "Oslo"]}))
