"""Options that several commands share."""

from __future__ import annotations

import os
import tempfile
from typing import Annotated, Literal

import typer

from trunchray.errors import UsageError


def located(run: str) -> str:
    """Where the run is that was given: of a skill eval, whose folder that was, the engine's.

    Raises:
        UsageError, StoreError: the place cannot be asked.
    """
    from trunchray.frontends.skill.run_folder import engine_run

    return engine_run(run)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout; everything else goes to stderr.")]
RunUri = Annotated[str, typer.Argument(metavar="RUN", help="A run's folder or URI.")]
Target = Annotated[
    str, typer.Argument(metavar="CONFIG|RELEASE|PATH", help="A run config (YAML), a release or a repository.")
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="ID", help="With a config: only these of its models. Else: the models to run."),
]
OfModels = Annotated[
    list[str] | None, typer.Option("--model", metavar="NAME", help="Only this model of the run; can be repeated.")
]
Out = Annotated[str | None, typer.Option(metavar="URI", help="Where runs are kept; runs/ by default.")]
RunName = Annotated[str | None, typer.Option("--run-id", metavar="NAME", help="The run's name.")]
Attempts = Annotated[int | None, typer.Option(metavar="N", min=1, max=1000, help="How often each case is tried.")]
Sample = Annotated[int | None, typer.Option(metavar="N", min=1, help="Run only so many cases, drawn by the seed.")]
Pool = Annotated[
    Literal["auto", "local", "ray"] | None,
    typer.Option(help="Where trials run; auto takes Ray for more than 1,000 trials."),
]
Address = Annotated[str | None, typer.Option(metavar="ADDR", help="A Ray cluster to use.")]
Require = Annotated[
    Literal["none", "landlock"],
    typer.Option("--require", help="landlock: run no code of authors without it, as `sandbox.require` of a config."),
]
Takeover = Annotated[
    bool, typer.Option("--takeover", help="Drive the run even if another process does; that one stops.")
]
BudgetUsd = Annotated[
    float | None,
    typer.Option("--budget-usd", metavar="USD", help="The most the run may cost, all its commands together."),
]
BudgetTokens = Annotated[
    int | None, typer.Option("--budget-tokens", metavar="N", help="The most tokens it may read and write, likewise.")
]
AllowUnpriced = Annotated[
    bool, typer.Option("--allow-unpriced", help="Run models without a price under a budget in dollars.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Spend more than confirm_above without asking.")]
BenchmarkPath = Annotated[
    str,
    typer.Argument(
        metavar="PATH|GIT", help="The benchmark's folder, its config file, or git+https://…@<commit>#<path>."
    ),
]
ConfigFile = Annotated[str | None, typer.Option("--config", metavar="REL", help="A config file inside PATH.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes any free port.")]


def writable(uri: str, option: str = "--out") -> str:
    """The same location, once it is clear that a folder can be made there, or that another store than a disk answers.

    `option` says where it was given.

    Raises:
        UsageError: a file is in the way, the folder may not be written, its path cannot be stored, or
            there is no such kind of store.
        StoreUnusable: there is no such bucket, no credentials, nobody there.
    """
    from trunchray.adapters.local_path import local_path, storable
    from trunchray.adapters.location import is_uri
    from trunchray.adapters.store import Store

    store = Store(uri)
    if is_uri(uri):
        store.reach()
        return uri
    folder = storable(local_path(uri.removeprefix("file://")).absolute())
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise UsageError(f"{option} {uri!r}: {str(there)!r} is not a folder; choose another place")
    try:
        tempfile.TemporaryDirectory(prefix=".trunchray-", dir=there).cleanup()
    except OSError as e:
        raise UsageError(
            f"{option} {uri!r}: {str(there)!r} cannot be written: {e.strerror}; choose another place"
        ) from e
    return uri
