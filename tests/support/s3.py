"""A real S3 server for tests: SeaweedFS, on this machine only, started once."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from support.s3_faults import FaultyStore
from trunchray.adapters import store
from trunchray.adapters.store import Store

BUCKET = "trunchray"
KEY, SECRET = "AKIATEST", "SECRETTEST"
READERS_KEY, READERS_SECRET = "AKIAREADER", "SECRETREADER"
"""Credentials that may read and list, but not write."""
_STARTS_WITHIN = 60
"""Seconds."""
_GO = {"GOGC": "50", "GOMAXPROCS": "2", "GOMEMLIMIT": "1GiB"}
"""With a limit below what it keeps at hand from the start, it collects garbage whenever there is nothing else to do."""


@dataclass(frozen=True)
class Bucket:
    """A folder in a bucket, and the proxy on the way to it."""

    uri: str
    proxy: FaultyStore

    def read(self, path: str) -> bytes:
        return Store(self.uri).read(path)

    def forget(self) -> None:
        """Let this process meet its stores anew."""
        store._manners.clear()

    def log_in_again(self) -> None:
        """Let it do so with the credentials of the moment; making a client takes a second."""
        store._s3.cache_clear()
        store._manners.clear()


class S3Server:
    """The server as a child process; its data is gone when it ends."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="trunchray-s3-"))
        ports = _free_ports(5)
        self.url = f"http://127.0.0.1:{ports[0]}"
        self._client: Any = get_session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=self.url,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(connect_timeout=5, read_timeout=5, retries={"total_max_attempts": 1}),
        )
        identities = self._folder / "identities.json"
        identities.write_text(json.dumps({"identities": _identities()}), encoding="utf-8")
        self._log = (self._folder / "log").open("wb")
        self._process = subprocess.Popen(
            [*_command(self._folder, ports), f"-s3.config={identities}"],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=os.environ | _GO,
        )

    def __enter__(self) -> Self:
        for _ in range(_STARTS_WITHIN * 5):
            if self._answers():
                return self
            if self._process.poll() is not None:
                break
            threading.Event().wait(0.2)  # the server is another process: there is nothing to wait on but its port
        log = (self._folder / "log").read_text(encoding="utf-8", errors="replace")
        self.__exit__(None, None, None)
        raise RuntimeError(f"the S3 server does not start:\n{log[-2000:]}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()  # nothing of it is kept, so nothing has to be closed in order
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        """Whether it takes something: it answers before it has users, and refuses them before it has a bucket."""
        try:
            self._client.put_object(Bucket=BUCKET, Key="ready", Body=b"")
        except (ClientError, BotoCoreError):
            return False
        return True


def environment(url: str) -> dict[str, str]:
    """What makes processes find the store at `url` as its owner, where no other variable begins with AWS_."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def weed() -> Path | None:
    """The server's program, when it is installed."""
    beside = Path(sys.executable).parent / "weed"
    found = beside if beside.exists() else shutil.which("weed")
    return Path(found) if found else None


def _command(folder: Path, ports: list[int]) -> list[str]:
    s3, master, volume, filer, admin = ports
    return [
        *(str(weed()), "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-master.telemetry=false", "-webdav=false", "-admin.ui=false"),
        *(f"-s3.port={s3}", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-master.port={master}"),
        *(f"-volume.port={volume}", f"-filer.port={filer}", f"-admin.port={admin}", f"-bucket={BUCKET}"),
    ]


def _identities() -> list[dict[str, object]]:
    return [
        {
            "name": "owner",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Read", "Write", "List", "Tagging"],  # with "Admin", buckets would be made by writing to them
        },
        {
            "name": "reader",
            "credentials": [{"accessKey": READERS_KEY, "secretKey": READERS_SECRET}],
            "actions": ["Read", "List"],
        },
    ]


def _free_ports(count: int) -> list[int]:
    """Ports that are free together with the one 10,000 above, where the server puts gRPC.

    Both lie outside of the ranges that Ray and the system give away by themselves. Processes that were started one
    after another do not look at the same ports at the same time.
    """
    found: list[int] = []
    for port in range(20_000 + 10 * os.getpid() % 2000, 22_700):
        if _free(port) and _free(port + 10_000):
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free ports for the S3 server")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
