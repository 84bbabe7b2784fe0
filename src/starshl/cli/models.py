"""Commands about models: ``card``, ``compress``, ``info`` (of collections, too), and ``methods`` to fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    AsJson,
    Decimal,
    Drop,
    Labels,
    Model,
    ModelOrCollection,
    Seed,
    Vectors,
    check_output,
    is_collection,
    load_model,
    print_json,
    print_table,
    refuse_collection,
)
from .rows import label_file, read_rows, row_columns

if TYPE_CHECKING:
    import numpy as np

    from ..hashers.base import BaseHasher

HeldOut = Annotated[
    Path | None,
    typer.Option(
        "--held-out",
        metavar="INPUT",
        help="Labeled rows that the fit has not seen, to measure precision and accuracy; a table as for `fit`.",
    ),
]
MeasuredModel = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="MODEL", help="Write a copy of the model with the measurement in its card."),
]
SmallerModel = Annotated[
    Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the smaller model.")
]
Support = Annotated[
    int | None,
    typer.Option("--support", "-s", metavar="N", min=1, help="Support rows to keep; by default, a tenth of them."),
]


def card(
    model: Model,
    held_out: HeldOut = None,
    labels: Labels = None,
    drop: Drop = None,
    decimal: Decimal = None,
    vectors: Vectors = None,
    output: MeasuredModel = None,
    as_json: AsJson = False,
) -> None:
    """Print the card of a model: data, settings, figures, limits.

    As Markdown, or as JSON with --json.
    """
    if output is not None:
        if held_out is None:
            raise ValueError(
                "--output stores a measurement in the card, and there is none. Give --held-out INPUT, or leave "
                "--output out."
            )
        check_output(output, [model, held_out, label_file(labels)])
    from ..hashers.card import card_markdown, measure, model_card

    hasher = load_model(model)
    if held_out is not None:
        columns = row_columns(labels, vectors=vectors, drop=drop, decimal=decimal)
        table = read_rows(held_out, columns, hasher)
        measure(hasher, table.X, table.y)
    if output is not None:
        hasher.save(output)
    contents = model_card(hasher)
    if as_json:
        print_json(contents)
    else:
        typer.echo(card_markdown(contents), nl=False)


def compress(
    model: Model, output: SmallerModel, support: Support = None, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Write a smaller model that encodes faster.

    It keeps fewer support rows. Its codes differ from those of the larger model, so encode your database again.
    """
    summary = compress_model(model, output, support, seed)
    if as_json:
        print_json(summary)
    else:
        typer.echo(
            f"{summary['n_support']:,} support rows instead of {summary['n_support_before']:,}, "
            f"{summary['agreement']:.1%} of the code bits stay the same: {output}"
        )


def compress_model(model: Path, output: Path, support: int | None, seed: int) -> dict[str, Any]:
    """Compress one model file into another; return what `--json` prints."""
    check_output(output, [model])
    hasher = load_model(model)
    hasher.require("compress")
    small = hasher.compress(support, random_state=seed)
    small.save(output)
    return {
        "output": str(output),
        "n_support": len(small.kept_samples),
        "n_support_before": len(hasher.kept_samples),
        "agreement": small.fit_summary.agreement,
    }


