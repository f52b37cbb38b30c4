"""Bytes under names, on any fsspec location: local folders, `memory://`, `s3://` and the like.

This is the only module that knows how stores misbehave:

- Nothing is listed from a cache: another process may have written a moment ago.
- Content is serialised first and written in one go: a writer that dies leaves the old object or
  none, never half of one.
- Creating an object that must not exist yet is one conditional write. Unless the store confirms it, the object is
  read back and compared: when a response is lost, our own object looks like somebody else's. Some stores ignore the
  condition; that is found out with the first object created.
- Failures that may pass are met with patience, here and nowhere below: tries of libraries would multiply with ours.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import fsspec  # pyright: ignore[reportMissingTypeStubs]
from fsspec.config import conf  # pyright: ignore[reportMissingTypeStubs]
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_before_delay, wait_random_exponential

from trunchray.adapters import disk, s3_requests, store_failure
from trunchray.adapters.local_path import local_path
from trunchray.errors import StoreError, StoreUnusable, UsageError

T = TypeVar("T")

_EXTRAS = {"gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
"""What to install for other clouds."""


@dataclass(frozen=True)
class Patience:
    """How long an operation is tried again that fails in a way that may pass."""

    total: float = 60.0
    """Seconds after which no further try is begun."""
    short: float = 10.0
    """The same while the store has not answered yet, or has used up our patience the last time."""
    tries: int = 50
    sleep: Callable[[float], None] = time.sleep

    def tries_of(self, manners: _Manners) -> Retrying:
        return Retrying(
            retry=retry_if_exception(store_failure.may_pass),
            wait=wait_random_exponential(multiplier=0.1, max=5),
            stop=stop_after_attempt(self.tries) | stop_before_delay(self.total if manners.answers else self.short),
            sleep=self.sleep,
            reraise=True,
        )


@dataclass
class _Manners:
    """What this process has learnt of a bucket."""

    done: set[str] = field(default_factory=set[str])
    """What it has let us do: "read", "written"."""
    answers: bool = False
    """Did the last operation succeed?"""
    conditional: bool | None = None
    """Does it create objects only where there is none? None while nobody knows."""


_manners: dict[tuple[str, str], _Manners] = {}
"""By endpoint and bucket."""


@dataclass
class _Tally:
    made: int = 0


_tally = _Tally()


def requests_made() -> int:
    """Operations on stores that this process has begun so far, each try counted; of several objects at once, one."""
    return _tally.made


class Store:
    """A folder somewhere. Paths are relative to it, with forward slashes.

    All methods block. Every failure but a missing object is a `StoreError` that names the object; a `StoreUnusable`
    while nothing of the kind has succeeded yet.
    """

    page: ClassVar[int] = 1000
    """Names in one answer to a listing; stores give no more."""

    def __init__(self, uri: str, patience: Patience = Patience()) -> None:
        """`uri`: anything fsspec understands, or a plain path, which is taken from the current directory."""
        self._patience = patience
        try:
            self._fs, self._root = _filesystem(uri)
        except ImportError as e:
            extra = _EXTRAS.get(uri.partition("://")[0], "")
            remedy = f"pip install 'trunchray[{extra}]'" if extra else "give a path or a URI such as s3://bucket/folder"
            raise UsageError(f"cannot open {uri!r}: {e}; {remedy}") from e
        except ValueError as e:
            raise UsageError(f"cannot open {uri!r}: {e}; give a path or a URI such as s3://bucket/folder") from e
        except OSError as e:
            raise UsageError(f"cannot open {uri!r}: {e}; can it be reached from here?") from e
        self._local = isinstance(self._fs.protocol, tuple) and "file" in self._fs.protocol
        self._s3 = isinstance(self._fs.protocol, tuple) and "s3" in self._fs.protocol
        self._bucket = (self._root if self._s3 else self._root.lstrip("/")).partition("/")[0]
        if self._s3 and not self._bucket:
            raise UsageError(f"cannot open {uri!r}: it names no bucket; give a URI such as s3://bucket/folder")
        self._endpoint = s3_requests.endpoint(self._fs) if self._s3 else "the store"
        self._manners = _manners.setdefault((f"{type(self._fs)} {self._endpoint}", self._bucket), _Manners())
        self.uri = self._root if self._local else self._fs.unstrip_protocol(self._root)

    @property
    def conditional(self) -> bool:
        """Whether the store itself tells two apart that create the same object; known once one was created."""
        return self._local or self._manners.conditional is True

    @property
    def folder(self) -> Path | None:
        """The folder itself, when it is one of this machine's."""
        return Path(self._root or "/") if self._local else None

    def child(self, path: str) -> Store:
        """The folder `path` below this one."""
        return Store(f"{self.uri}/{path}", self._patience)

    def reach(self) -> None:
        """Make sure that the store can be asked at all.

        Raises:
            StoreUnusable: it cannot.
        """
        with suppress(FileNotFoundError, NotADirectoryError):
            self._try("", lambda: self._fs.cat_file(self._full(".trunchray"), **self._whole))

    def read(self, path: str) -> bytes:
        """The whole object.

        Raises:
            FileNotFoundError: there is no such object.
        """
        try:
            return self._try(path, lambda: self._fs.cat_file(self._full(path), **self._whole))
        except NotADirectoryError as e:
            raise FileNotFoundError(f"{self.uri}/{path}") from e

    def fetch(self, path: str, target: Path) -> None:
        """Copy the object to a local file, streaming.

        Raises:
            FileNotFoundError: there is no such object.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        self._try(path, lambda: self._fs.get_file(self._full(path), str(target)))

    def exists(self, path: str) -> bool:
        """Whether there is such an object."""
        full = self._full(path)
        if not self._s3:
            return self._try(path, lambda: bool(self._fs.exists(full)))
        try:
            self._try(path, lambda: s3_requests.touch(self._fs, full))
        except FileNotFoundError:
            return False
        return True

    def names(self, path: str = "") -> list[str]:
        """The names directly under a folder, sorted; none when there is no such folder."""
        full = self._full(path)
        try:
            found = self._pages(path) if self._s3 else self._try(path, lambda: self._fs.ls(full, detail=False))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found if name.rstrip("/") != full)

    def find(self, path: str = "") -> list[str]:
        """The paths of all objects below a folder, relative to this store, sorted."""
        if self._local:
            found = self._try(path, lambda: _files(self._full(path)))
        else:
            found = (
                self._pages(path, deep=True) if self._s3 else self._try(path, lambda: self._fs.find(self._full(path)))
            )
        return sorted(name.removeprefix(f"{self._root}/") for name in found)

    def _pages(self, path: str, *, deep: bool = False) -> list[str]:
        full = self._full(path)

        def fetch(after: str = "") -> tuple[list[str], str]:
            return self._try(path, lambda: s3_requests.page(self._fs, full, after, deep=deep, size=self.page))

        found, after = fetch()
        while after:
            more, after = fetch(after)
            found += more
        return found

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Several whole objects, fetched concurrently where the store allows it.

        Raises:
            StoreError: also when one of them is missing.
        """
        return {path: self._there(path, got) for path, got in self._many(paths).items()}

    def read_there(self, paths: Iterable[str], last: int | None = None) -> dict[str, bytes]:
        """As `read_many`, of those that are there; only the `last` bytes of each, where that is given."""
        return {path: got for path, got in self._many(paths, last).items() if isinstance(got, bytes)}

    def _many(self, paths: Iterable[str], last: int | None = None) -> dict[str, bytes | BaseException]:
        """The objects, or why they are missing."""
        wanted = {self._full(path): path for path in paths}
        found: dict[str, bytes | BaseException] = {}

        def fetch() -> None:
            """Those that are not there yet: among thousands one always fails."""
            left = [full for full in wanted if not isinstance(found.get(full), bytes)]
            start = None if last is None else [-last] * len(left)
            # Not `cat`, which takes a path with brackets for a pattern.
            contents = self._fs.cat_ranges(left, start, None, on_error="return", **self._whole)
            found.update(zip(left, contents, strict=True))
            for full, got in found.items():
                if last is not None and store_failure.is_out_of_range(got):
                    found[full] = b""  # an empty object has no last bytes
                elif isinstance(got, BaseException) and not isinstance(got, FileNotFoundError | NotADirectoryError):
                    raise got

        if wanted:
            self._try("" if len(wanted) > 1 else next(iter(wanted.values())), fetch)
        return {path: found[full] for full, path in wanted.items()}

    def _there(self, path: str, found: bytes | BaseException) -> bytes:
        if isinstance(found, bytes):
            return found
        raise StoreError(f"{self.uri}/{path} is there but cannot be read; is it a link that leads nowhere?") from found

    def write(self, path: str, content: bytes) -> None:
        """Put an object in place of whatever is there; readers see the old one or the new one."""
        if self._local:
            self._write(path, lambda: disk.replace(self._path(path), content))
        else:
            self._write(path, lambda: self._fs.pipe_file(self._full(path), content))

    def put(self, path: str, source: Path) -> None:
        """Copy a local file into the store, streaming; like `write` otherwise."""
        if self._local:
            self._write(path, lambda: disk.replace_with(self._path(path), source))
        else:
            self._write(path, lambda: self._fs.put_file(str(source), self._full(path)))

    def copy(self, path: str, target: str) -> None:
        """Put a copy of an object in place of whatever is at `target`; like `write` otherwise.

        Raises:
            FileNotFoundError: there is no such object.
        """
        if self._local:
            self._try(path, lambda: disk.replace_with(self._path(target), self._path(path)))
        else:
            self._try(path, lambda: self._fs.cp_file(self._full(path), self._full(target)))

    def remove(self, path: str) -> None:
        """Delete an object; one that is not there is deleted already."""
        if self._local:
            self._write(path, lambda: self._path(path).unlink(missing_ok=True))
        else:
            with suppress(FileNotFoundError):
                self._tried("written", lambda: self._fs.rm_file(self._full(path)))

    def create(self, path: str, content: bytes) -> bool:
        """Put an object only where there is none; True when the stored one is ours.

        `content` has to be unique to the caller (hold a token), because ownership may be decided by reading it back,
        and small: large objects are written in pieces, which stores do not create on condition.
        """
        if self._local:
            self._write(path, lambda: disk.create(self._path(path), content))
            return self._holds(path, content)
        if not self._manners.conditional and self.exists(path):
            return self._holds(path, content)
        done = self._put_new(path, content)
        # The same again has to be refused. A store that does it nevertheless has changed nothing by it.
        if done and self._manners.conditional is None and self._put_new(path, content):
            self._manners.conditional = False
        return (done and bool(self._manners.conditional)) or self._holds(path, content)

    def _put_new(self, path: str, content: bytes) -> bool:
        """Try to create an object; True when the store says that it did."""
        try:
            self._tried("written", lambda: self._fs.pipe_file(self._full(path), content, mode="create"))
        except Exception as e:
            if store_failure.is_taken(e):
                self._manners.conditional = True
            elif store_failure.lacks_conditions(e):
                self._manners.conditional = False
                self.write(path, content)
            elif not (store_failure.may_pass(e) and self.exists(path)):
                raise self._failed(path, e, "written") from e
            return False
        return True

    def _holds(self, path: str, content: bytes) -> bool:
        return self.read_many([path])[path] == content

    def _write(self, path: str, action: Callable[[], object]) -> None:
        """As `_try`; but a folder that cannot be is no missing object, it is a failure."""
        try:
            self._tried("written", action)
        except Exception as e:
            raise self._failed(path, e, "written") from e

    @property
    def _whole(self) -> dict[str, Any]:
        """Read in one request: in several, s3fs would first ask for the size."""
        return {"max_concurrency": 1} if self._s3 else {}

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _path(self, path: str) -> Path:
        return Path(self._full(path))

    def _try(self, path: str, action: Callable[[], T]) -> T:
        """Read something; what is missing stays a `FileNotFoundError`."""
        try:
            return self._tried("read", action)
        except NotADirectoryError:
            raise
        except FileNotFoundError as e:
            if store_failure.is_missing(e):
                self._manners.done.add("read")
                raise
            raise self._failed(path, e, "read") from e
        except Exception as e:
            raise self._failed(path, e, "read") from e

    def _tried(self, doing: str, action: Callable[[], T]) -> T:
        """Run one operation of the file system, again while it fails in a way that may pass."""
        if self._local:
            _tally.made += 1
            return action()
        manners = self._manners
        try:
            for attempt in self._patience.tries_of(manners):
                with attempt:
                    _tally.made += 1
                    result = action()
                    manners.answers = True
                    manners.done.add(doing)
                    return result
        except Exception as e:
            manners.answers = not store_failure.may_pass(e)
            raise
        raise AssertionError("unreachable: tenacity raises the last error")

    def _failed(self, path: str, error: Exception, doing: str) -> StoreError:
        kind = StoreError if self._local or doing in self._manners.done else StoreUnusable
        why = store_failure.explain(error, doing=doing, bucket=self._bucket, endpoint=self._endpoint)
        return kind(f"{self.uri}/{path}: {why}" if path else f"{self.uri}: {why}")


