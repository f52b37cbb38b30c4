"""Questions to an S3 store, one request each, where s3fs would ask several times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from trunchray.adapters import store_failure

FileSystem: TypeAlias = Any
"""An `s3fs.S3FileSystem` (it ships no types)."""

BOTOCORE = {
    "retries": {"mode": "standard", "total_max_attempts": 1},
    "connect_timeout": 3,
    "read_timeout": 30,
}
"""One try and bounded waits, in seconds: whoever calls has the patience."""


def touch(fs: FileSystem, path: str) -> None:
    """Read as little as possible of an object. Not by HEAD: refusals of that do not say why.

    Raises:
        FileNotFoundError: there is no such object.
    """
    try:
        fs.cat_file(path, start=0, end=1)
    except OSError as e:
        if store_failure.code(e) not in {"InvalidRange", "416"}:  # it is empty
            raise


def page(fs: FileSystem, path: str, after: str = "", *, deep: bool, size: int) -> tuple[list[str], str]:
    """Up to `size` paths below a folder, and what to pass as `after` for the next ones; "" when these are the last.

    Folders are among them, with a slash at the end, unless `deep`; then what is in them is.
    """
    bucket, _, key = path.rstrip("/").partition("/")
    question: dict[str, Any] = {"Bucket": bucket, "Prefix": f"{key}/" if key else "", "MaxKeys": size}
    question |= {} if deep else {"Delimiter": "/"}
    answer = fs.call_s3("list_objects_v2", **question, **({"ContinuationToken": after} if after else {}))
    found = [f"{bucket}/{name}" for name in _names(answer) if name != question["Prefix"]]
    return found, answer.get("NextContinuationToken", "") if answer.get("IsTruncated") else ""


def endpoint(fs: FileSystem) -> str:
    """Where requests go, for messages; without the name and password that it may hold."""
    place = urlsplit(fs.endpoint_url or "")
    return f"{place.scheme}://{place.netloc.rpartition('@')[2]}" if place.hostname else "the store"


def _names(answer: dict[str, Any]) -> Iterator[str]:
    yield from (entry["Key"] for entry in answer.get("Contents", ()))
    yield from (entry["Prefix"] for entry in answer.get("CommonPrefixes", ()))