def info(model: ModelOrCollection, as_json: AsJson = False) -> None:
    """Show what a model file or a collection holds.

    The checksum of a model file is verified. To verify a collection, use `starshl index verify`.
    """
    if is_collection(model):
        _show_collection(model, as_json)
        return
    contents = describe_model(model)
    if as_json:
        print_json(contents)
        return
    classes = ", ".join(map(str, contents["classes"][:12])) + (", ..." if len(contents["classes"]) > 12 else "")
    facts = {
        "method": contents["method"],
        "preprocessing": ", ".join(contents["steps"]) or "-",
        "bits": contents["n_bits"],
        "features": contents["n_features"] or "-",
        "classes": f"{len(contents['classes'])}: {classes}" if contents["classes"] else "-",
        "training rows": contents["n_train"] or "-",
        "views": ", ".join(f"{view} {share:.2f}" for view, share in contents["views"].items()) or "-",
        "the fit chose": contents["choice"] or "-",
        "file": f"{contents['file_bytes']:,} bytes, format {contents['format']}",
    }
    print_table(["model", str(model)], [[name, str(value)] for name, value in facts.items()])
    if contents["kernels"]:
        print_table(["kernel", "settings"], [[k["name"], _settings(k["settings"])] for k in contents["kernels"]])
    print_table(["parameter", "value"], [[name, str(value)] for name, value in contents["params"].items()])
    rows = [
        [array["name"], " x ".join(map(str, array["shape"])) or "1", array["dtype"], f"{array['bytes']:,}"]
        for array in contents["arrays"]
    ]
    print_table(["array", "shape", "type", "bytes"], rows, right=("bytes",))
    typer.echo(f"sha256 {contents['sha256']}: the contents match it.")


def _show_collection(folder: Path, as_json: bool) -> None:
    contents = describe_collection(folder)
    if as_json:
        print_json(contents)
        return
    classes = [f"{label} ({count:,})" for label, count in contents["classes"][:6]]
    more = f", and {len(contents['classes']) - 6:,} more" if len(contents["classes"]) > 6 else ""
    facts = {
        "items": f"{contents['n_items']:,} {contents['kind']}",
        "labeled": f"{contents['n_labeled']:,}",
        "classes": f"{len(contents['classes']):,}: {', '.join(classes)}{more}" if classes else "-",
        "guessed": "-" if contents["n_guessed"] is None else f"{contents['n_guessed']:,}",
        "codes": f"{contents['n_bits']} bits by {contents['method']}",
        "the fit chose": contents["choice"] or "-",
        "embedder": contents["embedder"] or "-",
        "vectors": contents["vectors"] or "not kept",
        "declared fields": ", ".join(f"{name}={kind}" for name, kind in contents["fields"].items()) or "-",
        "folder": f"{contents['bytes']:,} bytes",
    }
    print_table(["collection", str(folder)], [[name, value] for name, value in facts.items()])
    typer.echo(f"Search it: starshl index search {folder} ...   Look at it: starshl explore {folder}")


def describe_collection(folder: Path) -> dict[str, Any]:
    """Return what `--json` prints of a collection."""
    from ..collection.collection import Collection

    with Collection(folder, read_only=True) as collection:
        counts, guesses, embedder = collection.label_counts(), collection.guesses(), collection.embedder
        return {
            "collection": str(folder),
            "kind": collection.kind,
            "n_items": len(collection),
            "n_labeled": sum(counts.values()),
            "classes": list(counts.items()),
            "n_guessed": None if guesses is None else len(guesses),
            "method": collection.hasher.method_name,
            "n_bits": collection.n_bits,
            "choice": collection.hasher.class_part.fit_summary.choice,
            "embedder": None if embedder is None else embedder.name,
            "vectors": collection.vector_dtype,
            "fields": collection.fields,
            "bytes": sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
        }


