"""A real model on this machine: llama.cpp's own server, as the Python package xllamacpp carries it.

It speaks the OpenAI format, batches what comes at once, and listens on this machine alone. The same request may get
another answer when others are answered beside it, at temperature 0 and with a seed as well.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trunchray.errors import UsageError

HOST = "127.0.0.1"

_BATCH = 256
"""Prompt tokens that are read at a time: with more, a long prompt keeps answers that are being written waiting."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """What is served: `slots` requests are answered at a time, each of at most `context` tokens with its answer."""

    gguf: Path
    slots: int = 4
    context: int = 2048
    threads: int | None = None
    """None: one per processor."""

    @property
    def name(self) -> str:
        """What requests call it: the file's name in small letters, without its quantization."""
        return re.sub(r"[.-](i?q\d\w*|f16|bf16|f32)$", "", self.gguf.stem.lower())


@contextmanager
def serve(model: LocalModel, *, port: int = 0) -> Generator[str]:
    """Serve until the block ends; gives the base URL, ending in /v1. Port 0 takes any free one.

    Raises:
        UsageError: xllamacpp is not installed, the file is no model, or the port is taken.
    """
    _check(model.gguf, port)
    llama = _llama()
    try:
        server = llama.Server(_parameters(llama.CommonParams(), model, port))
    except RuntimeError as e:
        raise UsageError(
            f"llama.cpp cannot load {str(model.gguf)!r} with {model.slots} slots of {model.context} tokens: the file "
            "may be damaged or of a kind that it does not know, or the memory too small"
        ) from e
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server  # which ends it: its threads are joined


def _llama() -> Any:
    """The package, which ships no types."""
    # Read as it is loaded: its threads would otherwise spin while they wait, at several times the work's own price.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp  # noqa: PLC0415 - only who serves a model needs it
    except ImportError as e:
        raise UsageError(f"a local model needs the package xllamacpp ({e}): pip install 'trunchray[local]'") from e
    return xllamacpp


def _check(gguf: Path, port: int) -> None:
    try:
        with gguf.open("rb") as file:
            magic = file.read(4)
    except OSError as e:
        raise UsageError(f"cannot read the model {str(gguf)!r}: {e.strerror}") from e
    if magic != b"GGUF":
        raise UsageError(f"{str(gguf)!r} is no model in the GGUF format (it begins with {magic!r})")
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except OSError as e:
        raise UsageError(f"cannot listen on {HOST}:{port}: {e.strerror}; choose another --port, or 0") from e


def _parameters(params: Any, model: LocalModel, port: int) -> Any:
    params.model.path = str(model.gguf)
    params.model_alias = {model.name}
    params.hostnames, params.port = [HOST], port
    params.n_parallel, params.n_ctx = model.slots, model.slots * model.context
    params.cpuparams.n_threads = model.threads or os.cpu_count() or 1
    params.n_batch = _BATCH
    params.cache_ram_mib, params.cache_idle_slots = 0, False  # no copies of what was read, beside the slots themselves
    params.ui, params.cors_origins = False, ""  # for programs: no page of a browser may ask
    params.verbosity = 0
    return params
