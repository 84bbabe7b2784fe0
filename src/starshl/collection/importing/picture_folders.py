"""Folders of pictures: which files they hold, and which labels and splits the names of their subfolders give."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection as Container
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Self, TypeAlias

import numpy as np

from ..._common.words import counted
from ...data.features.picture_files import ENDINGS, is_picture_file
from ...exceptions import CollectionFormatError, InputError

#: Which of the folders around a picture is its label: the innermost, the outermost, all, or a level from the top.
LabelsFrom: TypeAlias = Literal["inner", "outer", "path"] | int
#: The metadata field for the split that a picture belongs to.
SPLIT = "split"
#: The journal of a collection that says how folders gave labels.
JOURNAL = "folders"
_SPLITS = frozenset({"train", "training", "test", "testing", "val", "valid", "validation", "dev"})
_NOT_READ = (".heic", ".heif", ".avif", ".jp2", ".svg")
_SHOWN = 5  # names in a sentence


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A file, its path within the folder, the subfolders around it without splits, and the split it belongs to.

    ``split_level`` says how many folders are around the split.
    """

    path: Path
    reference: str
    folders: tuple[str, ...] = ()
    split: str | None = None
    split_level: int | None = None

    @property
    def place(self) -> str:
        """The folder that its reference begins from."""
        whole = self.path.absolute()
        return _as_text(str(whole.parents[self.reference.count("/")]))


@dataclass(frozen=True, slots=True)
class FolderRule:
    """How subfolders give labels: which of them, and at which levels those with the names of splits are splits.

    A collection keeps it in its journal :data:`JOURNAL`, so that folders that are added later follow it, too.
    ``places`` are the folders that its pictures came from.
    """

    labels_from: LabelsFrom
    split_levels: tuple[int, ...] = ()
    places: tuple[str, ...] = ()

    @classmethod
    def of(cls, labels_from: LabelsFrom, files: Sequence[PictureFile]) -> Self:
        """Return the rule that these files followed."""
        levels = {file.split_level for file in files if file.split_level is not None}
        return cls(labels_from, tuple(sorted(levels))).with_places_of(files)

    def with_places_of(self, files: Iterable[PictureFile]) -> Self:
        """Return the rule of a collection to which these files were added."""
        return replace(self, places=tuple(dict.fromkeys([*self.places, *(file.place for file in files)])))

    @classmethod
    def read(cls, entries: Sequence[str]) -> Self:
        """Return the rule in a journal; without any, the innermost folder is the label."""
        if not entries:
            return cls("inner")
        try:
            kept = json.loads(entries[-1])
            rule = cls(kept["labels_from"], tuple(kept["split_levels"]), tuple(map(str, kept["places"])))
            check_labels_from(rule.labels_from)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CollectionFormatError.damaged("the rule of its folders cannot be read") from error
        return rule

    @property
    def text(self) -> str:
        """The rule as a journal keeps it."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class FolderLabels:
    """What subfolders say of pictures: a label each, or None; how deep they are; and in plain words where from."""

    labels: np.ndarray | None
    n_levels: int
    sentence: str


def find_pictures(folder: str | os.PathLike[str], split_levels: Container[int] = ()) -> tuple[list[PictureFile], int]:
    """Return the picture files of a folder and its subfolders in the order of their paths, and how many others it has.

    Folders named train, test, val and the like are splits where two of them are in the same folder, and wherever else
    they are at that level; one alone may be a class. They are splits at ``split_levels``, too. Hidden files and folders
    are ignored, and links to folders are not followed. Pictures that cannot be read, such as HEIC files, are among the
    picture files: somebody who has put them there wants to know.
    """
    root = Path(folder)
    if not root.exists():
        raise FileNotFoundError(f"There is no folder {str(root)!r}. Give a folder of pictures.")
    if not root.is_dir():
        raise NotADirectoryError(f"{str(root)!r} is a file. Give the folder that it is in.")
    found, n_others = [], 0
    for parent, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith("."):
                continue
            if is_picture_file(path) or path.suffix.lower() in _NOT_READ:
                found.append(path)
            else:
                n_others += 1
    if not found:
        raise ValueError(
            f"There is no picture in {str(root)!r} or its subfolders; {n_others:,} of its files are of other kinds. "
            f"Pictures are files that end in {', '.join(ENDINGS)}. Give a folder of pictures."
        )
    parts = [tuple(_as_text(part) for part in path.relative_to(root).parts) for path in found]
    levels = {*split_levels, *_levels_of_splits(folders for *folders, _ in parts)}
    return [_described(path, names, levels) for path, names in zip(found, parts, strict=True)], n_others


def collect_pictures(
    paths: Sequence[str | os.PathLike[str]], split_levels: Container[int] = ()
) -> tuple[list[PictureFile], int]:
    """Return the picture files of folders, and files that are given by name, which have no label; and others' count."""
    found: list[PictureFile] = []
    n_others = 0
    for path in map(Path, paths):
        if path.is_dir():
            more, n_more = find_pictures(path, split_levels)
            found, n_others = found + more, n_others + n_more
        elif not path.exists():
            raise FileNotFoundError(f"There is no file or folder {str(path)!r}. Give pictures, or a folder of them.")
        elif not is_picture_file(path):
            raise ValueError(
                f"{str(path)!r} is not a picture by its name. Pictures are files that end in {', '.join(ENDINGS)}. "
                "Give pictures, or a folder of them."
            )
        else:
            found.append(PictureFile(path, _as_text(path.name)))
    return found, n_others