def _files(folder: str) -> list[str]:
    """The paths of all files below a folder of this machine; fsspec takes five times as long to find them.

    Links to folders are followed, and no folder is listed twice: one that holds two links to itself would have more
    paths than anybody can list.

    Raises:
        OSError: a folder cannot be read. Were it taken for empty, what is in it would be paid for again.
    """
    found: list[str] = []
    pending, seen = [folder], set[tuple[int, int]]()
    while pending:
        for root, folders, names in os.walk(pending.pop(), onerror=_unless_missing):
            here = _identity(root)
            if here in seen:
                folders.clear()
                continue
            seen.add(here)
            found += [f"{root}/{name}" for name in names]
            pending += [link for name in folders if Path(link := f"{root}/{name}").is_symlink()]
    return found


def _identity(folder: str) -> tuple[int, int]:
    """What is the same of a folder under each of its names; of one that has just gone, that of no other."""
    try:
        status = Path(folder).stat()
    except FileNotFoundError:
        return (-1, -1)
    return status.st_dev, status.st_ino


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _filesystem(uri: str) -> tuple[Any, str]:
    protocol = uri.partition("://")[0] if "://" in uri else "file"
    if protocol in {"s3", "s3a"}:
        fs = _s3(os.getpid(), _s3_options())
        return fs, fs._strip_protocol(uri).rstrip("/")  # noqa: SLF001 - what `url_to_fs` calls
    if protocol == "file":
        uri = str(local_path(uri.removeprefix("file://")).absolute())
    fs, root = fsspec.url_to_fs(uri, use_listings_cache=False)
    return fs, root.rstrip("/")


@cache
def _s3(_process: int, options: str) -> Any:
    """One for all threads of a process that use the same options: making a client takes long."""
    fs = fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True, **json.loads(options))
    fs.retries = 1
    return fs


def _s3_options() -> str:
    """The options of s3fs, as JSON. What is set by the means of fsspec (its files, FSSPEC_S3_…) goes before ours.

    Credentials and region are found by botocore; so is the endpoint, which is named here to tell clients apart.
    """
    own: dict[str, Any] = conf.get("s3", {})
    name = "AWS_ENDPOINT_URL_S3" if os.environ.get("AWS_ENDPOINT_URL_S3") else "AWS_ENDPOINT_URL"
    endpoint = os.environ.get(name) or None
    if endpoint and "endpoint_url" not in own and not endpoint.startswith(("http://", "https://")):
        raise UsageError(f"{name} has to begin with http:// or https://, as in http://127.0.0.1:8333")
    options = {"endpoint_url": endpoint} | own
    return json.dumps(options | {"config_kwargs": s3_requests.BOTOCORE | own.get("config_kwargs", {})})
