"""Jobs on a Ray cluster, through the HTTP address of its head's dashboard. The only module that knows Ray's Jobs API.

- Ray lets environment variables override the address that it is given; here, the address given counts.
- Its client waits for ever where nobody answers, so we knock first.
- It looks for a token only with RAY_AUTH_MODE=token, which it reads as it is imported.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import socket
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AwareDatetime

from trunchray.adapters.models.providers import address_shown
from trunchray.adapters.models.proxy import proxy_for
from trunchray.core.frozen import Frozen
from trunchray.core.names import nearest
from trunchray.errors import Interrupted, UsageError

T = TypeVar("T")

RUN = "trunchray_run"
"""The entry of a job's metadata that holds the URI of the run it drives."""
ENDS_WITHIN = 20
"""Seconds that a driver gets to end in order: it stores what is finished within ten."""
CONNECT_SECONDS = 5.0
"""That a dashboard has to accept a connection."""

_ADDRESS, _MODE = "RAY_API_SERVER_ADDRESS", "RAY_AUTH_MODE"
_NUMBER = re.compile(r"-(\d+)\Z")
HOW_TO_LOG_IN = (
    "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to the cluster's token (on its head it is in "
    "~/.ray/auth_token, and `ray get-auth-token` prints it)"
)
"""What to do about a cluster that asks who we are."""


def how_to_log_in(address: str, environ: Mapping[str, str], home: Path) -> str:
    """What to say of a cluster at <host>:<port> that has refused a driver: Ray sends it a token only when told to."""
    at_hand = _token_at_hand(environ, home)
    if environ.get(_MODE, "").lower() == "token":
        which = f"the token in {at_hand}" if at_hand else "a driver without a token"
        return f"the cluster at {address} does not accept {which}; {HOW_TO_LOG_IN}"
    if not at_hand:
        return f"the cluster at {address} wants a token; {HOW_TO_LOG_IN}"
    return (
        f"the cluster at {address} wants a token, and Ray sends the one in {at_hand} only if RAY_AUTH_MODE is token: "
        "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN, too, if the cluster has another one (`ray get-auth-token` on "
        "its head prints it)"
    )


def _token_at_hand(environ: Mapping[str, str], home: Path) -> str | None:
    """Where Ray finds a token, the first place that counts; None when there is none."""
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        if environ.get(name):
            return name
    return "~/.ray/auth_token" if (home / ".ray" / "auth_token").exists() else None


class RayJob(Frozen):
    """A job of ours on a cluster."""

    id: str
    run: str
    """The URI of the run that it drives."""
    command: str
    status: Literal["pending", "running", "stopped", "succeeded", "failed"]
    message: str
    began: AwareDatetime | None
    ended: AwareDatetime | None
    exit_code: int | None
    """Of its command; None while it runs, and when it was stopped or lost."""

    @property
    def alive(self) -> bool:
        return self.status in {"pending", "running"}


