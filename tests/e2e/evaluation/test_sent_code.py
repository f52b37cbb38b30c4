"""The code of an evaluation on its way to workers that have nothing but what is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trunchray.engine.program import unpacked
from trunchray.errors import UsageError

PACK = """
import sys
sys.path.insert(0, sys.argv[1])
import tasks
from trunchray.agents.python.task import as_task
from trunchray.engine.program import Program
from trunchray.engine.ray_program import packed
sys.stdout.buffer.write(packed(Program(as_task(tasks.shout), {}, None, 1.0, frozenset({"tasks"}))))
"""

OPEN = """
import sys
from trunchray.engine.program import unpacked
program = unpacked(sys.stdin.buffer.read())
assert "tasks" not in sys.modules and "words" not in sys.modules
print(program.task.authored[0]("hello"))
"""


def test_modules_beside_the_task_go_along(tmp_path: Path):
    """Those that are not installed are sent as what they hold: nothing of them has to be on the other machine."""
    (tmp_path / "words.py").write_text(
        "MARK = '!'\ndef loud(text):\n    return text.upper() + MARK\n", encoding="utf-8"
    )
    (tmp_path / "tasks.py").write_text(
        "import words\ndef shout(text):\n    return words.loud(text)\n", encoding="utf-8"
    )
    sent = subprocess.run([sys.executable, "-c", PACK, str(tmp_path)], capture_output=True, check=True).stdout
    said = subprocess.run([sys.executable, "-c", OPEN], input=sent, capture_output=True, check=True).stdout
    assert said == b"HELLO!\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cnowhere_installed\nthing\n.", "needs the module 'nowhere_installed', which is not on this machine"),
        (b"not a pickle", "cannot be unpacked here"),
    ],
)
def test_what_cannot_be_opened_elsewhere(content: bytes, message: str):
    """Says what the machine lacks."""
    with pytest.raises(UsageError, match=message):
        unpacked(content)
