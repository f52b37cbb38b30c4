"""What a killed compilation leaves behind."""

import os
import subprocess
import sys
from pathlib import Path

WAITING = """
import sys
from pathlib import Path
from trunchray.frontends.benchmark.site import locate
from trunchray.frontends.benchmark.staging import staged
with staged(locate(Path(sys.argv[1]))) as stage:
    print(stage.root, flush=True)
    sys.stdin.read()
"""


def test_the_next_start_removes_what_a_killed_one_left(tmp_path):
    """The copy of a killed process is gone after the next command, that of a running one is not."""
    benchmark, temporary = tmp_path / "b", tmp_path / "tmp"
    (benchmark / "evals").mkdir(parents=True)
    temporary.mkdir()
    (benchmark / "evals" / "a.ts").write_text(
        'export default { id: "a", prompt: "p", evaluate: { kind: "non_empty" } };'
    )
    environment = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-c", WAITING, str(benchmark)]
    with (
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running,
    ):
        left, kept = (Path((process.stdout or sys.stdin).readline().strip()) for process in (killed, running))
        assert (left / "evals" / "a.ts").is_file()
        assert (kept / "evals" / "a.ts").is_file()
        killed.kill()
        killed.wait()
        check = [sys.executable, "-m", "trunchray.cli.main", "check", str(benchmark)]
        subprocess.run(check, env=environment, check=True, capture_output=True)
        assert not left.parent.exists()
        assert (kept / "evals" / "a.ts").is_file()
        running.communicate("")
    assert [*temporary.glob("*/*")] == []