class RayJobs:
    """The jobs of one cluster. All methods block but `follow`; all raise `Interrupted` when the cluster is gone."""

    def __init__(self, address: str) -> None:
        """`address`: the URL of the dashboard of the cluster's head, such as http://head:8265.

        Raises:
            UsageError: it is none, nobody answers there, or a token is wanted or not accepted.
        """
        self.address = address_shown(address.rstrip("/"))
        """Without a password, for messages."""
        _knock(address, self.address)
        with _first_answer(self.address):
            self._client = _connect(address)

    def all(self) -> list[RayJob]:
        """Those that `submit` has begun here, the oldest first."""
        return _ours(self._ask(self._client.list_jobs))

    def find(self, job_id: str) -> RayJob:
        """The job of that id.

        Raises:
            UsageError: there is none.
        """
        known = {job.id: job for job in self.all()}
        if job_id not in known:
            hint = nearest(job_id, known) or f"; `trunchray jobs --address {self.address}` lists them"
            raise UsageError(f"no job {job_id!r} at {self.address}{hint}")
        return known[job_id]

    def driving(self, run: str) -> RayJob | None:
        """The job that is at work on a run, by its URI; None when there is none."""
        return next((job for job in self.all() if job.run == run and job.alive), None)

    def submit(self, run: str, command: Sequence[str]) -> tuple[RayJob, bool]:
        """Have a command run that drives `run`, the URI of a run, unless one does; and whether that one is new.

        Of two that are submitted at the same moment, one is refused by the cluster, because both want the same name.

        Raises:
            UsageError: another command that drives this run is alive.
        """
        listed = self._ask(self._client.list_jobs)
        for job in _ours(listed):
            if job.run == run and job.alive:
                return self._already(job, command), False
        name = _next_name(run.rpartition("/")[2], [details.submission_id or "" for details in listed])
        try:
            self._client.submit_job(
                entrypoint=shlex.join(command),
                submission_id=name,
                # Of the job, because a cluster that is there already has been started with what it has.
                runtime_env={"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(ENDS_WITHIN)}},
                metadata={RUN: run},
            )
        except RuntimeError as e:
            if "already exists" not in str(e):
                raise self._refused(e) from e
            return self._already(self.find(name), command), False
        except OSError as e:
            raise self._lost(e) from e
        return self.find(name), True

    def _already(self, job: RayJob, command: Sequence[str]) -> RayJob:
        if job.command == shlex.join(command):
            return job
        raise UsageError(
            f"job {job.id!r} already drives this run, with other settings; wait for its end, or end it with "
            f"`trunchray stop {job.id} --address {self.address}`, and submit again"
        )

    def log(self, job_id: str) -> str:
        """What a job has said so far."""
        return self._ask(lambda: self._client.get_job_logs(job_id))

    async def follow(self, job_id: str) -> AsyncIterator[str]:
        """What a job has said and says until its end, in pieces of whole lines."""
        try:
            async for text in self._client.tail_job_logs(job_id):
                yield text
        except Exception as e:  # of aiohttp, or a RuntimeError of Ray's: the connection was lost
            raise self._lost(e) from e

    def stop(self, job_id: str) -> None:
        """Ask a job to end; it gets `ENDS_WITHIN` seconds for it."""
        self._ask(lambda: self._client.stop_job(job_id))

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except RuntimeError as e:
            raise self._refused(e) from e
        except OSError as e:
            raise self._lost(e) from e

    def _refused(self, error: RuntimeError) -> Interrupted:
        """With the last of the head's own words, which come with its traceback."""
        return Interrupted(f"the cluster at {self.address} did not do it: {str(error).strip().splitlines()[-1]}")

    def _lost(self, error: Exception) -> Interrupted:
        return Interrupted(
            f"the cluster at {self.address} does not answer any more ({type(error).__name__}); what is finished is "
            "stored, and `trunchray status RUN` reads it without the cluster"
        )


def _knock(address: str, shown: str) -> None:
    url = urlsplit(address)
    try:
        port = url.port
    except ValueError:
        port = 0
    if url.scheme not in {"http", "https"} or not url.hostname or port == 0:
        raise UsageError(f"{shown!r} is not the address of a cluster's dashboard; give a URL such as http://HEAD:8265")
    if proxy_for(address):
        return
    try:
        where = (url.hostname, port or (443 if url.scheme == "https" else 80))
        socket.create_connection(where, timeout=CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as e:  # a host with an empty or over-long label cannot even be looked up
        raise UsageError(f"nobody answers at {shown} ({_reason(e)}); is the cluster up, and the address right?") from e


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT_SECONDS:.0f} s"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


@contextmanager
def _first_answer(shown: str) -> Generator[None]:
    try:
        yield
    except ImportError as e:
        raise UsageError(f"jobs on a cluster need `pip install 'trunchray[cluster]'` ({e})") from e
    except Exception as e:
        text = str(e)
        if "ray[default]" in text:
            raise UsageError("jobs on a cluster need `pip install 'trunchray[cluster]'`") from e
        if type(e).__name__ == "AuthenticationError":
            said = "wants a token" if "required" in text.partition("\n")[0] else "does not accept the token at hand"
            raise UsageError(f"the cluster at {shown} {said}; {HOW_TO_LOG_IN}") from e
        raise UsageError(f"{shown} does not answer like the dashboard of a Ray cluster ({type(e).__name__})") from e


def _connect(address: str) -> Any:
    """Ray's client, which has asked the head for its version."""
    unsaid = _MODE not in os.environ and _token_at_hand(os.environ, Path.home())
    wanted = {_ADDRESS: address} | ({_MODE: "token"} if unsaid else {})
    with _environment(wanted):
        from ray.job_submission import JobSubmissionClient  # noqa: PLC0415 - Ray takes a second to import

        for talker in ("ray.dashboard.modules.job.sdk", "ray.dashboard.modules.dashboard_sdk"):
            logging.getLogger(talker).setLevel(logging.ERROR)
        return JobSubmissionClient(address)


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Generator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _next_name(run_id: str, taken: Sequence[str]) -> str:
    """<run id>-<n>: the next job of a run."""
    numbers = [int(found[1]) for name in taken if (found := _NUMBER.search(name)) and name[: found.start()] == run_id]
    return f"{run_id}-{max(numbers, default=0) + 1}"


def _ours(listed: Iterable[Any]) -> list[RayJob]:
    jobs = [_job(details) for details in listed if details.submission_id and (details.metadata or {}).get(RUN)]
    return sorted(jobs, key=lambda job: (job.began or datetime.max.replace(tzinfo=UTC), job.id))


def _job(details: Any) -> RayJob:
    return RayJob(
        id=details.submission_id,
        run=details.metadata[RUN],
        command=details.entrypoint,
        status=details.status.lower(),
        message=details.message or "",
        began=_time(details.start_time),
        ended=_time(details.end_time),
        exit_code=details.driver_exit_code,
    )


def _time(milliseconds: int | None) -> datetime | None:
    return None if not milliseconds else datetime.fromtimestamp(milliseconds / 1000, UTC)
