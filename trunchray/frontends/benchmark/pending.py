"""Files that are written all together, or not at all."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from trunchray.errors import UsageError


class Pending:
    """Keeps contents in `folder`, a temporary one, until all of them are known to be good."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._targets: list[Path] = []

    def add(self, target: Path, content: bytes) -> None:
        (self._folder / str(len(self._targets))).write_bytes(content)
        self._targets.append(target)

    def write(self) -> None:
        """Put every file in its place; folders are made as needed.

        Raises:
            UsageError: one of them cannot be written; files that were there before are then as they were, unless the
                very last step, renaming, failed.
        """
        beside = [target.with_name(f".{target.name}.part") for target in self._targets]
        try:
            for number, part in enumerate(beside):
                part.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self._folder / str(number), part)
            for part, target in zip(beside, self._targets, strict=True):
                part.replace(target)
        except OSError as e:
            raise UsageError(f"cannot write {str(e.filename)!r}: {e.strerror}") from e
        finally:
            for part in beside:
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)
