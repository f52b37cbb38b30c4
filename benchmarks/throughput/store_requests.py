"""What a run asks of a real S3 server: of 1,000 trials, of each run however large, and as long as it lasts.

Counted in a proxy on the way to SeaweedFS, which is in the extra `test`, for a run and for its command once more.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from measure import result, table
from subject import carry_out, echo, make_release, question

from support.s3 import BUCKET, KEY, SECRET, S3Server, environment
from support.s3_faults import Asked, FaultyStore
from trunchray.engine.local import LocalPool

MODELS = 20
SHARD = 128
WITH_TIME = ("GET claims", "PUT lease.json", "PUT progress.json")
"""What is asked every few seconds."""


def ask(store: FaultyStore, trials: int) -> dict[str, Counter[str]]:
    """The requests of a run of so many trials, and of its command once more, by kind."""
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    release = make_release(uri, trials // MODELS)
    spec = question(release, [echo(f"m{n}", seed=n) for n in range(MODELS)])
    found: dict[str, Counter[str]] = {}
    run_uri = f"{uri}/{spec.run_id}"
    for command in ("run", "again"):
        with store.counting() as log:
            assert carry_out(spec, release, run_uri, partial(LocalPool, run_uri, release.uri)).complete
        found[command] = Counter(_kind(asked) for asked in log)
    return found


def _kind(asked: Asked) -> str:
    """What is done, and to which part of a run's folder; of the release it is not said."""
    _, folder, place, *_ = [*asked.key.split("/"), "", ""]
    return f"{asked.what} {place}" if folder == "throughput" else f"{asked.what} release"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, nargs=2, default=(2, 10), help="of each model, in two runs")
    options = parser.parse_args()
    sizes = [MODELS * SHARD * shards for shards in options.shards]
    with S3Server() as server, FaultyStore(KEY, SECRET, upstream=server.url) as store:
        os.environ |= environment(store.url)
        small, large = (ask(store, trials) for trials in sizes)
    for command in small:
        show(command, sizes, small[command], large[command])


def show(command: str, sizes: list[int], small: Counter[str], large: Counter[str]) -> None:
    """What grows is told apart from what does not by two sizes."""
    rows: list[list[object]] = []
    for kind in sorted(large | small, key=lambda kind: -large[kind]):
        grown = (large[kind] - small[kind]) / (sizes[1] - sizes[0])
        told = [None, None] if kind in WITH_TIME else [grown * 1000, round(small[kind] - grown * sizes[0])]
        rows.append([kind, small[kind], large[kind], *told])
    each = sum(float(str(row[3])) for row in rows if row[3] is not None)
    fixed = sum(int(str(row[4])) for row in rows if row[4] is not None)
    rows.append(["all but what comes with time", None, None, each, fixed])
    head = ["", *(f"{trials:,} trials" for trials in sizes), "of 1,000 trials", "of each run"]
    table(f"requests: {'a run' if command == 'run' else 'the same command again'}, {MODELS} models", head, rows)
    if command == "run":
        print()
        measured = f"{each:.1f}, and {fixed} a run"
        result("store requests of 1,000 trials", "≤ 30", measured, met=each <= 30)


if __name__ == "__main__":
    main()
