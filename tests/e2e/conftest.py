"""One Ray for the whole test run: starting it takes ten seconds."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def ray_here() -> Iterator[None]:
    from trunchray.engine.cluster import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


@pytest.fixture(params=["local", "ray"])
def pool(request: pytest.FixtureRequest) -> str:
    """Every engine scenario runs in this process and on Ray."""
    if request.param == "ray":
        request.getfixturevalue("ray_here")
    return request.param
