"""Which proxy stands between this machine and an endpoint."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_for(base_url: str) -> str | None:
    """The proxy that the environment names for this address (`https_proxy`, `no_proxy`, …); None for a direct way.

    aiohttp could find it by itself, but would then also send what a `.netrc` says of the host in place of our key.
    """
    address = urlsplit(base_url)
    proxy = getproxies().get(address.scheme)
    return None if proxy is None or proxy_bypass(address.hostname or "") else proxy
