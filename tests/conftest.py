"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A slow or busy machine is no failure: no test asserts times, so no example has a deadline.
settings.register_profile("trunchray", deadline=None)
settings.load_profile("trunchray")
