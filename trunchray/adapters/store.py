"""Bytes under names, on any fsspec location: local folders, `memory://`, `s3://` and the like.

This is the only module that knows how stores misbehave:

- Nothing is listed from a cache: another process may have written a moment ago.
- Content is serialised first and written in one go: a writer that dies leaves the old object or
  none, never half of one.
- Creating an object that must not exist yet is one conditional write, and whatever that write reports, the object is
  read back and compared: when a response is lost, our own object looks like somebody else's.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import fsspec  # pyright: ignore[reportMissingTypeStubs]
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_random_exponential

from trunchray.errors import StoreError, UsageError

T = TypeVar("T")

_OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {
        # The outer loop below retries; botocore's own five tries would multiply with it.
        "config_kwargs": {
            "retries": {"mode": "standard", "max_attempts": 2},
            "connect_timeout": 3,
            "read_timeout": 30,
        },
    },
}


class Store:
    """A folder somewhere. Paths are relative to it, with forward slashes.

    All methods block. Every failure but a missing object is a `StoreError` that names the object.
    """

    def __init__(self, uri: str) -> None:
        """`uri`: anything fsspec understands, or a plain path, which is taken from the current directory."""
        try:
            self._fs, self._root = _filesystem(uri)
        except (ValueError, ImportError) as e:
            raise UsageError(f"cannot open {uri!r}: {e}; give a path or a URI such as s3://bucket/folder") from e
        self._local = isinstance(self._fs.protocol, tuple) and "file" in self._fs.protocol
        self.uri = self._root if self._local else self._fs.unstrip_protocol(self._root)

    def child(self, path: str) -> Store:
        """The folder `path` below this one."""
        return Store(f"{self.uri}/{path}")

    def read(self, path: str) -> bytes:
        """The whole object.

        Raises:
            FileNotFoundError: there is no such object.
        """
        try:
            return self._try(path, lambda: self._fs.cat_file(self._full(path)))
        except NotADirectoryError as e:
            raise FileNotFoundError(f"{self.uri}/{path}") from e

    def exists(self, path: str) -> bool:
        return self._try(path, lambda: bool(self._fs.exists(self._full(path))))

    def names(self, path: str = "") -> list[str]:
        """The names directly under a folder, sorted; none when there is no such folder."""
        try:
            found = self._try(path, lambda: self._fs.ls(self._full(path), detail=False, refresh=True))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found if name.rstrip("/") != self._full(path))

    def find(self, path: str = "") -> list[str]:
        """The paths of all objects below a folder, relative to this store, sorted."""
        prefix = f"{self._root}/"
        return sorted(name.removeprefix(prefix) for name in self._try(path, lambda: self._fs.find(self._full(path))))

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Several whole objects, fetched concurrently where the store allows it."""
        wanted = {self._full(path): path for path in paths}
        if self._local or not wanted:
            return {path: self.read(path) for path in wanted.values()}
        found: dict[str, bytes] = self._try("", lambda: self._fs.cat(list(wanted)))
        return {wanted[full]: content for full, content in found.items()}

    def write(self, path: str, content: bytes) -> None:
        """Put an object in place of whatever is there; readers see the old one or the new one."""
        if self._local:
            self._write(path, lambda: _replace(self._path(path), content))
        else:
            self._write(path, lambda: self._fs.pipe_file(self._full(path), content))

    def put(self, path: str, source: Path) -> None:
        """Copy a local file into the store, streaming; like `write` otherwise."""
        if self._local:
            self._write(path, lambda: _replace_with(self._path(path), source))
        else:
            self._write(path, lambda: self._fs.put_file(str(source), self._full(path)))

    def create(self, path: str, content: bytes) -> bool:
        """Put an object only where there is none; True when the stored one is ours.

        `content` has to be unique to the caller (hold a token), because ownership is decided by reading it back.
        """
        try:
            self._write(path, lambda: self._create(path, content))
        except StoreError:
            if not self.exists(path):
                raise
        return self.read(path) == content

    def _write(self, path: str, action: Callable[[], None]) -> None:
        """As `_try`; but a folder that cannot be is no missing object, it is a failure."""
        try:
            self._try(path, action)
        except (FileNotFoundError, NotADirectoryError) as e:
            raise StoreError(f"{self.uri}/{path}: {type(e).__name__}: {e}") from e

    def _create(self, path: str, content: bytes) -> None:
        if self._local:
            _link(self._path(path), content)
        else:
            self._fs.pipe_file(self._full(path), content, mode="create")

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _path(self, path: str) -> Path:
        return Path(self._full(path))

    def _try(self, path: str, action: Callable[[], T]) -> T:
        """Run one operation of the file system, again while it fails in a way that may pass."""
        try:
            if self._local:
                return action()
            for attempt in _patience():
                with attempt:
                    return action()
        except (FileNotFoundError, NotADirectoryError):
            raise
        except Exception as e:
            raise StoreError(f"{self.uri}/{path}: {type(e).__name__}: {e}") from e
        raise AssertionError("unreachable: tenacity raises the last error")


def _filesystem(uri: str) -> tuple[Any, str]:
    protocol = uri.partition("://")[0] if "://" in uri else "file"
    if protocol == "file":
        uri = str(Path(uri.removeprefix("file://")).expanduser().absolute())
    fs, root = fsspec.url_to_fs(uri, use_listings_cache=False, **_OPTIONS.get(protocol, {}))
    return fs, root.rstrip("/")


def _patience() -> Retrying:
    return Retrying(
        retry=retry_if_exception(_may_pass),
        wait=wait_random_exponential(multiplier=0.1, max=5),
        stop=stop_after_attempt(12) | stop_after_delay(60),
        reraise=True,
    )


def _may_pass(error: BaseException) -> bool:
    """A conflict (EINVAL from s3fs), a refusal and a missing object stay as they are; other I/O errors may pass."""
    final = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
    return isinstance(error, OSError) and not isinstance(error, final) and error.errno != 22


def _temporary(path: Path, content: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    if content is not None:
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return temporary


def _replace(path: Path, content: bytes) -> None:
    temporary = _temporary(path, content)
    try:
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _replace_with(path: Path, source: Path) -> None:
    temporary = _temporary(path)
    try:
        shutil.copyfile(source, temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _link(path: Path, content: bytes) -> None:
    """Create atomically: the name appears together with the whole content, or somebody else's stays."""
    temporary = _temporary(path, content)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
