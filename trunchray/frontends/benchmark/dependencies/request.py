"""What is handed to the installer: plain package.json files that ask for exactly what the lockfile pinned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from trunchray.errors import AuthoringError, Problem
from trunchray.frontends.benchmark.dependencies.deno_lock import write_deno_lock
from trunchray.frontends.benchmark.dependencies.lock import LockRefused, Pin
from trunchray.frontends.benchmark.dependencies.project import PACKAGE_JSON, Project
from trunchray.frontends.benchmark.dependencies.specifier import alias, catalog, is_workspace, local_folder, refusal
from trunchray.frontends.benchmark.position import shown


@dataclass(frozen=True)
class Request:
    """`files` are by path relative to the project's folder; `pins` say what each member's dependencies must become.

    A `frozen` request is enforced by Deno itself.
    """

    files: Mapping[str, bytes]
    pins: Mapping[str, Mapping[str, Pin]]
    frozen: bool


def request(project: Project) -> Request:
    """The files to install from. Nothing is in them but names and versions: no scripts, no settings.

    Raises:
        AuthoringError: a dependency is refused, or the lockfile was made for other ones.
    """
    problems: list[Problem] = []
    files: dict[str, bytes] = {}
    pins: dict[str, dict[str, Pin]] = {}
    for member in sorted(project.manifests):
        sections, pins[member] = _sections(project, member, problems)
        files[f"{member}/{PACKAGE_JSON}".lstrip("/")] = _text(project, member, sections)
    if problems:
        raise AuthoringError(problems)
    lock = project.lock
    if lock:
        files["deno.lock"] = lock.own or write_deno_lock(lock.packages, pins)
    return Request(files, pins, frozen=bool(lock and lock.own))


def _sections(
    project: Project, member: str, problems: list[Problem]
) -> tuple[dict[str, dict[str, str]], dict[str, Pin]]:
    """The dependencies of one member as the installer shall see them, by section, and what they are pinned to."""
    sections: dict[str, dict[str, str]] = {}
    pins: dict[str, Pin] = {}
    for name, (section, specifier) in sorted(project.manifests[member].dependencies.items()):
        try:
            pin = _pin(project, member, name, specifier)
        except LockRefused as e:
            if section != "peerDependencies":
                problems.append(project.place(member).at(f"{section}.{name}").problem(str(e)))
            continue
        if pin is None:
            written = _floating(project, name, specifier)
        else:
            pins[name] = pin
            written = pin.exact(name)
        # What was locked as a peer of the project has to be installed like everything else.
        target = section if pin is None or section != "peerDependencies" else "dependencies"
        sections.setdefault(target, {})[name] = written
    return sections, pins


def _pin(project: Project, member: str, name: str, specifier: str) -> Pin | None:
    """What a dependency is locked to; None when nothing but Deno's own lockfile, or none at all, says so.

    Raises:
        LockRefused: it cannot be installed, or the lockfile does not have it.
    """
    if reason := refusal(specifier):
        raise LockRefused(f"{shown(specifier)} {reason}")
    if _is_local(project, name, specifier):
        return Pin(name, link=True)
    if project.lock is None or project.lock.own:
        return None
    pin = project.lock.pin(member, name, specifier)
    if pin is None and not project.lock.pins and name in _names(project):
        return Pin(name, link=True)  # Yarn 1 does not lock what is not installed
    if pin is None:
        raise LockRefused(
            f"{shown(specifier)} is not what {project.lockfile} was made for; run the package manager's install again "
            "and commit the lockfile"
        )
    if not pin.link and pin.name not in _meant(project, name, specifier):
        raise LockRefused(
            f"{shown(specifier)} is not what {project.lockfile} has for it, which is the package {pin.name!r}; run the "
            "package manager's install again and commit the lockfile"
        )
    return pin


def _meant(project: Project, name: str, specifier: str) -> set[str]:
    """The packages that may stand for a dependency: it itself or what it is an alias of, and what overrides name."""
    root = project.manifests.get("")
    overrides = dict(root.overrides) if root else {}
    return {alias(_floating(project, name, specifier)) or name, *_aliases(overrides)}


def _aliases(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for inside in value.values():
            yield from _aliases(inside)
    elif isinstance(value, str) and (name := alias(value)):
        yield name


def _is_local(project: Project, name: str, specifier: str) -> bool:
    """Whether a dependency is another member of the project; only then can it be linked under its own name."""
    if not is_workspace(specifier) and local_folder(specifier) is None:
        return False
    if name not in _names(project):
        raise LockRefused(f"{shown(specifier)} leads to no package named {name!r} in this repository; correct the name")
    return True


def _names(project: Project) -> set[str | None]:
    return {manifest.name for manifest in project.manifests.values()}


def _floating(project: Project, name: str, specifier: str) -> str:
    """The specifier itself, or the one that its catalog has."""
    chosen = catalog(specifier)
    return specifier if chosen is None else project.catalogs.get(chosen, {}).get(name, specifier)


def _text(project: Project, member: str, sections: Mapping[str, Mapping[str, str]]) -> bytes:
    manifest = project.manifests[member]
    # Without a name, Deno would take that of the folder, which is another one every time.
    name = manifest.name or "-".join(["trunchray", *member.split("/")]).rstrip("-").lower()
    content: dict[str, Any] = {"name": name, "version": "0.0.0", "private": True, **sections}
    if not member:
        content |= {} if project.lock else manifest.overrides
        if others := sorted(set(project.manifests) - {""}):
            content["workspaces"] = others
    return json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False).encode()
