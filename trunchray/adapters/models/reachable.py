"""Is anybody there? One connection per endpoint, before a run begins."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from trunchray.core.agent import ModelAgent
from trunchray.errors import UsageError

CONNECT_SECONDS = 3.0


def check_reachable(spec: ModelAgent) -> None:
    """Refuse a model whose address is refused or unknown; a slow one, or one behind a proxy, is left to the run.

    Raises:
        UsageError: nobody listens at the model's `base_url`, or its host does not exist.
    """
    if spec.base_url is None:
        return
    address = urlsplit(spec.base_url)
    host = address.hostname or ""
    if address.scheme in getproxies() and not proxy_bypass(host):
        return
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except TimeoutError:
        return
    except OSError as e:
        raise UsageError(
            f"model {spec.name!r}: nobody answers at {spec.base_url} ({e.strerror or e}); "
            "start the server, or correct base_url"
        ) from e
