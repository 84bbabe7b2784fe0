"""Examples for the help of every command."""

from __future__ import annotations

import typer

EXAMPLES: dict[str, tuple[str, ...]] = {
    "fit": (
        "starshl fit train.csv --labels kind -o model.star",
        "starshl fit train.csv --labels kind --bits 8,16,32 -o model.star",
        "starshl fit people.csv --labels segment --categories --impute --scale -o model.star",
        "starshl fit vectors.npy --method ITQ --bits 64 -o model.star",
    ),
    "encode": (
        "starshl encode model.star items.csv --database -o items.npz",
        "starshl encode model.star queries.csv -o queries.npz",
    ),
    "predict": (
        "starshl predict model.star new.csv",
        "starshl predict model.star new.csv --proba -o predictions.csv",
        "starshl predict model.star new.csv --reject 0.05",
    ),
    "compress": (
        "starshl compress model.star -o small.star",
        "starshl compress model.star --support 500 -o small.star",
    ),
    "export": (
        "starshl export model.star --onnx model.onnx",
        "starshl export model.star --onnx model.onnx --outputs codes,label,probabilities",
        "starshl export items --page items.html",
    ),
    "card": ("starshl card model.star", "starshl card model.star --held-out test.csv --labels kind -o measured.star"),
    "info": ("starshl info model.star", "starshl info album", "starshl info model.star --json"),
    "methods": ("starshl methods",),
    "demo": ("starshl demo", "starshl demo --bits 32 -o demo"),
    "reproduce": (
        "starshl reproduce --quick",
        "starshl reproduce --figure digits --bits 16,32 --methods starshl,ksh",
        "starshl reproduce --figure usps,pendigits --jobs 2",
        "starshl reproduce --figure digits --bits 15 --again",
    ),
    "report": ("starshl report starshl-records -o report",),
    "images": ("starshl images photos -o album", "starshl images photos -o album --embedder efficientnet-lite0"),
    "texts": (
        "starshl texts news.csv --text headline --labels topic -o news",
        "starshl texts lines.txt -o lines",
    ),
    "vectors": (
        "starshl vectors embeddings.npy --labels labels.npy -o items",
        "starshl vectors embeddings.npy --bits 64 -o items",
        "starshl vectors items.parquet --vectors embedding --title name -o items",
    ),
    "serve": (
        "starshl serve items",
        "starshl serve items news --host 0.0.0.0 --port 8080 --tokens tokens.txt",
        "starshl serve --demo",
    ),
    "explore": ("starshl explore", "starshl explore items --port 9000 --no-browser"),
    "cluster local": ("starshl cluster local --workers 4 --port 8786",),
    "data list": ("starshl data list",),
    "data get": ("starshl data get usps",),
    "data path": ("starshl data path usps",),
    "index build": (
        "starshl index build items model.star vectors.npz",
        "starshl index build items model.star items.csv --ids id --keep float16 --field year=int",
    ),
    "index add": (
        "starshl index add items more.csv",
        "starshl index add items changed.csv --ids id --replace",
        "starshl index add album new-photos",
        "starshl index add news more.csv --labels topic",
    ),
    "index classes": ("starshl index classes items",),
    "index rename": ("starshl index rename items cat kitten",),
    "index merge": ("starshl index merge items kitten cat",),
    "index remove-class": ("starshl index remove-class items blurred",),
    "index undo": ("starshl index undo items", "starshl index undo items --change 12"),
    "index suspects": ("starshl index suspects items", "starshl index suspects items --limit 100 --json"),
    "index refit": ("starshl index refit items",),
    "index label": ("starshl index label items 17 18 --set cat", "starshl index label items 17 --clear"),
    "index declare": ("starshl index declare items year=int region=str",),
    "index remove": ("starshl index remove items 17 18 --compact",),
    "index guess": ("starshl index guess album", "starshl index guess album --by lesson"),
    "index search": (
        "starshl index search items new.csv -k 5",
        """starshl index search news --text "oil prices" -k 5""",
        "starshl index search album --picture photo.jpg",
        "starshl index search items --item 17 --where region=north",
        """starshl index search items new.csv --where '{"year": {">=": 2020}}' --json""",
    ),
    "index verify": ("starshl index verify items",),
    "index rebuild": ("starshl index rebuild items",),
    "index export": ("starshl index export items -o items.parquet",),
    "index binarize": (
        "starshl index binarize items vectors.npy --labels labels.npy --bits 16,32,64",
        "starshl index binarize items vectors.parquet --vectors embedding --report comparison.html",
    ),
}


def add_examples(app: typer.Typer, group: str = "") -> None:
    """Let the help of every command end with its examples."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        # A line of \\b keeps the lines that follow it as they are.
        command.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[f"{group}{name}"])])
    for child in app.registered_groups:
        if child.typer_instance is not None:
            add_examples(child.typer_instance, f"{group}{child.name} ")
