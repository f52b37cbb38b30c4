"""The counted rows of one shard of a stored run."""

from __future__ import annotations

from trunchray.adapters import parts
from trunchray.adapters.runs import RunFolder
from trunchray.core.plan import Shard
from trunchray.core.receipt import Receipt
from trunchray.errors import StoreError


def shard_rows(shard: Shard, receipt: Receipt, folder: RunFolder) -> tuple[parts.Rows, list[str]]:
    """The shard's counted rows in plan order, and the paths of parts that should hold some and cannot be read."""
    contents, bad = folder.read_parts(receipt)
    tables: list[parts.Rows] = []
    for path, content in contents:
        try:
            tables.append(parts.decode(content))
        except StoreError:
            bad.append(path)
    return parts.choose(tables, shard.trial_keys()), bad