def describe_model(path: Path) -> dict[str, Any]:
    """Return what `--json` prints; a model with kernels given as functions can be described too."""
    from .._common.bundle import read_bundle, read_checksum
    from ..exceptions import BundleFormatError

    refuse_collection(path)
    whole, arrays = read_bundle(path)
    try:
        steps = [spec["name"] or f"{spec['type']} (not in the file)" for spec in whole.get("steps", [])]
        # This describes the hasher inside the preprocessing.
        header = {"format": whole["format"], **whole.get("hasher", whole)}
        prefix = "hasher.fitted." if "hasher" in whole else "fitted."
        return {
            "model": str(path),
            "method": header["method"],
            "steps": steps,
            "format": header["format"],
            "sha256": read_checksum(path),
            "file_bytes": path.stat().st_size,
            "n_bits": header["fitted"].get("n_bits_", header["params"]["n_bits"])["value"],
            "n_features": whole["fitted"].get("n_features_in_", {}).get("value"),
            "n_train": header.get("n_train"),
            "choice": header["fitted"].get("choice_", {}).get("value"),
            "classes": _classes(header["fitted"], arrays, prefix),
            "views": _views(header["fitted"], arrays, prefix),
            "kernels": [_describe_kernel(spec) for spec in header.get("kernels", [])],
            "params": {name: _describe_value(spec) for name, spec in header["params"].items()},
            "arrays": [
                {"name": name, "shape": list(array.shape), "dtype": str(array.dtype), "bytes": array.nbytes}
                for name, array in sorted(arrays.items())
            ],
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise BundleFormatError.damaged(f"it does not hold a complete model ({error!r})", path) from error


def _classes(fitted: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str) -> list[Any]:
    from .._common.bundle import unpack_values

    if "classes_" not in fitted:
        return []
    return unpack_values({"classes_": fitted["classes_"]}, arrays, prefix)["classes_"].tolist()


def _views(fitted: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str) -> dict[str, float]:
    """Return the share of each view in the kernel weights."""
    from .._common.bundle import unpack_values

    names = ("view_names_", "view_shares_")
    if not all(name in fitted for name in names):
        return {}
    found = unpack_values({name: fitted[name] for name in names}, arrays, prefix)
    return dict(zip(found["view_names_"].tolist(), found["view_shares_"].tolist(), strict=True))


def _describe_kernel(spec: dict[str, Any]) -> dict[str, Any]:
    if spec["name"] is None:
        return {"name": "a function", "settings": {"stored": "no: this model works in Python only"}}
    settings = {name: _describe_value(value) for name, value in spec["fields"].items()}
    if "kernel" not in spec:
        return {"name": spec["name"], "settings": settings}
    # A kernel on columns is known by the kernel inside and by its view.
    inner = _describe_kernel(spec["kernel"])
    view = {"view": settings["view"]} if settings["view"] else {}
    return {"name": inner["name"], "settings": view | inner["settings"]}


def _describe_value(spec: dict[str, Any]) -> Any:
    return spec["value"] if "value" in spec else f"{spec['kind']} ({spec['dtype']})"


def _settings(settings: dict[str, Any]) -> str:
    shown = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in settings.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items()) or "-"


def methods(as_json: AsJson = False) -> None:
    """List the hashing methods: labels, input, cost, variants."""
    from ..hashers.catalog import METHODS, get_class
    from ..hashers.facts import LABEL_USES

    classes = [get_class(name) for name in METHODS]
    if as_json:
        print_json([_as_dict(hasher_class) for hasher_class in classes])
        return
    rows = [[each.__name__, each.facts.labels, _description(each)] for each in classes]
    print_table(["method", "labels", "paper, what fit takes, what it costs"], rows)
    for word, meaning in LABEL_USES.items():
        typer.echo(f"{word}: {meaning}")


def _as_dict(hasher_class: type[BaseHasher]) -> dict[str, Any]:
    from dataclasses import asdict

    variants = [
        {"name": variant.name, "params": variant.params, **asdict(variant.facts(hasher_class.facts))}
        for variant in hasher_class.variants
    ]
    return {"name": hasher_class.__name__, **asdict(hasher_class.facts), "variants": variants}


def _description(hasher_class: type[BaseHasher]) -> str:
    facts = hasher_class.facts
    lines = [f"{facts.paper} ({facts.year})", f"takes {facts.samples}; costs {facts.cost}"]
    for variant in hasher_class.variants:
        settings = ", ".join(f"{name}={value!r}" for name, value in variant.params.items())
        lines.append(f"{variant.name}: {settings}; labels {variant.facts(facts).labels}")
    return "\n".join(lines)
