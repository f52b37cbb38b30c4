"""A folder that is known by more than its name, since whoever works in it may put something else in its place."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

_IN_FOLDER = "import os, sys; os.fchdir(int(sys.argv[1])); os.execvp(sys.argv[2], sys.argv[2:])"
_FORCE = (
    ["find", ".", "-type", "d", "!", "-perm", "-700", "-exec", "chmod", "u+rwx", "{}", ";"],
    ["find", ".", "-mindepth", "1", "-delete"],
)


class HeldFolder:
    """An open folder, until `close`.

    Raises:
        OSError: there is none at `path`, or a link.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    @property
    def stands(self) -> bool:
        """Whether it is still what its path leads to, and not by a link of that name."""
        return self._is_at(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it, also where it has another name in the same folder by now; nothing else.

        Where it has been moved farther, it is emptied. What a tool has taken its own rights away from goes as well, and
        nested folders without end.
        """
        self._empty()
        with contextlib.suppress(OSError):
            named = self.path if self.stands else next(filter(self._is_at, self.path.parent.iterdir()), None)
            if named:
                named.rmdir()

    def close(self) -> None:
        os.close(self._file)

    def _empty(self) -> None:
        with contextlib.suppress(OSError):
            os.fchmod(self._file, 0o700)
        try:
            for name in self._names():
                _remove(name, self._file)
        except (OSError, RecursionError):
            for command in _FORCE:
                self._run(command)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._file)  # noqa: PTH208 - a descriptor
        except FileNotFoundError:  # it has been removed
            return []

    def _is_at(self, path: Path) -> bool:
        try:
            return os.path.samestat(path.lstat(), os.fstat(self._file))
        except OSError:
            return False

    def _run(self, command: list[str]) -> None:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _IN_FOLDER, str(self._file), *command],
            pass_fds=(self._file,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )


def _remove(name: str, folder: int) -> None:
    """It is not followed when it is a link, nor is anything in it."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)
