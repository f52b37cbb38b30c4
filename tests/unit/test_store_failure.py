from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from trunchray.adapters import s3_requests, store_failure
from trunchray.adapters.store import Store
from trunchray.errors import UsageError

URL = "http://store"


def answered(code: str, status: int, message: str = "Words.") -> OSError:
    """As s3fs raises what S3 answered."""
    error = OSError(errno.EIO, message)
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error.__cause__ = ClientError(response, "PutObject")
    return error


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (answered("SlowDown", 503), True),
        (answered("InternalError", 500), True),
        (answered("", 502), True),
        (answered("429", 429), True),
        (answered("RequestTimeout", 400), True),
        (answered("BadDigest", 400), True),
        (answered("ConditionalRequestConflict", 409), True),
        (answered("PreconditionFailed", 412), False),
        (answered("NoSuchBucket", 404), False),
        (answered("ExpiredToken", 400), False),
        (answered("SomethingNew", 403), False),
        (answered("NotImplemented", 501), False),
        (EndpointConnectionError(endpoint_url=URL), True),
        (ReadTimeoutError(endpoint_url=URL), True),
        (NoCredentialsError(), False),
        (ConnectionResetError(), True),
        (RuntimeError("what nobody has seen yet"), True),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (ValueError(), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_what_may_pass(error: BaseException, passes: bool):
    """Trouble on the way and a busy store may pass; refusals and mistakes of ours do not."""
    assert store_failure.may_pass(error) is passes


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (answered("NoSuchBucket", 404), "there is no bucket 'b' at http://store; create it, or correct the name"),
        (answered("InvalidAccessKeyId", 403), "the credentials are not accepted; check AWS_ACCESS_KEY_ID and"),
        (answered("ExpiredToken", 400), "the credentials have expired; get new ones and give the same command again"),
        (answered("PermanentRedirect", 301), "the bucket is in another region; set AWS_REGION to it"),
        (answered("RequestTimeTooSkewed", 403), "the clock of this machine is wrong"),
        (answered("", 404), "http://store does not answer like an object store; is AWS_ENDPOINT_URL right?"),
        (answered("SlowDown", 503), "SlowDown: Words."),
        (answered("SlowDown", 503, "<html>\n" + "x" * 300), "SlowDown: <html> " + "x" * 193 + "…"),
        (NoCredentialsError(), "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (EndpointConnectionError(endpoint_url=URL), "nothing answers at http://store; is it up, and is AWS_ENDPOINT"),
        (ConnectTimeoutError(endpoint_url=URL), "nothing answers at http://store"),
        (ReadTimeoutError(endpoint_url=URL), "http://store does not answer in time"),
        (PermissionError(errno.EACCES, "Permission denied"), "it may not be written with the permissions at hand"),
        (OSError(errno.ENOSPC, "No space left on device"), "there is no space left for it; make room and give"),
        (OSError(errno.EROFS, "Read-only file system"), "OSError: Read-only file system"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_what_people_are_told(error: BaseException, said: str):
    """Every failure is one short line with what to do, if anything can be done."""
    told = store_failure.explain(error, doing="written", bucket="b", endpoint=URL)
    assert told.startswith(said)
    assert "\n" not in told
    assert len(told) < 250


def test_what_refuses_to_create():
    """That an object is there already is not mistaken for a store that cannot tell."""
    assert store_failure.is_taken(answered("PreconditionFailed", 412))
    assert store_failure.is_taken(FileExistsError())
    assert not store_failure.is_taken(answered("InvalidRequest", 400))
    assert store_failure.lacks_conditions(answered("NotImplemented", 501))
    assert not store_failure.lacks_conditions(answered("PreconditionFailed", 412))


def test_an_endpoint_is_shown_without_its_password():
    """What is said of an endpoint holds no credentials."""
    assert s3_requests.endpoint(SimpleNamespace(endpoint_url="https://me:secret@store:9000/x")) == "https://store:9000"
    assert s3_requests.endpoint(SimpleNamespace(endpoint_url=None)) == "the store"


def test_an_endpoint_without_a_scheme_is_refused(monkeypatch: pytest.MonkeyPatch):
    """With what it has to begin with, and without what it is: it may hold a password."""
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):  # the second goes before the first
        monkeypatch.setenv(name, "me:secret@127.0.0.1:8333")
        with pytest.raises(UsageError, match=rf"^{name} has to begin with http:// or https://") as refused:
            Store("s3://bucket/runs")
        assert "secret" not in str(refused.value)
