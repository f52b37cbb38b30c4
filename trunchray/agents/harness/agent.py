"""A coding tool as the agent of trials: each runs its command once, in a clean room of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from trunchray.adapters.attempt_folder import STDERR, TRANSCRIPT, WORKSPACE, AttemptFolder, AttemptWriter
from trunchray.adapters.calling import in_thread
from trunchray.adapters.clean_room import CleanRoom, RoomError, StagingError, clean_room
from trunchray.adapters.harness_process import Caps, Ending, Stream
from trunchray.adapters.host import Host
from trunchray.adapters.survey import Survey, TreeCaps
from trunchray.agents.harness.skill_text import SyntheticSkill
from trunchray.core.agent import HarnessAgent
from trunchray.core.attempt import AttemptTiming, Status
from trunchray.core.canary import Canary
from trunchray.core.case import CaseInput
from trunchray.core.excerpt import excerpt
from trunchray.core.harness import SKILL_DIR
from trunchray.core.masking import Mask
from trunchray.core.staging import StagedCase, Staging
from trunchray.core.timestamp import timestamp
from trunchray.core.transcript import Transcript, TranscriptReader
from trunchray.core.trial import Step, Trace, Usage
from trunchray.core.well_formed import well_formed
from trunchray.errors import HarnessError, StoreError, UsageError

_SILENT = "it printed nothing, which does not tell whether the skill was loaded; choose an output format that does"
_NAMES_KEPT = 200
"""Paths that `timing.json` names of each kind."""
_STATUS: Mapping[str, Status] = {
    "timeout": "timeout", "missing": "harness-missing", "refused": "error", "lost": "exception"
}  # fmt: skip


_PRINTED: Mapping[Stream, str] = {"stdout": TRANSCRIPT, "stderr": STDERR}


def _utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Surroundings(Host):
    """What an attempt takes from the machine it runs on. `now` is UTC."""

    now: Callable[[], datetime] = _utc
    digits: Callable[[], str] = field(default=lambda: secrets.token_hex(4))
    """Eight hex digits nobody has seen, each time others."""
    printed: Caps = field(default=Caps())
    workspace: TreeCaps = field(default=TreeCaps())


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of an attempt before it is kept."""

    status: Status
    transcript: Transcript
    seconds: float = 0.0
    return_code: int | None = -1
    reason: str | None = None
    truncated: tuple[str, ...] = ()
    loaded: bool | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is not kept of a workspace, as far as it is named."""

    truncated: tuple[str, ...]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, kept: Survey, lost: list[str], mask: Mask) -> _Kept:
        large = [f"{WORKSPACE}/{path}" for path in kept.too_large]
        return cls(_named(large, mask), _named([*lost, *kept.left_out], mask))


class HarnessTool:
    """Runs a harness once for each trial, and keeps what came of it in the attempt's folder.

    A folder that is complete is never touched: who asks for that attempt again gets what it says. `inputs` gives the
    content of the files that the run keeps, by their SHA-256.
    """

    def __init__(
        self,
        spec: HarnessAgent,
        staging: Staging,
        inputs: Callable[[str], bytes],
        surroundings: Surroundings | None = None,
    ) -> None:
        self._spec, self._staging, self._inputs = spec, staging, inputs
        self._here = surroundings or Surroundings()

    async def run(self, case: CaseInput, *, case_id: str, attempt: int) -> Trace:
        """One attempt.

        Raises:
            HarnessError: its status, which is the error's type, is not ok, or it is asked whether the skill was loaded
                and printed nothing, which has the type silent; what there is of a trace comes with it. One that can be
                retried means that nothing was recorded, because the machine failed (it is full, has no descriptors
                left, no place for rooms), or the place where the attempt is kept.
        """
        staged = self._staging.cases[case_id]
        path = self._staging.folder(self._spec.name, case_id, attempt)
        try:
            folder = AttemptFolder(f"{self._staging.root}/{path}")
            timing = await in_thread(folder.timing)
            if timing is None:
                timing, transcript = await self._attempt(folder, staged, case.prompt)
            else:
                transcript = await in_thread(partial(self._read_again, folder))
        except (StoreError, UsageError, OSError) as e:
            raise HarnessError(f"{path}: {e}", type="exception", retryable=True) from e
        trace = _trace(timing, transcript, folder.uri, path)
        silent = timing.status == "ok" and self._spec.trigger is not None and timing.loaded is None
        if silent or timing.status != "ok":
            type_ = "silent" if silent else timing.status
            error = HarnessError(f"{path}: {timing.reason or timing.status}", type=type_)
            error.trace = trace
            raise error
        return trace

    async def close(self) -> None:
        """There is nothing to give back."""

    async def _attempt(
        self, folder: AttemptFolder, staged: StagedCase, prompt: str
    ) -> tuple[AttemptTiming, Transcript]:
        writer: AttemptWriter = await in_thread(partial(folder.begin, staged.case, prompt))
        async with clean_room(self._here, self._spec.harness) as room:
            outcome = await self._outcome(room, staged, prompt)
            if other := await in_thread(folder.timing):  # we were taken for dead, and somebody else was quicker
                return other, await in_thread(partial(self._read_again, folder))
            workspace, lost = await in_thread(partial(room.masked_workspace, self._here.workspace, staged.fixtures))
            kept = await in_thread(partial(self._keep, room, writer, workspace, lost))
        if workspace is None and outcome.status == "ok":
            outcome = replace(outcome, status="exception", reason=lost[0])
        outcome = replace(outcome, reason=outcome.reason and room.mask.text(well_formed(outcome.reason)))
        timing = self._timing(staged, outcome, kept)
        if await in_thread(partial(writer.finish, timing)):
            return timing, outcome.transcript
        return await in_thread(folder.timing), await in_thread(partial(self._read_again, folder))

    def _keep(self, room: CleanRoom, writer: AttemptWriter, workspace: Path | None, lost: list[str]) -> _Kept:
        with room.printed() as (out, err):
            kept = writer.keep(out, err, workspace, self._here.workspace)
        return _Kept.of(kept, lost, room.mask)

    async def _outcome(self, room: CleanRoom, staged: StagedCase, prompt: str) -> _Outcome:
        trigger, digits = self._spec.trigger, self._here.digits
        skill = SyntheticSkill.of(trigger, digits(), digits()) if trigger else None
        reader = TranscriptReader(Canary(skill.token) if skill else None, room.mask)
        try:
            await in_thread(partial(self._stage, room, staged, skill))
            if self._spec.harness is None:
                return _Outcome("skipped", reader.end(), return_code=None, reason="no harness is recorded")
            limit = staged.timeout or self._spec.timeout
            ending = await room.run(self._spec.harness, prompt, limit=limit, watch=reader.feed, caps=self._here.printed)
        except RoomError as e:
            return _Outcome("exception", reader.end(), reason=str(e))
        except StagingError as e:
            return _Outcome("error", reader.end(), reason=str(e))
        except (StoreError, UsageError, OSError):  # of the machine or the store, and says nothing of the case
            raise
        except Exception as e:
            return _Outcome("exception", reader.end(), reason=f"{type(e).__name__}: {e}")
        return _ended(ending, reader.end())

    def _read_again(self, folder: AttemptFolder) -> Transcript:
        reader = TranscriptReader(mask=self._here.mask(self._spec.harness))
        for piece in folder.printed():
            reader.feed(piece)
        return reader.end()

    def _stage(self, room: CleanRoom, staged: StagedCase, skill: SyntheticSkill | None) -> None:
        """Fill the workspace."""
        for fixture in staged.fixtures:
            room.put(fixture.path, self._inputs(fixture.sha256))
        folder = self._spec.harness.skill_dir if self._spec.harness else SKILL_DIR
        if skill:
            room.put(f"{folder}/{skill.name}/SKILL.md", skill.text.encode(errors="replace"))
        elif self._spec.skill:
            room.add_skill(folder, self._spec.skill.name, self._inputs(self._spec.skill.tree))

    def _timing(self, staged: StagedCase, outcome: _Outcome, kept: _Kept) -> AttemptTiming:
        found = outcome.transcript
        read, written = found.tokens.input or 0, found.tokens.output or 0
        return AttemptTiming(
            case_id=staged.name,
            config=self._spec.name,
            status=outcome.status,
            elapsed_s=round(outcome.seconds, 3),
            return_code=outcome.return_code,
            input_tokens=read,
            output_tokens=written,
            total_tokens=read + written,
            cache_read_tokens=found.tokens.cache_read or 0,
            cache_write_tokens=found.tokens.cache_write or 0,
            tokens_reported=found.tokens_reported,
            total_steps=found.steps,
            total_tool_calls=sum(found.counts.values()),
            tool_calls=dict(found.counts),
            captured_at=timestamp(self._here.now()),
            reason=outcome.reason,
            truncated=(*outcome.truncated, *kept.truncated),
            left_out=kept.left_out,
            loaded=outcome.loaded,
        )


def _ended(ending: Ending, found: Transcript) -> _Outcome:
    """What it means that a command ended like this."""
    status = _STATUS.get(ending.status) or ("ok" if ending.code == 0 else "error")
    ran = ending.status in ("ended", "timeout")
    silent = status == "ok" and found.loaded is not None and not found.message
    return _Outcome(
        status,
        found,
        seconds=ending.seconds if ran else 0.0,
        return_code=ending.code,
        reason=_SILENT if silent else _exit(ending) if status == "error" and ran else ending.reason,
        truncated=tuple(_PRINTED[name] for name in ending.truncated),
        loaded=found.loaded if ran and not silent else None,
    )


def _exit(ending: Ending) -> str:
    """How it ended, and the last that it said about that."""
    how = f"ended by signal {-ending.code}" if ending.code < 0 else f"exit code {ending.code}"
    last = next((line.strip() for line in reversed(ending.said.split("\n")) if line.strip()), "")
    return f"{how}: {excerpt(last, 300)}" if last else how


def _trace(timing: AttemptTiming, found: Transcript, uri: str, path: str) -> Trace:
    usage = Usage(
        input_tokens=timing.input_tokens,
        output_tokens=timing.output_tokens,
        cached_input_tokens=timing.cache_read_tokens or None,
    )
    told: dict[str, JsonValue] = {"folder": uri, "path": path, "status": timing.status, "loaded": timing.loaded}
    return Trace(
        output=found.message,
        finish_reason="stop" if timing.status == "ok" else "error",
        tool_calls=found.calls,
        steps=(Step("attempt", timing.config, output=told),),
        usage=usage if timing.tokens_reported else Usage(),
        cost_usd=found.cost_usd,
        model_seconds=timing.elapsed_s,
    )


def _named(paths: list[str], mask: Mask) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    shown = [mask.text(well_formed(path)) for path in paths[:_NAMES_KEPT]]
    return (*shown, f"… and {len(paths) - _NAMES_KEPT} more") if len(paths) > _NAMES_KEPT else tuple(shown)
