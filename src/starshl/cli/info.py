"""``starshl info``: what a model file holds, without building the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from .options import AsJson, Model, print_json, print_table

__all__ = ["describe_model", "info"]


def info(model: Model, as_json: AsJson = False) -> None:
    """Show what a model file holds, and check it against its checksum."""
    found = describe_model(model)
    if as_json:
        print_json(found)
        return
    classes = ", ".join(map(str, found["classes"][:12])) + (", ..." if len(found["classes"]) > 12 else "")
    facts = {
        "method": found["method"],
        "bits": found["n_bits"],
        "features": found["n_features"] or "-",
        "classes": f"{len(found['classes'])}: {classes}" if found["classes"] else "-",
        "training rows": found["n_train"] or "-",
        "file": f"{found['file_bytes']:,} bytes, format {found['format']}",
    }
    print_table(["model", str(model)], [[name, str(value)] for name, value in facts.items()])
    if found["kernels"]:
        print_table(["kernel", "settings"], [[k["name"], _settings(k["settings"])] for k in found["kernels"]])
    print_table(["parameter", "value"], [[name, str(value)] for name, value in found["params"].items()])
    rows = [
        [array["name"], " x ".join(map(str, array["shape"])) or "1", array["dtype"], f"{array['bytes']:,}"]
        for array in found["arrays"]
    ]
    print_table(["array", "shape", "type", "bytes"], rows, right=("bytes",))
    typer.echo(f"sha256 {found['sha256']}: the contents match it.")


def describe_model(path: Path) -> dict[str, Any]:
    """Return what `--json` prints; a model with kernels given as functions can be described too."""
    from ..bundle import read_bundle, read_checksum
    from ..exceptions import BundleFormatError

    header, arrays = read_bundle(path)
    try:
        return {
            "model": str(path),
            "method": header["method"],
            "format": header["format"],
            "sha256": read_checksum(path),
            "file_bytes": path.stat().st_size,
            "n_bits": header["params"]["n_bits"]["value"],
            "n_features": header["fitted"].get("n_features_in_", {}).get("value"),
            "n_train": header.get("n_train"),
            "classes": _classes(header["fitted"], arrays),
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


def _classes(fitted: dict[str, Any], arrays: dict) -> list:
    from ..bundle import unpack_values

    if "classes_" not in fitted:
        return []
    return unpack_values({"classes_": fitted["classes_"]}, arrays, "fitted.")["classes_"].tolist()


def _describe_kernel(spec: dict[str, Any]) -> dict[str, Any]:
    if spec["name"] is None:
        return {"name": "a function", "settings": {"stored": "no: reopen with load(path, kernels=[...])"}}
    return {"name": spec["name"], "settings": {name: _describe_value(value) for name, value in spec["fields"].items()}}


def _describe_value(spec: dict[str, Any]) -> Any:
    return spec["value"] if "value" in spec else f"{spec['kind']} ({spec['dtype']})"


def _settings(settings: dict[str, Any]) -> str:
    shown = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in settings.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items()) or "-"
