"""What tests of judges share."""

from __future__ import annotations

import pytest

from trunchray.adapters.models.litellm import prepare


@pytest.fixture(scope="session")
def litellm() -> None:
    """Imported and rehearsed, so that no test's time is spent on it."""
    prepare()
