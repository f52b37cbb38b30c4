"""A real language model on this machine, asked by each client; what it says is its own affair."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands import CommandLine
from support.runs import rows
from trunchray.core.decisions import Fallback, Question
from trunchray.frontends.evaluation.judges import judge_model

CONFIG = Path(__file__).parents[3] / "configs" / "local-llm.yaml"
COMMAND = [sys.executable, "-m", "trunchray.cli.main", "local-model"]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """The server as people start it, on any free port."""
    with subprocess.Popen([*COMMAND, "--port", "0", "--context", "1024"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        yield address
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0


@pytest.mark.parametrize("transport", ["openai", "litellm"])
def test_a_real_model_is_run(
    transport: str, base_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Twenty cases of the example config: each is answered, graded and counted, with the tokens that it took."""
    monkeypatch.chdir(tmp_path)
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    (model,) = config["models"]
    config["release"] = str((CONFIG.parent / config["release"]).resolve())
    # hosted_vllm is litellm's name for any server without a key that speaks OpenAI's protocol.
    name = model["id"].partition("/")[2]
    model |= {"id": f"hosted_vllm/{name}", "transport": transport, "base_url": base_url}
    model["limits"] = {"max_output_tokens": 16}  # enough to see that it speaks
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    outcome = CommandLine(tmp_path, capsys)("run", "run.yaml", "--json")
    assert outcome.code == 0, outcome.err
    report = outcome.json
    assert (report["complete"], report["error"], report["passed"] + report["failed"]) == (True, 0, 20)
    found = rows(tmp_path / "runs" / "local-llm")
    assert all(row["usage"]["input"] > 20 and 0 < row["usage"]["output"] <= 16 for row in found)
    assert {row["finish_reason"] for row in found} <= {"stop", "length"}
    assert {row["model"] for row in found} == {name}
    assert all(row["output"] and row["request_id"] for row in found)


async def test_a_real_model_judges(base_url: str):
    """Its probabilities are those of its tokens; a small model cannot state any, and need not."""
    question = Question("ready", "boolean", "Does the output answer the input?", {"yes": None, "no": None})
    judge = judge_model({"id": "vllm/smollm2", "base_url": base_url})
    found = await judge.invoke({"input": "What is 2 + 2?", "output": "It is 4."}, [question])
    await judge.close()
    assert not isinstance(found, Fallback), found.detail
    [decision] = found
    assert decision.method == "logprobs"
    assert 0 < decision.probabilities["yes"] < 1
    assert sum(decision.probabilities.values()) == pytest.approx(1)


def test_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A file that cannot be served, and a port that is taken, are refused in words."""
    trunchray = CommandLine(tmp_path, capsys)
    (tmp_path / "x.gguf").write_bytes(b"text")
    path = tmp_path / "x.gguf"
    assert f"cannot read the model '{tmp_path / 'y.gguf'}'" in trunchray.refused(
        "local-model", "--gguf", tmp_path / "y.gguf"
    )
    assert f"{str(path)!r} is no model in the GGUF format (it begins with b'text')" in trunchray.refused(
        "local-model", "--gguf", path
    )
    path.write_bytes(b"GGUF")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = trunchray.refused("local-model", "--gguf", path, "--port", port)
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port, or 0" in said


def test_a_damaged_model(tmp_path: Path):
    """What llama.cpp cannot load is named, and nothing else is printed."""
    (tmp_path / "half.gguf").write_bytes(b"GGUF" + bytes(1000))
    done = subprocess.run([*COMMAND, "--gguf", tmp_path / "half.gguf"], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: llama.cpp cannot load '{tmp_path / 'half.gguf'}' with 4 slots".encode())
    assert done.stderr.count(b"\n") == 1
    assert done.stdout == b""
