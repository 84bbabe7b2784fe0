"""Posteriors by number: against the rule written plainly, and what labels and few numbers mean."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.codes import WordDictionary


def posteriors_of(n_rows, n_classes, seed):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.3), n_rows)


def plain_dictionary(posteriors, n_words):
    """The learned entries, one word after the other."""
    n_classes = posteriors.shape[1]
    top = posteriors.argmax(axis=1)
    entries = [
        posteriors[top == g].mean(axis=0) if (top == g).any() else 0.9 * np.eye(n_classes)[g] + 0.1 / n_classes
        for g in range(n_classes)
    ]
    while True:
        for _ in range(4):
            nearest = [np.argmax([p @ np.log(np.maximum(h, 1e-7)) for h in entries]) for p in posteriors]
            for k, h in enumerate(entries):
                own = posteriors[np.equal(nearest, k)]
                entries[k] = (own.sum(axis=0) + 0.02 * h) / (len(own) + 0.02)
        if len(entries) == n_words:
            return np.array(entries)
        losses = {}
        nearest = np.array([np.argmax([p @ np.log(np.maximum(h, 1e-7)) for h in entries]) for p in posteriors])
        for k, h in enumerate(entries):
            own = posteriors[nearest == k]
            each = np.sum(own * np.log(np.maximum(own, 1e-7) / np.maximum(h, 1e-7)), axis=1)
            if len(own) >= 4 and each.sum() > 1e-6:
                losses[k] = each.sum(), own[each.argmax()]
        most = sorted(losses, key=lambda k: -losses[k][0])[: min(n_words - len(entries), max(1, len(entries) // 2))]
        if not most:
            return np.array(entries)
        entries += [0.5 * (entries[k] + losses[k][1]) for k in most]


@pytest.mark.parametrize(("n_classes", "n_bits"), [(3, 4), (5, 6)])
def test_entries_are_those_of_the_rule_written_plainly(n_classes, n_bits):
    posteriors = posteriors_of(250, n_classes, seed=n_bits)
    entries = WordDictionary.fitted(posteriors, n_bits).entries
    np.testing.assert_array_equal(entries[:n_classes], np.eye(n_classes))
    np.testing.assert_allclose(entries[n_classes:], plain_dictionary(posteriors, 2**n_bits - n_classes), atol=1e-6)


def test_number_of_a_posterior_is_that_of_least_divergence_and_never_that_of_a_label():
    posteriors = posteriors_of(300, 4, seed=1)
    words = WordDictionary.fitted(posteriors, 5)
    learned = words.entries[4:].astype(np.float64)
    divergences = [np.sum(p * np.log(np.maximum(p, 1e-7) / np.maximum(learned, 1e-7)), axis=1) for p in posteriors]
    assert words.numbers_of(posteriors).tolist() == [4 + int(np.argmin(each)) for each in divergences]
    assert words.numbers_of(np.eye(4)).min() >= 4


def test_labels_have_the_first_numbers_and_are_certain():
    words = WordDictionary.fitted(posteriors_of(200, 3, seed=2), 4)
    numbers = words.numbers_of_classes(np.array([2, 0]))
    assert numbers.tolist() == [2, 0]
    codes = BinaryCodes.from_signs([[-1, 1, -1, -1, 1], [1, 1, 1, 1, 1]])  # number 2 and neighbor bits, number 15
    assert words.columns_of(codes).tolist() == [2, -1]
    assert words.posteriors_of(codes)[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("n_bits", [1, 2, 3])
def test_too_few_numbers_for_labels_code_them_like_other_posteriors(n_bits):
    words = WordDictionary.fitted(posteriors_of(200, 5, seed=3), n_bits)
    assert len(words.entries) == 2**n_bits
    assert not words.has_labels
    assert words.numbers_of_classes(np.arange(5)).tolist() == words.numbers_of(np.eye(5)).tolist()
    assert words.columns_of(BinaryCodes.from_signs(words.encode(np.eye(5)))).tolist() == [-1] * 5


def test_sure_rows_keep_their_class_if_labels_have_no_room():
    posteriors = np.eye(3)[np.arange(3000) % 3]
    posteriors[0] = [0.6, 0.4, 0.0]
    words = WordDictionary.fitted(posteriors, 2)
    assert not words.has_labels
    assert words.decode(words.numbers_of(np.eye(3))).argmax(axis=1).tolist() == [0, 1, 2]


def test_more_numbers_lose_less():
    posteriors, lost = posteriors_of(2000, 6, seed=4), []
    for n_bits in (3, 5, 7, 9):
        kept = WordDictionary.fitted(posteriors, n_bits)
        h = np.maximum(kept.decode(kept.numbers_of(posteriors)), 1e-7)
        lost.append(float(np.mean(np.sum(posteriors * np.log(np.maximum(posteriors, 1e-9) / h), axis=1))))
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] < 0.05


@pytest.mark.parametrize("posteriors", [np.ones((30, 1)), np.eye(3)[np.arange(30) % 3], np.full((1, 4), 0.25)])
def test_rows_that_need_no_more_words_get_no_more(posteriors):
    words = WordDictionary.fitted(posteriors, 8)
    assert len(words.entries) <= 2 * posteriors.shape[1]
    np.testing.assert_allclose(words.entries.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(words.decode(words.numbers_of(posteriors)), posteriors, atol=0.02)
