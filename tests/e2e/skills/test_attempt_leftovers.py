"""Whatever a coding tool leaves behind: special files, links, odd names, too much of it, processes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from support.attempt_bench import Bench
from support.scripted_harness import left_in, running, until
from trunchray.adapters.harness_process import Caps
from trunchray.adapters.survey import TreeCaps
from trunchray.core.harness import Harness
from trunchray.errors import HarnessError


async def test_fifo_socket_and_device_in_the_workspace(anywhere: Bench):
    """The original broke down over them; they are left out, by name, and everything else is kept."""
    await anywhere.does({"fifo": "pipe"}, {"socket": "sock"}, {"write": "a.md"}, {"write": "z.md"})
    assert anywhere.timing()["left_out"] == ["pipe: a named pipe", "sock: a socket"]
    assert [path for path in anywhere.files() if path.startswith("cwd/")] == ["cwd/a.md", "cwd/z.md"]


@pytest.mark.skipif(not hasattr(os, "mknod") or os.getuid() != 0, reason="only root makes devices")
async def test_a_device_in_the_workspace(bench: Bench):
    """As a pipe or a socket."""
    program = "import os, stat; os.mknod('null', stat.S_IFCHR | 0o666, os.makedev(1, 3))"
    try:
        await bench.run("x", harness=Harness(command=(sys.executable, "-S", "-c", program, "{prompt}")))
    except HarnessError:
        pytest.skip("this machine lets nobody make devices")
    assert bench.timing()["left_out"] == ["null: a device"]


async def test_absolute_and_escaping_symlinks_are_left_out(anywhere: Bench):
    """Neither this machine's files nor what lies beside the workspace is kept, nor a link that would lead there."""
    await anywhere.does(
        {"link": "passwd", "to": "/etc/passwd"},
        {"link": "up", "to": "../.home"},
        {"write": "d/x.md"},
        {"link": "d/up", "to": ".."},
        {"link": "roundabout", "to": "d/up/../.home"},
    )
    left = anywhere.timing()["left_out"]
    assert [line.split(":")[0] for line in left if "leads out" in line] == ["passwd", "roundabout", "up"]
    assert "/etc/passwd" in left[0] or "/etc/passwd" in "".join(left)
    assert not {"cwd/passwd", "cwd/up", "cwd/roundabout"} & set(anywhere.files())


async def test_symlinks_that_stay_inside(anywhere: Bench):
    """They are kept where there are links; elsewhere one to a file is a copy, and one to a folder is left out."""
    await anywhere.does(
        {"write": "d/x.md", "text": "text"},
        {"link": "file", "to": "d/x.md"},
        {"link": "folder", "to": "d"},
        {"link": "nowhere", "to": "gone"},
    )
    assert anywhere.text("cwd/file") == "text"
    if "://" in anywhere.root:
        assert [line.split(":")[0] for line in anywhere.timing()["left_out"]] == ["folder", "nowhere"]
    else:
        workspace = Path(anywhere.root, "skill/create-1/cwd")
        assert [str((workspace / name).readlink()) for name in ("file", "folder", "nowhere")] == ["d/x.md", "d", "gone"]
        assert anywhere.timing()["left_out"] == []


async def test_names_that_are_no_text(anywhere: Bench):
    """A file may be called anything; a store that cannot have the name is told to do without."""
    program = "open(b'caf\\xe9.md', 'w').close(); open('ok.md', 'w').close()"
    program += "; open('tab\\t.md', 'w').close(); open('no-break\\xa0space.md', 'w').close()"
    await anywhere.run("x", harness=Harness(command=(sys.executable, "-S", "-X", "utf8", "-c", program, "{prompt}")))
    assert "cwd/no-break\xa0space.md" in anywhere.files()
    if "://" in anywhere.root:
        left = anywhere.timing()["left_out"]
        assert [line.split(": ")[1] for line in left] == ["a name that this store cannot have"] * 2
    else:
        assert "cwd/caf\udce9.md" in anywhere.files()
    assert "cwd/ok.md" in anywhere.files()


async def test_fifty_megabytes_of_output(anywhere: Bench):
    """The transcript is bounded and says that something is missing; tokens and the message are still right."""
    anywhere.more["printed"] = Caps(stdout=1 << 19, tail=1 << 14)
    usage = {"usage": {"input_tokens": 7, "output_tokens": 3}}
    trace = await anywhere.does({"print": "x" * 1023 + "\n", "times": 50 << 10}, {"say": "the end"}, usage)
    assert (trace.output, trace.usage.input_tokens, anywhere.timing()["truncated"]) == (
        "the end",
        7,
        ["transcript.jsonl"],
    )
    assert len(anywhere.text("transcript.jsonl")) < 530_000
    assert (await anywhere.does({"say": "again"})).output == "the end"


async def test_a_large_workspace_is_bounded(bench: Bench):
    """Files that are too large, or too many, are named and left out."""
    bench.more["workspace"] = TreeCaps(file=1000, total=1500, entries=100)
    await bench.does(
        {"write": "a.txt", "text": "x" * 900},
        {"write": "b.txt", "text": "x" * 1001},
        {"write": "c.txt", "text": "x" * 900},
    )
    assert bench.timing()["truncated"] == ["cwd/b.txt", "cwd/c.txt"]
    assert [path for path in bench.files() if path.startswith("cwd/")] == ["cwd/a.txt"]


async def test_a_workspace_of_very_many_files(bench: Bench):
    """There is an end to what is kept."""
    bench.more["workspace"] = TreeCaps(entries=10)
    await bench.run("x", harness=Harness(command=("sh", "-c", "for n in $(seq 50); do touch $n; done # {prompt}")))
    assert len([path for path in bench.files() if path.startswith("cwd/")]) == 10
    assert "more than 10 entries" in bench.timing()["left_out"][0]


async def test_folders_without_rights_and_without_end(bench: Bench):
    """A tool may take the rights to its own folders away, or nest them deeper than a path can be: the room is gone."""
    script = "mkdir -p locked/x; touch locked/x/y; chmod 000 locked"
    deep = "import os\nfor _ in range(1200):\n    os.mkdir('deeper'); os.chdir('deeper')"
    await bench.run(
        "x", harness=Harness(command=("sh", "-c", f'{script}; {sys.executable} -S -c "$0" # {{prompt}}', deep))
    )
    assert left_in(bench.rooms) == []
    assert "a path of more than 768 bytes" in bench.timing()["left_out"][-1]


async def test_a_grandchild_does_not_write_after_the_attempt(bench: Bench):
    """When the workspace is copied, nobody is at work in it any more."""
    pid = bench.folder / "pid"
    await bench.does({"fork": [{"pid": str(pid)}, {"sleep": 600}], "detached": True}, {"await": str(pid)})
    assert not running(pid.read_text())


async def test_a_cancelled_attempt_leaves_nothing(bench: Bench):
    """No process, no room, no lock, and no attempt that looks complete."""
    pid = bench.folder / "pid"
    task = asyncio.create_task(bench.does({"pid": str(pid)}, {"sleep": 600}))
    await until(pid.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running(pid.read_text())
    assert left_in(bench.rooms) == []
    assert "timing.json" not in bench.files()
