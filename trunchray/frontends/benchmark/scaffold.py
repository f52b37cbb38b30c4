"""`trunchray init`: a small benchmark with one example of each form of cases, which compiles as it stands."""

from __future__ import annotations

from pathlib import Path

from trunchray.errors import UsageError

_TEMPLATE = Path(__file__).parent / "template"


def scaffold(directory: Path) -> list[str]:
    """Write the benchmark into a new or empty folder; gives back the files written, relative to it and sorted.

    Raises:
        UsageError: the folder holds something already, or cannot be written.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{str(directory)!r} exists and is not an empty folder; choose another name")
    files = sorted(path.relative_to(_TEMPLATE) for path in _TEMPLATE.rglob("*") if path.is_file())
    try:
        for file in files:
            target = directory / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((_TEMPLATE / file).read_bytes())
    except OSError as e:
        raise UsageError(f"cannot write {str(directory)!r}: {e}") from e
    return [file.as_posix() for file in files]
