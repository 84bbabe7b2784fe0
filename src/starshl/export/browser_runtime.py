"""onnxruntime-web for exported pages: installed by npm into the user's cache when a page is first made."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from ..data.datasets.store import cache_folder
from ..exceptions import MissingExtraError

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
_SCRIPT, _WASM = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
_SECONDS = 600  # for npm on a slow network


class BrowserRuntime(NamedTuple):
    """The two files of a runtime that a page holds, and what to call it."""

    script: bytes
    wasm: bytes
    name: str


def browser_runtime(folder: str | os.PathLike[str] | None = None) -> BrowserRuntime:
    """Return the runtime from a folder, from the user's cache, or from npm.

    Parameters
    ----------
    folder : path, default=None
        A folder that holds the files of onnxruntime-web, for example ``node_modules/onnxruntime-web/dist``, for
        machines without npm or network.
    """
    if folder is not None:
        return _read(Path(folder), PACKAGE)
    kept = cache_folder() / f"{PACKAGE}-{VERSION}"
    if not all((kept / name).is_file() for name in (_SCRIPT, _WASM)):
        _install(kept)
    return _read(kept, f"{PACKAGE} {VERSION}")


def _read(folder: Path, name: str) -> BrowserRuntime:
    for file in (_SCRIPT, _WASM):
        if not (folder / file).is_file():
            raise FileNotFoundError(
                f"{str(folder)!r} has no file {file!r}. Give the folder `dist` of {PACKAGE}, or leave it out, and npm "
                "installs it."
            )
    return BrowserRuntime((folder / _SCRIPT).read_bytes(), (folder / _WASM).read_bytes(), name)


def _install(kept: Path) -> None:
    """Let npm install the package into a separate folder, and keep the two files of it that a page needs."""
    npm = shutil.which("npm")
    if npm is None:
        raise MissingExtraError(
            f"A page that encodes needs {PACKAGE}, which npm installs, and there is no npm on this machine. Install "
            f"Node.js, or copy the folder `dist` of {PACKAGE} from another machine and give its path."
        )
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as draft:
        words = [npm, "install", "--prefix", draft, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
        try:
            done = subprocess.run(
                [*words, f"{PACKAGE}@{VERSION}"], capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(f"npm did not finish within {_SECONDS // 60} minutes. Check the network.") from error
        dist = Path(draft) / "node_modules" / PACKAGE / "dist"
        if done.returncode or not dist.is_dir():
            said = " ".join(done.stderr.split())[-300:] or "it said nothing"
            raise OSError(f"npm could not install {PACKAGE} {VERSION} ({said}). Check the network, and try again.")
        chosen = Path(draft) / "chosen"
        chosen.mkdir()
        for file in (_SCRIPT, _WASM):
            shutil.copyfile(dist / file, chosen / file)
        kept.mkdir(exist_ok=True)  # it may be there without one of the files, or another process may have been faster
        for file in (_SCRIPT, _WASM):
            os.replace(chosen / file, kept / file)
