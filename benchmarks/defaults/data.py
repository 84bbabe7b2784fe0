"""The data sets and their rows: which, how many, and how they are scaled."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from starshl.data import datasets
from starshl.data.datasets import Dataset
from starshl.reproduction import Sampling, SplitData, draw_rows, split_data


@dataclass(frozen=True)
class Task:
    """Rows to draw from one data set; ``title`` is its name in tables."""

    title: str
    dataset: str
    n_train: int
    n_query: int
    scaling: str = "max"
    official: bool = False


MAIN = {
    "mnist": Task("MNIST", "mnist", 3000, 2000),
    "usps": Task("USPS", "usps", 3000, 2000),
    "pendigits": Task("Pendigits", "pendigits", 3000, 2000),
    "cifar": Task("CIFAR-10 gray", "cifar10", 3000, 2000),
    "agnews": Task("AG News", "agnews", 3000, 2000),
    "letter": Task("Letter", "letter", 3000, 2000),
}
FURTHER = {
    "digits": Task("digits", "digits", 1000, 797),
    "caltech": Task("Caltech, 10 classes", "caltech101", 2000, 1000),
    "pascal": Task("PASCAL, 10 classes", "pascal07", 2000, 1500),
}
SMALL_MNIST = Task("small_mnist", "small_mnist", 300, 600, official=True)
SUPERVISED = MAIN | FURTHER
# Data sets whose classes differ so much in size that a random order scores over 5% more than with equal classes.
UNEQUAL = ("usps", "caltech101", "pascal07")

NO_LABELS = {
    "digits": Task("digits", "digits", 1796, 1),
    "usps": replace(MAIN["usps"], n_query=1),
    "mnist": replace(MAIN["mnist"], n_train=2500, n_query=1),
    "pendigits": replace(MAIN["pendigits"], n_query=1),
    "agnews": replace(MAIN["agnews"], n_train=2500, n_query=1),
    "cifar": replace(MAIN["cifar"], n_train=2500, n_query=1),
}
TRANSDUCTIVE = {
    "vowel": Task("Vowel 330/220", "vowel", 330, 220, "range"),
    "letter": Task("Letter 300/200", "letter", 300, 200, "range"),
}


def draw(task: Task, split: int, n_labels: int | None = None) -> SplitData:
    """Return the rows of one split; the same split has the same rows for any number of labels."""
    dataset = dataset_of(task.dataset)
    stream = f"defaults {task.dataset} {task.n_train}"
    rows = Sampling(task.n_train, task.n_query, n_labels, every_class=True, official=task.official, stream=stream)
    return split_data(dataset, draw_rows(rows, dataset, split, stream), scaling=task.scaling)


@lru_cache(maxsize=1)
def dataset_of(name: str) -> Dataset:
    dataset = datasets.get(name)
    return largest_classes(dataset) if name == "caltech101" else dataset


def largest_classes(dataset: Dataset) -> Dataset:
    kept = np.sort(dataset.extra["top10"])
    rows = np.isin(dataset.y, kept)
    names = tuple(dataset.names[label] for label in kept)
    return Dataset(dataset.name, dataset.X[rows], np.searchsorted(kept, dataset.y[rows]), None, names)


def unseen_rows(data: SplitData, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return up to ``n_rows`` rows that did not train, for figures that need more rows than there are queries."""
    dataset = dataset_of(data.split.dataset)
    rest = np.setdiff1d(np.arange(len(dataset)), data.split.train)
    chosen = np.random.default_rng(data.split.run).permutation(rest)[:n_rows]
    split = replace(data.split, query=chosen)
    more = split_data(dataset, split, scaling=data.scaling)
    return more.X_query, more.y_query
