"""`status --watch`: the state of a run, shown anew until it is over."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live

from trunchray.cli.output import Output, heard
from trunchray.cli.states import StatusView, status_line
from trunchray.engine.blocks import blocks
from trunchray.engine.status import SECOND_LOOK, Status, StatusReader
from trunchray.errors import StoreError

if TYPE_CHECKING:
    from pydantic import JsonValue

EVERY = 3.0
"""Seconds between two looks; drivers store a snapshot every five."""
LINE_EVERY = 10.0
"""Seconds between two lines where there is no terminal and only numbers change."""
WAITS = SECOND_LOOK
"""Seconds that a run has to wait for a driver before it is given up; between two drives of one command it does, too."""


def described(status: Status) -> dict[str, JsonValue]:
    """A state for programs."""
    value: dict[str, JsonValue] = status.model_dump(mode="json")
    value |= {
        "errors": status.errors,
        "retryable": status.retryable,
        "retry_usd": status.retry_usd,
        "blocks": [*blocks(status)],
    }
    return value


class Watch:
    """Shows a run until it is complete or nobody drives it. `clock` counts seconds from anywhere."""

    def __init__(
        self,
        output: Output,
        reader: StatusReader,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._output, self._reader, self._sleep, self._clock = output, reader, sleep, clock
        self._waiting_since: float | None = None
        self._said: object = None
        self._line_due = float("-inf")
        self._live = Live(console=output.stdout, auto_refresh=False)
        self._moving = output.stdout.is_terminal and not output.as_json

    def __call__(self) -> Status:
        """The state in which it ended.

        Raises:
            UsageError: there is no run.
            StoreError: the store cannot be read from the start. Later it is asked until it answers again.
        """
        if self._moving:
            self._live.start()
        try:
            status = self._reader.read()
            while not self._over(status):
                self._show(status)
                self._sleep(EVERY)
                status = self._look() or status
            self._show(status, last=True)
            return status
        finally:
            self._live.stop()

    def _look(self) -> Status | None:
        try:
            return self._reader.read()
        except StoreError as e:
            self._output.note(f"{e}; looking again")
            return None

    def _over(self, status: Status) -> bool:
        if status.state != "waiting":
            self._waiting_since = None
            return status.state == "complete"
        if self._waiting_since is None:
            self._waiting_since = self._clock()
        return self._clock() - self._waiting_since >= WAITS

    def _show(self, status: Status, *, last: bool = False) -> None:
        if self._moving:
            self._live.update(Group(*StatusView(self._output.stdout, status).parts()), refresh=True)
        elif self._output.as_json:
            self._print_json(status)
        else:
            self._print_line(status, last=last)

    def _print_json(self, status: Status) -> None:
        value = described(status)
        lasting = {name: field for name, field in value.items() if name not in {"heartbeat", "heartbeat_age", "age"}}
        if self._changed(lasting | {"blocks": len(blocks(status))}):
            with heard():
                sys.stdout.write(json.dumps(value) + "\n")

    def _print_line(self, status: Status, *, last: bool) -> None:
        kinds = (status.state, status.driver, len(blocks(status)))
        if self._changed(kinds) or last or self._clock() >= self._line_due:
            self._line_due = self._clock() + LINE_EVERY
            now = datetime.now().astimezone()
            with heard():
                self._output.stdout.print(f"{now:%H:%M:%S} {status_line(status)}")

    def _changed(self, value: Any) -> bool:
        before, self._said = self._said, value
        return before != value
