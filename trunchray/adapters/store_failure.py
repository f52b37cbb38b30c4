"""What goes wrong in stores: what may pass, and what to tell people. No I/O.

Libraries of stores are known by the names of their errors here, so that none is loaded just to look.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

_FINAL = (
    AssertionError,
    FileExistsError,
    FileNotFoundError,
    ImportError,
    IsADirectoryError,
    MemoryError,
    NotADirectoryError,
    NotImplementedError,
    PermissionError,
    TypeError,
    ValueError,
)
"""Errors that trying again does not mend, wherever they come from."""
_PASSING_CODES = {
    *("408", "409", "429", "RequestTimeout", "ConditionalRequestConflict", "OperationAborted"),
    *("BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch"),  # what arrived is not what was sent
}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_TAKEN = {"PreconditionFailed", "412"}
_UNCONDITIONAL = {"NotImplemented", "501"}

_REJECTED = "the credentials are not accepted; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_EXPIRED = "the credentials have expired; get new ones and give the same command again"
_NONE = "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_ELSEWHERE = "the bucket is in another region; set AWS_REGION to it"
_SILENT = "nothing answers at {endpoint}; is it up, and is AWS_ENDPOINT_URL right?"
_STRANGE = "{endpoint} does not answer like an object store; is AWS_ENDPOINT_URL right?"
_SLOW = "{endpoint} does not answer in time"

_BY_CODE = {
    "NoSuchBucket": "there is no bucket {bucket!r} at {endpoint}; create it, or correct the name",
    "InvalidBucketName": "{bucket!r} cannot be the name of a bucket",
    "InvalidAccessKeyId": _REJECTED,
    "SignatureDoesNotMatch": _REJECTED,
    "InvalidToken": _REJECTED,
    "AuthorizationHeaderMalformed": _ELSEWHERE,
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "RequestExpired": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "RequestTimeTooSkewed": "the clock of this machine is wrong, so the store does not trust its requests",
    "PermanentRedirect": _ELSEWHERE,
    "IllegalLocationConstraintException": _ELSEWHERE,
    "301": _ELSEWHERE,
    "400": _STRANGE,
    "404": _STRANGE,
    "405": _STRANGE,
    "501": _STRANGE,
}
_BY_NAME = {
    "NoCredentialsError": _NONE,
    "PartialCredentialsError": _NONE,
    "EndpointConnectionError": _SILENT,
    "ConnectTimeoutError": _SILENT,
    "ReadTimeoutError": _SLOW,
    "ResponseParserError": _STRANGE,
}
"""Of botocore's errors: those with a response by its code, the others by their names."""


def code(error: BaseException) -> str:
    """The store's own word for a refusal, such as "NoSuchKey", or an HTTP status; "" when it has none."""
    return _answer(error)[0]


def may_pass(error: BaseException) -> bool:
    """Whether the same request could succeed a moment later."""
    found, status = _answer(error)
    if found in _PASSING_CODES:
        return True
    if found in _BY_CODE or isinstance(error, _FINAL) or not isinstance(error, Exception):
        return False
    return not status.startswith("4") and found not in _UNCONDITIONAL and _BY_NAME.get(type(error).__name__) != _NONE


def is_out_of_range(error: object) -> bool:
    """Whether bytes were asked for that the object has not."""
    return isinstance(error, Exception) and code(error) in {"InvalidRange", "416"}


def is_taken(error: BaseException) -> bool:
    """Whether the store refused to create an object because there is one."""
    return isinstance(error, FileExistsError) or code(error) in _TAKEN


def lacks_conditions(error: BaseException) -> bool:
    """Whether the store said that it cannot create objects on condition."""
    return isinstance(error, NotImplementedError) or code(error) in _UNCONDITIONAL


def is_missing(error: FileNotFoundError) -> bool:
    """Whether it is the object that is missing, and not the bucket or the whole store."""
    return code(error) in {"", "NoSuchKey"}


def explain(error: BaseException, *, doing: str, bucket: str, endpoint: str) -> str:
    """What happened and what to do, in one line. `doing` says what was wanted: "read" or "written"."""
    known = _BY_CODE.get(code(error)) or _BY_NAME.get(type(error).__name__)
    if known:
        return known.format(bucket=bucket, endpoint=endpoint)
    if isinstance(error, OSError) and error.errno in _FULL:
        return "there is no space left for it; make room and give the same command again"
    if isinstance(error, PermissionError):
        return f"it may not be {doing} with the permissions at hand ({_said(error)})"
    return _said(error)


def _answer(error: BaseException) -> tuple[str, str]:
    """The code and the HTTP status that the store answered with; "" where it did not."""
    for known in (error, error.__cause__):
        response: Any = getattr(known, "response", None)
        if isinstance(response, Mapping):
            status = str(response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
            return str(response.get("Error", {}).get("Code") or status), status
        if type(known).__module__.partition(".")[0] in {"gcsfs", "azure"}:
            status = str(getattr(known, "code", None) or getattr(known, "status_code", None) or "")
            return status, status
    return "", ""


def _said(error: BaseException) -> str:
    """The error's own words, on one line of reasonable length."""
    name = code(error) or type(error).__name__
    words = " ".join(str(getattr(error, "strerror", None) or error).split())
    return f"{name}: {words[:200]}{'…' if len(words) > 200 else ''}" if words else name
