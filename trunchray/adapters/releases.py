"""Releases in a store: written once, opened everywhere, every byte checked against its hash.

<folder>/cases.jsonl           one compiled case a line
<folder>/modules/<sha256>.mjs  one self-contained bundle per evaluator and tool module
<folder>/release.json          written last: its presence means that the release is whole
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue, ValidationError

from trunchray.adapters.store import Store
from trunchray.core.case import Case
from trunchray.core.digest import sha256
from trunchray.core.frozen import first_problem
from trunchray.core.names import nearest
from trunchray.core.release import FORMAT, Release, ReleaseCases, release_digest, release_seal
from trunchray.errors import ReleaseError

_MANIFEST, _CASES, _MODULES = "release.json", "cases.jsonl", "modules"
_ids = re.compile(rb'\{"id":"([a-z0-9._-]+)","evalId":"([a-z0-9._-]+)"')


class CaseTable:
    """The cases of a release by id, in release order.

    Holds the file as it is and where its lines start; a case is parsed each time it is asked for.
    """

    def __init__(self, content: bytes) -> None:
        """`content`: the bytes of `cases.jsonl`.

        Raises:
            ReleaseError: a line has no ids, or two lines have the same.
        """
        self._content = content
        self._starts = array("Q")
        self._numbers: dict[str, int] = {}
        self._evals: list[str] = []
        shared: dict[str, str] = {}
        for start in _line_starts(content):
            case_id, eval_id = _read_ids(content, start)
            self._numbers[case_id] = len(self._starts)
            self._evals.append(shared.setdefault(eval_id, eval_id))
            self._starts.append(start)
        if len(self._numbers) != len(self._starts):
            raise ReleaseError("cases.jsonl holds two cases with the same id")

    def __len__(self) -> int:
        return len(self._starts)

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._numbers

    def __iter__(self) -> Iterator[Case]:
        return map(self._parse, range(len(self)))

    def __getitem__(self, case_id: str) -> Case:
        """The case with this id.

        Raises:
            ReleaseError: there is none, or its line is not a compiled case.
        """
        if case_id not in self._numbers:
            raise ReleaseError(f"the release has no case {case_id!r}{nearest(case_id, self._numbers)}")
        return self._parse(self._numbers[case_id])

    @property
    def index(self) -> list[tuple[str, str]]:
        """Pairs of case id and eval id, in release order."""
        return list(zip(self._numbers, self._evals, strict=True))

    def _parse(self, number: int) -> Case:
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self) else len(self._content)
        try:
            return Case.model_validate_json(self._content[start:end])
        except ValidationError as e:
            raise ReleaseError(f"cases.jsonl:{number + 1} is not a compiled case: {first_problem(e)}") from e


@dataclass(frozen=True)
class StoredRelease:
    """An opened release: its manifest is read and checked, everything else is read and checked when asked for."""

    release: Release
    store: Store

    @property
    def uri(self) -> str:
        return self.store.uri

    def cases(self) -> CaseTable:
        """All cases, read anew at each call.

        Raises:
            ReleaseError: `cases.jsonl` is missing or not the one that was compiled.
        """
        content = _checked(self.store, _CASES, self.release.cases.sha256)
        return CaseTable(content)

    def sources(self, cases: CaseTable) -> dict[str, str]:
        """The path of the transformer that made the cases of each eval, where one did."""
        made_by = {transformer.path for transformer in self.release.transformers}
        if not made_by:
            return {}
        first = {eval_id: case_id for case_id, eval_id in reversed(cases.index)}
        paths = {eval_id: cases[case_id].source.path for eval_id, case_id in first.items()}
        return {eval_id: path for eval_id, path in paths.items() if path in made_by}

    def module(self, sha: str) -> bytes:
        """The code of one module, named by its hash.

        Raises:
            ReleaseError: it is missing or not what its name says.
        """
        return _checked(self.store, _module_path(sha), sha)

    @cached_property
    def evaluators(self) -> dict[str, tuple[str, str]]:
        """Each custom evaluator's key, and the (module sha256, export) it stands for."""
        return {entry.key: (entry.module, entry.export) for entry in self.release.evaluators}


def open_release(uri: str) -> StoredRelease:
    """The release stored at `uri`: the folder that holds `release.json`.

    Raises:
        ReleaseError: there is no release, or its manifest is damaged or of another format.
    """
    store = Store(uri)
    try:
        content = store.read(_MANIFEST)
    except FileNotFoundError:
        raise ReleaseError(
            f"no release at {store.uri!r}: it holds no {_MANIFEST}; give the folder that `trunchray compile` printed"
        ) from None
    return StoredRelease(read_manifest(content, f"{store.uri}/{_MANIFEST}"), store)


def read_manifest(content: bytes, place: str) -> Release:
    """The manifest in the bytes of a `release.json`; `place` is what messages call it.

    Raises:
        ReleaseError: it is not a manifest, of another format, or does not match its own digest or seal.
    """
    manifest = _json_object(content, place)
    if manifest.get("format") != FORMAT:
        raise ReleaseError(
            f"{place}: format {manifest.get('format')!r} is unknown to this version, which reads format {FORMAT}; "
            "use the version of trunchray that compiled it, or compile the benchmark again"
        )
    try:
        release = Release.model_validate(manifest)
        digest, seal = release_digest(manifest), release_seal(manifest)
    except ValidationError as e:
        raise ReleaseError(f"{place} is not the manifest of a release: {first_problem(e)}") from e
    except ValueError as e:
        raise ReleaseError(f"{place} is not the manifest of a release: {e}") from e
    if digest != release.digest:
        raise ReleaseError(f"{place} was changed after it was compiled: its digest is {digest}, not {release.digest!r}")
    if seal != release.seal:
        raise ReleaseError(f"{place} was changed after it was compiled: its seal does not match its content")
    return release


