"""The attacks once more, by a user without privileges: none of the walls needs any, nor depends on having none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trunchray.adapters.sandbox.deno import binary

ATTACKS = Path(__file__).with_name("test_attacks.py")
REPEATED = "not floods or worker or workers or fork_bomb"
"""What eats memory or time alone is limited for every user alike, and meets the whole stack all the same."""


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """With a short path, because addresses of sockets are short, and under folders that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="nobody-") as folder:
        os.chown(folder, 65534, 65534)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_all_of_it_as_an_unprivileged_user(nobodys_folder: Path) -> None:
    """Every attack has the outcome that it has for root."""
    folder = nobodys_folder
    python = unprivileged_python(folder / "python")
    command = [
        *AS_NOBODY,
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={folder / 'x'}",
        "-k",
        REPEATED,
        str(ATTACKS),
    ]
    with (folder / "log").open("w+") as log:
        done = subprocess.run(
            command,
            env=UNPRIVILEGED,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            timeout=240,
            check=False,
        )
    printed = (folder / "log").read_text()
    assert done.returncode == 0, printed[-3000:]
    assert re.search(r"\d+ passed", printed), printed[-300:]
    assert "skipped" not in printed


CHECK = """
import subprocess, sys, pytest, trunchray
from deno import find_deno_bin
find_deno_bin()
subprocess.run([sys.executable, "-c", ""], check=True)
"""
UNPRIVILEGED = {"PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath}
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def unprivileged_python(folder: Path) -> str:
    """An interpreter of this version that everybody may execute, with this one's packages."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    other = folder / "bin" / "python"
    for link, place in {
        other: f"/usr/bin/{version}",
        folder / "bin" / "deno": binary(),
        folder / "lib" / version / "site-packages": sysconfig.get_path("purelib"),
    }.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for python in (sys.executable, str(other)):
        if (
            Path(python).exists()
            and not subprocess.run(
                [*AS_NOBODY, python, "-c", CHECK], env=UNPRIVILEGED, cwd="/", capture_output=True, check=False
            ).returncode
        ):
            return python
    pytest.skip("no interpreter of this version may be executed by everybody")
