"""What all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A slow or busy machine is no failure: no test asserts times, so no example has a deadline.
settings.register_profile("trunchray", deadline=None)
settings.load_profile("trunchray")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three processes for the whole suite; what is chosen from it runs in this one, where a debugger reaches it.

    Tests wait for a third of their time, so that two processors have enough to do. More would each start a Ray, an S3
    server and litellm of their own, which costs more than it gains.
    """
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return 3 if everything and not (config.option.keyword or config.option.markexpr) else 0