def write_release(root: Store, release: Release, cases: bytes, modules: Mapping[str, bytes]) -> Store:
    """Store a release under its own folder name in `root`, and give that folder back.

    Writing what is already there changes nothing. `modules` maps the hash of each module to its code.

    Raises:
        ReleaseError: another release, or a damaged copy of this one, has the name already.
    """
    store = root.child(release.folder)
    if not store.exists(_MANIFEST):
        store.write(_CASES, cases)
        for sha, code in sorted(modules.items()):
            store.write(_module_path(sha), code)
        if store.create(_MANIFEST, release.content()):
            return store
    _same(store, release)
    return store


def copy_release(source: StoredRelease, root: Store) -> StoredRelease:
    """Store a release in `root`, too, under the same folder name; it is the same release there.

    Raises:
        ReleaseError: as `write_release`; or the source is damaged.
    """
    cases = _checked(source.store, _CASES, source.release.cases.sha256)
    modules = {sha: source.module(sha) for sha in source.release.modules}
    return StoredRelease(source.release, write_release(root, source.release, cases, modules))


def verify_release(uri: str) -> list[str]:
    """Everything in a stored release that differs from what was compiled; an empty list when nothing does."""
    store = Store(uri)
    try:
        release = read_manifest(store.read(_MANIFEST), _MANIFEST)
    except FileNotFoundError:
        return [f"{_MANIFEST} is missing: {store.uri!r} holds no whole release"]
    except ReleaseError as e:
        return [str(e), *_bad_modules(store, store.names(_MODULES))]
    names = {f"{sha}.mjs" for sha in release.modules}
    found = {name for name in store.names(_MODULES) if not name.startswith(".")}  # what an interrupted write left
    extra = [f"{_MODULES}/{name} does not belong to the release" for name in sorted(found - names)]
    return [*_bad_cases(store, release.cases), *_bad_modules(store, sorted(names)), *extra]


def _same(store: Store, release: Release) -> None:
    """Refuse unless what is stored is this release, whole."""
    differences = verify_release(store.uri)
    if differences:
        raise ReleaseError(
            f"{store.uri!r} holds a damaged copy of this release: {'; '.join(differences)}. "
            "Remove the folder and compile again"
        )
    stored = open_release(store.uri).release.digest
    if stored != release.digest:
        raise ReleaseError(
            f"{store.uri!r} holds another release (digest {stored}, not {release.digest}); choose another --out"
        )


def _bad_cases(store: Store, expected: ReleaseCases) -> list[str]:
    try:
        content = _checked(store, _CASES, expected.sha256)
        count = len(CaseTable(content))
    except ReleaseError as e:
        return [str(e)]
    if (count, len(content)) != (expected.count, expected.bytes):
        return [f"{_CASES} holds {count} cases in {len(content)} bytes, not {expected.count} in {expected.bytes}"]
    return []


def _bad_modules(store: Store, names: list[str]) -> list[str]:
    """What is wrong with the modules of these file names: each must hold what its name says."""
    bad: list[str] = []
    for name in names:
        try:
            _checked(store, f"{_MODULES}/{name}", name.removesuffix(".mjs"))
        except ReleaseError as e:
            bad.append(str(e))
    return bad


def _checked(store: Store, path: str, expected: str) -> bytes:
    """The bytes of an object whose SHA-256 has to be `expected`."""
    try:
        content = store.read(path)
    except FileNotFoundError:
        raise ReleaseError(f"{path} is missing from {store.uri!r}") from None
    if (found := sha256(content)) != expected:
        raise ReleaseError(
            f"{path} in {store.uri!r} was changed after it was compiled: its SHA-256 is {found}, not {expected}"
        )
    return content


def _module_path(sha: str) -> str:
    return f"{_MODULES}/{sha}.mjs"


def _json_object(content: bytes, place: str) -> dict[str, JsonValue]:
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as e:
        raise ReleaseError(f"{place} is not the manifest of a release: it is not JSON ({e})") from e
    if not isinstance(manifest, dict):
        raise ReleaseError(f"{place} is not the manifest of a release: it is not a JSON object")
    return manifest


def _line_starts(content: bytes) -> Iterator[int]:
    start = 0
    while start < len(content):
        yield start
        end = content.find(b"\n", start)
        start = len(content) if end < 0 else end + 1


def _read_ids(content: bytes, start: int) -> tuple[str, str]:
    """The case id and eval id of the line at `start`; by pattern where they stand first, which is where they do."""
    if match := _ids.match(content, start):
        return match[1].decode(), match[2].decode()
    end = content.find(b"\n", start)
    line = content[start : len(content) if end < 0 else end]
    try:
        fields = json.loads(line)
        return str(fields["id"]), str(fields["evalId"])
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise ReleaseError(f"cases.jsonl holds a line that is not a compiled case: {line[:60]!r}") from e
