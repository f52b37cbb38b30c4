"""Cases that an author's function makes of source files: `cases: { transformer, sources }`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

from trunchray.adapters.sandbox.transformer import SourceText, TransformFlaw, transform
from trunchray.core.digest import sha256
from trunchray.core.release import ReleaseTransformer, TransformerSource
from trunchray.errors import Problem
from trunchray.frontends.benchmark.bundles import bundle_all
from trunchray.frontends.benchmark.paths import bad_file, bad_module, bad_syntax
from trunchray.frontends.benchmark.position import Position, shown
from trunchray.frontends.benchmark.shapes import Authored, Shape, bad_id
from trunchray.frontends.benchmark.staging import Stage
from trunchray.frontends.benchmark.text_file import not_utf8

if TYPE_CHECKING:
    from trunchray.adapters.sandbox.esbuild import Bundle

MAX_SOURCES = 16
MAX_SOURCE_BYTES = 50_000_000
MAX_TOTAL_BYTES = 200_000_000
"""Of all sources of a repository together; a file that is used twice counts once."""


class TransformedCases(Authored):
    """`cases` as authored; `sources` are by name."""

    transformer: str
    sources: dict[str, str]


TRANSFORMED_CASES = Shape[TransformedCases](TransformedCases)


@dataclass(frozen=True)
class MadeCases:
    """What a transformer made: the cases one a line, as JavaScript wrote them, and where they came from."""

    lines: bytes
    made_by: ReleaseTransformer

    def rows(self) -> list[tuple[Position, JsonValue]]:
        """The cases with their places: the transformer, and the place in the returned array, from 1."""
        path, lines = self.made_by.path, self.lines.split(b"\n")[:-1]
        return [(Position(path, row, of_case=True), json.loads(line)) for row, line in enumerate(lines, 1)]


@dataclass(frozen=True)
class _Source:
    """A source that was found, by its path from the stage's directory. `real` is the file without links."""

    path: str
    real: str
    bytes: int


class Transformers:
    """Runs the transformers of one repository; the same one with the same sources runs once."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._bundles: dict[str, Bundle | None] = {}
        self._made: dict[tuple[str, tuple[tuple[str, str], ...]], MadeCases | None] = {}
        self._sizes: dict[str, int] = {}

    async def cases(
        self, place: Position, inside: Callable[[str], str], authored: TransformedCases, found: list[Problem]
    ) -> MadeCases | None:
        """The cases; None when there are none, and then `found` says why.

        `place` is where `authored` stands; `inside` makes one of its paths relative to the stage's directory, and
        normalises it.
        """
        transformer = inside(authored.transformer)
        sources = {name: inside(path) for name, path in authored.sources.items()}
        before = len(found)
        if complaint := bad_syntax(authored.transformer) or bad_module(self._stage, transformer):
            found.append(place.at("transformer").problem(f"{shown(authored.transformer)} {complaint}"))
        checked = self._check(authored.sources, sources, place.at("sources"), found)
        if len(found) > before:
            return None
        key = (transformer, tuple((name, source.path) for name, source in checked.items()))
        if key not in self._made:
            self._made[key] = await self._make(transformer, checked, found)
        return self._made[key]

    def _check(
        self, authored: Mapping[str, str], paths: Mapping[str, str], place: Position, found: list[Problem]
    ) -> dict[str, _Source]:
        """The sources that are files of the repository, under their limits."""
        if not 1 <= len(authored) <= MAX_SOURCES:
            found.append(place.problem(f"must name 1 to {MAX_SOURCES} sources, not {len(authored)}"))
            return {}
        checked: dict[str, _Source] = {}
        for name, path in paths.items():
            if complaint := bad_id(name):
                found.append(place.problem(complaint))
            elif complaint := bad_syntax(authored[name]) or self._bad_source(path):
                found.append(place.at(name).problem(f"{shown(authored[name])} {complaint}"))
            else:
                file = self._stage.directory / path
                checked[name] = _Source(path, str(file.resolve()), file.stat().st_size)
        self._add_up(checked, place, found)
        return checked

    def _bad_source(self, path: str) -> str | None:
        if complaint := bad_file(self._stage, path):
            return complaint
        size = (self._stage.directory / path).stat().st_size
        if size <= MAX_SOURCE_BYTES:
            return None
        return f"has {size / 1e6:.1f} MB; a source may have at most {MAX_SOURCE_BYTES // 10**6} MB"

    def _add_up(self, sources: Mapping[str, _Source], place: Position, found: list[Problem]) -> None:
        within = sum(self._sizes.values()) <= MAX_TOTAL_BYTES
        self._sizes |= {source.real: source.bytes for source in sources.values()}
        total = sum(self._sizes.values())
        if within and total > MAX_TOTAL_BYTES:
            limit = f"at most {MAX_TOTAL_BYTES // 10**6} MB are allowed"
            found.append(place.problem(f"bring all sources of the repository to {total / 1e6:.1f} MB; {limit}"))

    async def _make(self, transformer: str, sources: Mapping[str, _Source], found: list[Problem]) -> MadeCases | None:
        if transformer not in self._bundles:
            self._bundles[transformer] = bundle_all(self._stage, [transformer], found).get(transformer)
        bundle = self._bundles[transformer]
        texts = self._read(sources, found)
        if bundle is None or texts is None:
            return None
        made = await transform(bundle.code, texts)
        found += [_problem(transformer, flaw) for flaw in made.flaws]
        if made.flaws:
            return None
        if not made.lines:
            found.append(
                Position(transformer, 0, "transform").problem("returned no case; a release holds at least one")
            )
            return None
        made_by = ReleaseTransformer(
            name=made.name,
            path=transformer,
            sha256=sha256((self._stage.directory / transformer).read_bytes()),
            sources={
                text.name: TransformerSource(path=text.path, sha256=text.sha256, bytes=len(text.content))
                for text in texts
            },
            case_count=made.lines.count(b"\n"),
        )
        return MadeCases(made.lines, made_by)

    def _read(self, sources: Mapping[str, _Source], found: list[Problem]) -> list[SourceText] | None:
        """The contents of the sources; None when one of them is no text."""
        texts: list[SourceText] = []
        for name, source in sources.items():
            content = (self._stage.directory / source.path).read_bytes()
            if (line := not_utf8(content)) is not None:
                found.append(Position(source.path, line).problem("is not valid UTF-8; a transformer is given text"))
                continue
            path = os.path.relpath(self._stage.directory / source.path, self._stage.root)
            texts.append(SourceText(name, path, content, sha256(content)))
        return texts if len(texts) == len(sources) else None


def _problem(transformer: str, flaw: TransformFlaw) -> Problem:
    row = 0 if flaw.index is None else flaw.index + 1
    bare = not row and not flaw.path and flaw.message.startswith("must ")
    message = f"the default export {flaw.message}" if bare else flaw.message
    return Problem(transformer, row, flaw.path, message, of_case=row > 0)
