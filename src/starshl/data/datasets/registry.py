"""The data sets by name: sizes, checksums, licenses, sources and remarks that matter for results."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from . import convert
from .download import OpenML, Source, Web


@dataclass(frozen=True, slots=True)
class Entry:
    """One data set.

    Attributes
    ----------
    title : str
    file : str
        Name of the npz file in a data folder; empty if the set comes with scikit-learn.
    digest : str or None
        :func:`array_digest` of all arrays of the file (in sorted row order if ``sort_rows``).
    sort_rows : bool
        Sort the rows before anything else, because copies in circulation differ in row order.
    class_names : tuple of str
        Empty if the file itself names its ``n_classes_in_file`` classes, in the array ``names_in_file``.
    keep : str
        Name of the array that lists the classes to keep; empty to keep all.
    no_download : str
        Why there is no source; empty if there is one.
    """

    name: str
    title: str
    file: str
    n_rows: int
    n_features: int
    class_names: tuple[str, ...]
    license: str
    digest: str | None = None
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()
    no_download: str = ""
    sort_rows: bool = False
    keep: str = ""
    n_classes_in_file: int = 0
    names_in_file: str = "names"

    @property
    def n_classes(self) -> int:
        return len(self.class_names) or self.n_classes_in_file


_DIGITS = tuple("0123456789")
_CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_PASCAL = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train"),
    "tvmonitor",
)
_PASCAL_TOP10 = (*("aeroplane", "bird", "car", "cat", "dog", "horse", "motorbike", "person", "sofa", "train"),)
_FASHION = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag"),
    "Ankle boot",
)
_VOWELS = ("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed")
_PASCAL_NOTE = (
    "The *SHL paper's selection of 6,878 samples of 10 classes was never published. These are the train and "
    "val images of PASCAL VOC 2007, gray, 32 x 32, each with the class of its largest object"
)
_CIFAR_NOTE = "Gray levels by ITU-R 601 luma; the *SHL paper says 1,024 features, not how the pictures became gray."
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_ZALANDO = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
_IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_FASHION_MD5 = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)
# Nobody has tried the sources below yet, so none is marked verified; see Web.verified.
ENTRIES = (
    Entry(
        name="mnist",
        title="MNIST handwritten digits, 28 x 28",
        file="mnist.npz",
        n_rows=70_000,
        n_features=784,
        class_names=_DIGITS,
        license="usually given as CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        digest="5344dc567a0c851e766f01188374440d310e53aefba65cb13723201c5e7bbe2e",
        sources=(
            OpenML(554, convert.digit_images_from_arff),
            Web(
                tuple(f"https://ossci-datasets.s3.amazonaws.com/mnist/{file}" for file in _IDX_FILES),
                convert.digit_images_from_idx,
            ),
        ),
        notes=("The *SHL paper draws 10,000 rows of all 70,000 for training, not the official split.",),
    ),
    Entry(
        name="usps",
        title="USPS handwritten digits, 16 x 16",
        file="usps.npz",
        n_rows=9_298,
        n_features=256,
        class_names=_DIGITS,
        license="none stated; collected by the US Postal Service, distributed for research",
        digest="8c16e5daf167874aac91907cb4db8c5c9ebcc1fc780f244252ea40f318d4653a",
        sources=(
            OpenML(41082, convert.usps_from_arff),
            Web(
                tuple(f"https://hastie.su.domains/ElemStatLearn/datasets/zip.{part}.gz" for part in ("train", "test")),
                convert.usps_from_text,
            ),
        ),
        notes=("Gray values from -1 to 1 in steps of 0.001.",),
    ),
    Entry(
        name="pendigits",
        title="Pen-written digits as 8 positions",
        file="pendigits.npz",
        n_rows=10_992,
        n_features=16,
        class_names=_DIGITS,
        license="CC BY 4.0 (UCI; Alpaydin, Alimoglu)",
        digest="06ccd9aa15b0e5654a7d3cb0c839cdbca89e24aa34978d6e0a5291b7fb833bbb",
        sources=(
            OpenML(32, convert.pendigits_from_arff),
            Web(
                tuple(f"{_UCI}/pendigits/pendigits.{part}" for part in ("tra", "tes")),
                convert.pendigits_from_text,
            ),
        ),
        notes=("The *SHL paper says 256 features; the UCI set of the size it gives has 16.",),
    ),
    Entry(
        name="cifar10",
        title="CIFAR-10 in gray, 32 x 32",
        file="cifar10_gray.npz",
        n_rows=60_000,
        n_features=1_024,
        class_names=_CIFAR10,
        license="none stated; cite Krizhevsky 2009",
        digest="8d98ba8b643f32738308ce8e8beeddf769e7724072ea0cabdfc9b4d256deab94",
        # OpenML's copy (40927) is a text file four times the size of this archive.
        sources=(
            Web(
                ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                convert.cifar10_gray_from_archive,
            ),
        ),
        notes=(_CIFAR_NOTE,),
    ),
    Entry(
        name="cifar10_color",
        title="2,000 color pictures of CIFAR-10, 32 x 32 x 3",
        file="cifar10_color_2000.npz",
        n_rows=2_000,
        n_features=3_072,
        class_names=_CIFAR10,
        license="none stated; cite Krizhevsky 2009",
        digest="94e74aeb4f4d231e72634a41d16a7ee3ee8389ddef7520cbc864c3eeca767dd8",
        notes=("100 train and 100 test pictures per class; extra['index'] is the row of each in cifar10.",),
        no_download="this selection of 2,000 pictures is published nowhere",
    ),
    Entry(
        name="pascal07",
        title="PASCAL VOC 2007, its ten largest classes, gray, 32 x 32",
        file="pascal07_gray32.npz",
        n_rows=3_710,
        n_features=1_024,
        class_names=_PASCAL_TOP10,
        license="Flickr terms of use; cite Everingham et al. 2007",
        digest="fb69a0202d7b2e73a5d89f672b5ad72b585f5e0b55a351cdd65cfdb5f4e68918",
        notes=(f"{_PASCAL_NOTE}, narrowed to the ten classes with the most images.",),
        no_download="the images have to be decoded and shrunk, which this package does not do",
        keep="top10",
    ),
    Entry(
        name="pascal07_gray32",
        title="PASCAL VOC 2007, all 20 classes, gray, 32 x 32",
        file="pascal07_gray32.npz",
        n_rows=5_008,
        n_features=1_024,
        class_names=_PASCAL,
        license="Flickr terms of use; cite Everingham et al. 2007",
        digest="fb69a0202d7b2e73a5d89f672b5ad72b585f5e0b55a351cdd65cfdb5f4e68918",
        notes=(f"{_PASCAL_NOTE}; extra['labels'] marks all classes of an image.",),
        no_download="the images have to be decoded and shrunk, which this package does not do",
    ),
    Entry(
        name="pascal07_objects",
        title="PASCAL VOC 2007, every object of 20 classes, gray, 32 x 32",
        file="pascal07_objects_gray32.npz",
        n_rows=12_601,
        n_features=1_024,
        class_names=_PASCAL,
        license="Flickr terms of use; cite Everingham et al. 2007",
        digest="f4a89899bfe13f53793e7ca5d6f9e4599484422e8b236889f3745d2bcc40eed9",
        notes=("Objects cut out of the train and val pictures; extra['image_id'] is the picture of each.",),
        no_download="the images have to be decoded and shrunk, which this package does not do",
    ),
    Entry(
        name="vowel",
        title="Deterding's spoken vowels",
        file="vowel.npz",
        n_rows=990,
        n_features=10,
        class_names=_VOWELS,
        license="CC BY 4.0 (UCI)",
        digest="02d6e9089b45ba69c1c15160cce4f74a404ac6c5062cfbf0c7d15d477de93ee6",
        sources=(
            # OpenML's copy (307) names the speakers instead of numbering them.
            Web(
                (f"{_UCI}/undocumented/connectionist-bench/vowel/vowel-context.data",),
                convert.vowel_from_text,
            ),
        ),
        notes=("Rows are sorted by split, speaker, class and features. Random splits mix the speakers.",),
        sort_rows=True,
    ),
    Entry(
        name="letter",
        title="Letter recognition from 16 image features",
        file="letter.npz",
        n_rows=20_000,
        n_features=16,
        class_names=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        license="CC BY 4.0 (UCI; Slate)",
        digest="654512993ad6eb02ffa15b63cf040e7bccf6ad73471783835b1b79dc2931b733",
        sources=(
            OpenML(6, convert.letter_from_arff),
            Web((f"{_UCI}/letter-recognition/letter-recognition.data",), convert.letter_from_text),
        ),
        notes=("The split is the usual convention: the first 16,000 rows train, the last 4,000 test.",),
    ),
    Entry(
        name="fashion_mnist",
        title="Fashion-MNIST articles of clothing, 28 x 28",
        file="fashion_mnist.npz",
        n_rows=70_000,
        n_features=784,
        class_names=_FASHION,
        license="MIT (Zalando)",
        # OpenML has it, too (40996), but without a checksum of the arrays its copy could not be verified.
        sources=(
            Web(
                tuple(f"{_ZALANDO}/{file}" for file in _IDX_FILES),
                convert.digit_images_from_idx,
                md5=_FASHION_MD5,
            ),
        ),
        notes=("No checksum of the arrays is known yet: the published MD5 of the four files stand in for it.",),
    ),
    Entry(
        name="caltech101",
        title="Caltech-101, gray, 32 x 32",
        file="caltech101_gray32.npz",
        n_rows=8_677,
        n_features=1_024,
        class_names=(),
        n_classes_in_file=101,
        license="CC BY 4.0 (Li, Andreeto, Ranzato, Perona)",
        digest="1acdb43183b3ceea2ec8503ddfbbb9e5b78d409648068629e26963ef3307a9ce",
        notes=("Without the background class. extra['top10'] lists the ten largest classes.",),
        no_download="the images have to be decoded and shrunk, which this package does not do",
    ),
    Entry(
        name="agnews",
        title="AG News test articles as 512 sentence-embedding features",
        file="agnews_use512.npz",
        n_rows=7_600,
        n_features=512,
        class_names=("World", "Sports", "Business", "Sci/Tech"),
        license="texts for research and other non-commercial use",
        digest="15da5364ca181ceab53c1178733e996a08ab88cfab830f16458884d9dc8fbc9a",
        notes=("Universal Sentence Encoder Lite, unit length, float16. No official split.",),
        no_download="the embeddings were computed for this collection and are published nowhere",
    ),
    Entry(
        name="banking77",
        title="BANKING77: questions about 77 intents as 384 sentence-embedding features",
        file="banking77_minilm384.npz",
        n_rows=13_083,
        n_features=384,
        class_names=(),
        n_classes_in_file=77,
        names_in_file="classes",
        license="CC BY 4.0 (PolyAI)",
        digest="d45401cad94b0e9c7ff17369810e759140df91c88bf862c857c46369035323b0",
        notes=("all-MiniLM-L6-v2, mean pooling, unit length, float16. Some labels are known to be wrong.",),
        no_download="the embeddings were computed for this collection and are published nowhere",
    ),
    Entry(
        name="small_mnist",
        title="Demo data of the *SHL authors: 300 labeled and 600 test digits",
        file="small_mnist.npz",
        n_rows=900,
        n_features=784,
        class_names=_DIGITS,
        license="all rights with the author of the demo; the images are MNIST",
        digest="6e18c877f91a7201dad9a37ccd24bbd400f8b8c35e75ffa04a35a34afde08786",
        sources=(
            Web(
                ("https://raw.githubusercontent.com/yinjiehuang/StarSHL/8995f722059b/data/small_mnist.mat",),
                convert.small_mnist_from_mat,
            ),
        ),
        notes=("Each part was scaled to [0, 1] feature by feature on its own. There is no unlabeled part.",),
    ),
    Entry(
        name="digits",
        title="Handwritten digits of scikit-learn, 8 x 8",
        file="",
        n_rows=1_797,
        n_features=64,
        class_names=_DIGITS,
        license="CC BY 4.0 (UCI; Alpaydin, Kaynak)",
        digest="41b22e946a23c946d33d45541953bd9ede4ad0e9eb607071cfcf20d5cff89c0e",
        notes=("Comes with scikit-learn. No official split.",),
    ),
)


def entry_of(name: str) -> Entry:
    """Return the entry of a data set, or raise an error that lists the closest names."""
    by_name = {entry.name: entry for entry in ENTRIES}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(str(name).lower().replace("-", "_"), by_name, n=3, cutoff=0.5)
    advice = f"Nearest are {', '.join(map(repr, near))}." if near else f"Known are {', '.join(by_name)}."
    raise ValueError(f"There is no data set {name!r}. {advice}")
