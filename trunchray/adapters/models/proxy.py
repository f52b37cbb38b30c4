"""Which proxy stands between this machine and an endpoint."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from trunchray.errors import UsageError


def proxy_for(base_url: str) -> str | None:
    """The proxy that the environment names for this address (`https_proxy`, `no_proxy`, …); None for a direct way.

    aiohttp could find it by itself, but would then also send what a `.netrc` says of the host in place of our key.

    Raises:
        UsageError: what the environment names is not the address of an HTTP proxy; it is not repeated, as it may hold
            a password.
    """
    address = urlsplit(base_url)
    proxy = getproxies().get(address.scheme)
    if proxy is None or proxy_bypass(address.hostname or ""):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_http(proxy):
        raise UsageError(
            f"what {address.scheme}_proxy holds is not the address of an HTTP proxy (it is not shown, as it may hold a "
            "password): write it like 'http://proxy.example:3128', with %-escapes for the special characters of a "
            "password, or unset it"
        )
    return proxy


def proxies() -> list[str]:
    """All that the environment names and that could be used, for whatever address."""
    named = (getproxies().get(scheme) for scheme in ("http", "https"))
    whole = (proxy if "://" in proxy else f"http://{proxy}" for proxy in named if proxy)
    return [proxy for proxy in whole if _is_http(proxy)]


def _is_http(proxy: str) -> bool:
    if not proxy.isprintable() or " " in proxy:
        return False
    try:
        parts = urlsplit(proxy)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
