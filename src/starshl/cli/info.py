"""``starshl info``: what a model file holds, without building the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .options import AsJson, Model, print_json, print_table, refuse_collection

if TYPE_CHECKING:
    import numpy as np

__all__ = ["describe_model", "info"]


def info(model: Model, as_json: AsJson = False) -> None:
    """Show what a model file holds, and verify its checksum."""
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


def describe_model(path: Path) -> dict[str, Any]:
    """Return what `--json` prints; a model with kernels given as functions can be described too."""
    from ..bundle import read_bundle, read_checksum
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
        raise BundleFormatError(
            f"{str(path)!r} is a starshl file, but not a complete model ({error!r}). "
            "Save the model again or fetch a fresh copy."
        ) from error


def _classes(fitted: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str) -> list[Any]:
    from ..stored_values import unpack_values

    if "classes_" not in fitted:
        return []
    return unpack_values({"classes_": fitted["classes_"]}, arrays, prefix)["classes_"].tolist()


def _views(fitted: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str) -> dict[str, float]:
    """Return the share of each view in the kernel weights."""
    from ..stored_values import unpack_values

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