def _levels_of_splits(paths: Iterable[Sequence[str]]) -> set[int]:
    """Return how many folders are around those that hold two splits or more."""
    splits_in: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for folders in paths:
        for level, folder in enumerate(folders):
            if folder.lower() in _SPLITS:
                splits_in[tuple(folders[:level])].add(folder.lower())
    return {len(parent) for parent, splits in splits_in.items() if len(splits) > 1}


def _described(path: Path, parts: Sequence[str], split_levels: Container[int]) -> PictureFile:
    *folders, _ = parts
    is_split = [level in split_levels and folder.lower() in _SPLITS for level, folder in enumerate(folders)]
    kept = tuple(folder for folder, split in zip(folders, is_split, strict=True) if not split)
    level = is_split.index(True) if any(is_split) else None
    return PictureFile(path, "/".join(parts), kept, None if level is None else folders[level].lower(), level)


def _as_text(name: str) -> str:
    """Return a file name as text; one that is not UTF-8 gets marks where it cannot be read."""
    return os.fsencode(name).decode("utf-8", "replace")


def _refuse(error: OSError) -> None:
    raise error


def check_labels_from(labels_from: LabelsFrom) -> None:
    """Refuse what names no folder, before any file is read."""
    is_level = isinstance(labels_from, int) and not isinstance(labels_from, bool) and labels_from > 0
    if not is_level and labels_from not in ("inner", "outer", "path"):
        raise InputError(
            "{parameter} is {value!r}",
            "it must be inner, outer, path, or the number of a level of folders, where 1 is the outermost",
            advice="Give one of these.",
            parameter="labels_from",
            value=labels_from,
        )


def check_level(files: Sequence[PictureFile], labels_from: LabelsFrom) -> None:
    """Refuse a level that is deeper than all folders."""
    n_levels = _n_levels(files)
    if isinstance(labels_from, int) and labels_from > n_levels:
        raise InputError(
            "{parameter} is {value}, and there are {levels} of folders around the pictures",
            advice="Give a number up to {n}, or inner, outer or path." if n_levels else "Leave it out.",
            parameter="labels_from",
            value=labels_from,
            levels=counted(n_levels, "level") if n_levels else "no levels",
            n=n_levels,
        )


def _n_levels(files: Sequence[PictureFile]) -> int:
    return max((len(file.folders) for file in files), default=0)


def folder_labels(files: Sequence[PictureFile], labels_from: LabelsFrom) -> FolderLabels:
    """Return the labels that subfolders give to pictures.

    Splits are no levels. A picture above the wanted level has the label of its innermost folder, and one in no folder
    has none.
    """
    labels = [_label(file.folders, labels_from) if file.folders else None for file in files]
    n_levels = _n_levels(files)
    folders_of: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for file, label in zip(files, labels, strict=True):
        if label is not None:
            folders_of[label].add(_up_to(file.folders, labels_from))
    sentences = []
    if n_levels > 1:
        classes = counted(len(folders_of), "class", "classes")
        sentences.append(f"{classes} from {_words(labels_from)} of {n_levels} levels of folders.")
    shared = sorted(label for label, folders in folders_of.items() if len(folders) > 1)
    if shared:
        sentences.append(
            f"{counted(len(shared), 'class', 'classes')} of them {'has' if len(shared) == 1 else 'have'} several "
            f"folders of the same name ({_listed(shared)}); the whole path keeps them apart."
        )
    splits = sorted({file.split for file in files if file.split is not None})
    if splits:
        sentences.append(
            f"Folders named {_listed(splits)} are splits, not classes: they are in the metadata field {SPLIT!r}."
        )
    known = np.array(labels, dtype=object) if folders_of else None
    return FolderLabels(known, n_levels, " ".join(sentences))


def _label(folders: tuple[str, ...], labels_from: LabelsFrom) -> str:
    return "/".join(folders) if labels_from == "path" else _up_to(folders, labels_from)[-1]


def _up_to(folders: tuple[str, ...], labels_from: LabelsFrom) -> tuple[str, ...]:
    """Return the folders from the top to the one that is the label."""
    if isinstance(labels_from, int):
        return folders[:labels_from]
    return folders[:1] if labels_from == "outer" else folders


def _words(labels_from: LabelsFrom) -> str:
    if isinstance(labels_from, int):
        return f"level {labels_from}"
    return {"inner": "the innermost", "outer": "the outermost", "path": "the whole path"}[labels_from]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def split_metadata(files: Sequence[PictureFile]) -> list[dict[str, str]] | None:
    """Return the metadata that say which split each picture belongs to, None if there are no splits."""
    if all(file.split is None for file in files):
        return None
    return [{} if file.split is None else {SPLIT: file.split} for file in files]
