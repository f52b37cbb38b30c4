"""Folders that several processes may try to fill at the same time: what one of them has made counts, whole.

.tries/<token>/   what one try has made so far
.chosen.json      which try counts, until all its files are in their places

A process that is slow may be taken for dead, and go on while another one does the same. So nobody writes to the places
themselves. Each try has a folder of its own, and creating `.chosen.json` decides once between those that came to their
end. Only the files of that one are ever brought to their places, by whoever comes upon it, which does no harm when it
is done twice. Then comes the last file, by which the folder is complete, and what was needed on the way is removed.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from trunchray.adapters.store import Store
from trunchray.adapters.transfers import each
from trunchray.core.frozen import Frozen
from trunchray.errors import StoreError

TRIES = ".tries"
_CHOSEN = ".chosen.json"


class _Chosen(Frozen):
    token: str
    last: str
    """What the last file will hold."""


class Tries:
    """The tries at one folder. Methods block.

    Raises:
        StoreError: the store refused or lost something; from every method.
    """

    def __init__(self, store: Store, last: str) -> None:
        """`last` is the name of the file by which the folder is complete."""
        self._store, self._last = store, last

    def begin(self) -> Store:
        """A folder for a new try, which nobody else has."""
        return self._store.child(f"{TRIES}/{secrets.token_hex(8)}")

    def complete(self, tried: Store, last: str) -> bool:
        """Have a try count, all of whose files are there, and make the folder complete; `last` is the last file's text.

        False where somebody else was first: nothing of this try is kept then. It may also be False of a try that
        counts, when another process has brought its files to their places.
        """
        token = tried.uri.rpartition("/")[2]
        record = _Chosen(token=token, last=last).model_dump_json().encode()
        # Once a folder is complete, its record is removed: then to have created one means nothing.
        counts = self._store.create(_CHOSEN, record) and not self._store.exists(self._last)
        self.settled()
        self._clear()
        return counts

    def settled(self) -> bytes | None:
        """The last file; None while no try has come to its end. What a process that died has left to do is done now."""
        if (last := self._complete()) is not None:
            return last
        chosen = self._chosen()
        # Looked at once more: what was chosen before may be complete by now, and what we have read be somebody's who
        # came later.
        if chosen is None or (last := self._complete()) is not None:
            return last
        self._bring(chosen.token)
        self._store.create(self._last, chosen.last.encode())
        self._clear()
        return self._complete()

    def _complete(self) -> bytes | None:
        try:
            return self._store.read(self._last)
        except FileNotFoundError:
            return None

    def _chosen(self) -> _Chosen | None:
        try:
            return _Chosen.model_validate_json(self._store.read(_CHOSEN))
        except FileNotFoundError:
            return None
        except ValidationError as e:
            raise StoreError(
                f"{self._store.uri}/{_CHOSEN} is damaged; move its folder elsewhere to fill it anew"
            ) from e

    def _bring(self, token: str) -> None:
        """Bring the files of the try that counts to their places; somebody else may be doing the same."""
        if self._store.folder:
            _move(self._store.folder / TRIES / token, self._store.folder)
        else:
            each(self._copy, self._store.find(f"{TRIES}/{token}"))

    def _copy(self, path: str) -> None:
        with suppress(FileNotFoundError):  # then the folder is complete, and somebody tidies up
            self._store.copy(path, path.split("/", 2)[2])

    def _clear(self) -> None:
        """Remove what no one needs any more, now that the folder is complete."""
        if self._store.folder:
            shutil.rmtree(self._store.folder / TRIES, ignore_errors=True)
        else:
            each(self._store.remove, self._store.find(TRIES))
        self._store.remove(_CHOSEN)


def _move(source: Path, target: Path) -> None:
    """What is no longer there, somebody else has moved: each name changes its place at once."""
    try:
        for name in sorted(path.name for path in source.iterdir()):
            with suppress(FileNotFoundError):
                (source / name).rename(target / name)
    except FileNotFoundError:
        return
    except OSError as e:
        raise StoreError(f"{target}: {e.strerror or e}; move what is in it elsewhere") from e
