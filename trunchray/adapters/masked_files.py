"""Taking credentials out of a folder that a coding tool has filled."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from trunchray.adapters.survey import Survey, TreeCaps
from trunchray.core.masking import Mask
from trunchray.core.staging import Fixture

_ROUNDS = 10


def mask_files(root: Path, mask: Mask, caps: TreeCaps, given: Collection[Fixture] = ()) -> None:
    """Mask what files hold and are called, and where links lead, of all that would be kept by `caps`.

    A file that changes is a new one: it may be another name of a file outside. What was `given` and is as it was, is
    left alone: its author made it known, and masked it would look as if the tool had changed it.

    Raises:
        OSError: something could not be masked.
    """
    for _ in range(_ROUNDS if mask.longest else 0):
        if not _mask_once(root, mask, Survey.of(root, caps), given):
            return
    if mask.longest:
        raise OSError(f"there was more to mask {_ROUNDS} times")


def _mask_once(root: Path, mask: Mask, found: Survey, given: Collection[Fixture]) -> bool:
    """Whether something was masked. Then `caps` may let through what they did not before, as all is smaller."""
    # All of each list, and the longest names first: a folder has its own while what is in it is renamed.
    kept = _as_given(root, found, given)
    content = [_mask_content(root / path, mask) for path in found.files if path not in kept]
    links = [_mask_link(root / path, to, mask) for path, to in found.links.items()]
    names = sorted((*found.files, *found.links, *found.folders), key=len, reverse=True)
    return any([*content, *links, *[_mask_name(root, path, mask) for path in names if path not in kept]])


def _as_given(root: Path, found: Survey, given: Collection[Fixture]) -> set[str]:
    """The files that are as they were given, and the folders that they are in."""
    digests = {fixture.path: fixture.sha256 for fixture in given}
    same = [path for path in found.files if path in digests and _sha256(root / path) == digests[path]]
    return {str(part) for path in same for part in (PurePosixPath(path), *PurePosixPath(path).parents)}


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _mask_content(file: Path, mask: Mask) -> bool:
    content = file.read_bytes()
    if (masked := mask.content(content)) == content:
        return False
    _make_writable(file.parent)
    new = file.with_name(secrets.token_hex(8))
    new.write_bytes(masked)
    shutil.copymode(file, new)
    new.replace(file)
    return True


def _mask_link(link: Path, to: str, mask: Mask) -> bool:
    if (masked := mask.text(to)) == to:
        return False
    _make_writable(link.parent)
    link.unlink()
    link.symlink_to(masked)
    return True


def _mask_name(root: Path, path: str, mask: Mask) -> bool:
    name = PurePosixPath(path).name
    if (masked := mask.text(name)) == name:
        return False
    old = root / path
    new = old.with_name(masked)
    while os.path.lexists(new):
        new = new.with_name(f"{new.name}+")
    _make_writable(old.parent)
    old.rename(new)
    return True


def _make_writable(folder: Path) -> None:
    """Let us change what is in it, whatever rights the tool has taken away."""
    if not os.access(folder, os.W_OK | os.X_OK):
        folder.chmod(0o700)
