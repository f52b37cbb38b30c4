"""Is anybody there? One connection per endpoint, before a run begins."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from trunchray.adapters.models.providers import address_shown
from trunchray.adapters.models.proxy import proxy_for
from trunchray.core.agent import ModelAgent
from trunchray.errors import UsageError

CONNECT_SECONDS = 3.0


def check_reachable(spec: ModelAgent) -> None:
    """Refuse a model whose address is refused or unknown; a slow one, or one behind a proxy, is left to the run.

    Raises:
        UsageError: nobody listens at the model's `base_url`, or its host does not exist.
    """
    if spec.base_url is None or proxy_for(spec.base_url):
        return
    address = urlsplit(spec.base_url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), timeout=CONNECT_SECONDS).close()
    except TimeoutError:
        return
    except (OSError, UnicodeError) as e:  # a host with an empty or over-long label cannot even be looked up
        reason = (e.strerror if isinstance(e, OSError) else None) or e
        raise UsageError(
            f"model {spec.name!r}: nobody answers at {address_shown(spec.base_url)} ({reason}); "
            "start the server, or correct base_url"
        ) from e
