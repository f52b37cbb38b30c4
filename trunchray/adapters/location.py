"""Where a file is, as somebody wrote it: a path on this machine, or the URI of an object such as s3://bucket/run.yaml."""

from __future__ import annotations

import posixpath

from trunchray.adapters.local_path import local_path
from trunchray.adapters.store import Store
from trunchray.errors import UsageError

_FILE = "file://"


def is_uri(location: str) -> bool:
    """Whether it is the URI of a store, and no path on this machine."""
    return "://" in location and not location.startswith(_FILE)


def beside(file: str, location: str) -> str:
    """A location that is written in a file: paths are taken from the folder that the file stands in.

    Raises:
        UsageError: no file can be called that.
    """
    if "://" in location:
        return location
    path = local_path(location)
    if not is_uri(file):
        return str(local_path(file.removeprefix(_FILE)).parent / path)
    if path.is_absolute():
        return str(path)
    scheme, _, rest = file.partition("://")
    return f"{scheme}://{posixpath.normpath(posixpath.join(posixpath.dirname(rest), location))}"


def absolute(location: str) -> str:
    """The same location, wherever it is looked up from."""
    return location if is_uri(location) else str(local_path(location.removeprefix(_FILE)).absolute())


def read_file(location: str, *, what: str = "", most: int | None = None) -> bytes:
    """The content of a file, of at most `most` bytes; `what` says in messages what was to be read.

    Raises:
        UsageError: there is no such file, it cannot be read, or it is too large.
        StoreUnusable: its store does not let us in.
    """
    try:
        content = _object(location) if is_uri(location) else _local(location.removeprefix(_FILE), most)
    except FileNotFoundError:
        if what:
            raise UsageError(f"cannot read {what} {location!r}: No such file or directory") from None
        raise UsageError(f"no such file: {location!r}") from None
    except OSError as e:
        raise UsageError(f"cannot read {f'{what} ' if what else ''}{location!r}: {e.strerror}") from e
    if most is not None and len(content) > most:
        raise UsageError(f"cannot read {location!r}: it is larger than {most // 2**20} MiB")
    return content


def _local(path: str, most: int | None) -> bytes:
    with local_path(path).open("rb") as file:
        return file.read(-1 if most is None else most + 1)


def _object(uri: str) -> bytes:
    store, name = opened(uri)
    return store.read(name)


def opened(location: str) -> tuple[Store, str]:
    """The folder that a file is in, there or not, and the file's name.

    Raises:
        UsageError: the location cannot be a file's, or there is no such kind of store.
    """
    folder, _, name = absolute(location).rpartition("/")
    if not location or not name or location.endswith("/") or (is_uri(location) and folder.endswith("/")):
        raise UsageError(
            f"cannot open {location!r}: it names no file in a folder; give a path, or a URI such as s3://bucket/run.yaml"
        )
    return Store(folder or "/"), name
