"""A coding tool that needs no model: it does what a script says. For examples, trials of a setup, and tests.

    python -m trunchray.agents.harness.scripted "{prompt}" [--skills .agents/skills]

It prints what Claude Code prints with `--output-format stream-json`. Like a real tool it looks at the skills of its
workspace, and loads the first whose description shares two words with the prompt. What it does then is in the skill's
`evals/scripted.json`: `{"replies": [{"when": <regular expression>, "do": [<step>, …]}, …]}`, where the first reply
whose expression is found in the prompt counts. A prompt that is itself such a list of steps, as JSON, is done at once.

As a grader it looks for words: a line of a rubric such as "`NOTES.md` names `2.1` and has no `TODO`" is met when that
file of the attempt has the texts behind it, and has none of those that follow the word "no".

A step is an object; its first name says what it does:

    {"say": text}                    a message                  {"stream": [text, …]}    one in pieces
    {"call": tool, "input", "output"}  a tool call              {"print": text, "times": n}, {"stderr": text}
    {"write": path, "text": text}    with a call of `Write`     {"read": path}           with a call of `Read`
    {"link": path, "to": target}, {"fifo": path}, {"socket": path}    special files
    {"environment": path}            writes its variables       {"usage": {…}}           in place of counted words
    {"pid": path}                writes its process id          {"await": path}          until somebody has written it
    {"sleep": seconds}, {"ignore": "SIGTERM"}, {"exit": code}
    {"fork": [step, …], "detached": bool}    a process that does these, and is not waited for

Run by itself, with the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

_SHARED = 2
"""Words that a description must share with a prompt; of four letters and more, told apart by their first five."""
_EXACT_TOKEN = re.compile(r"exact token `([^`]+)`")
_RUBRIC = Path("attempt", "rubric.json")
"""What graders are given."""


def main(arguments: list[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="scripted")
    parser.add_argument("prompt")
    parser.add_argument("--skills", default=".agents/skills", help="the folder of skills below the current one")
    given = parser.parse_args(arguments)
    player = _Player()
    player.event({"type": "system", "subtype": "init", "skills": [path.parent.name for path in _skills(given.skills)]})
    code = player.play(_steps(given.prompt, player, Path(given.skills)))
    player.result(given.prompt)
    return code


def _steps(prompt: str, player: _Player, skills: Path) -> list[dict[str, Any]]:
    if prompt.lstrip().startswith("["):
        return json.loads(prompt)
    if _RUBRIC.is_file():
        grades = [_grade(line) for line in json.loads(_RUBRIC.read_text(encoding="utf-8"))]
        return [
            {"write": "grading.json", "text": json.dumps({"expectations": grades})},
            {"say": "grading.json has it."},
        ]
    loaded = next((path for path in _skills(str(skills)) if _fits(path.read_text(encoding="utf-8"), prompt)), None)
    if loaded is None:
        return [{"say": "There is no script for this."}]
    body = loaded.read_text(encoding="utf-8")
    player.call("Skill", {"skill": loaded.parent.name}, None)
    token = _EXACT_TOKEN.search(body)
    steps = [{"say": token[1]}] if token else []
    script = loaded.parent / "evals" / "scripted.json"
    if script.is_file():
        replies = json.loads(script.read_text(encoding="utf-8"))["replies"]
        steps += next((reply["do"] for reply in replies if re.search(reply["when"], prompt)), [])
    return steps or [{"say": f"I follow {loaded.parent.name}, and there is no script for this."}]


def _grade(line: str) -> dict[str, Any]:
    """One line of a rubric: the first text in backquotes is a file, and the others have to be in it, or not."""
    (_, name), *texts = re.findall(r"(\bno )?`([^`]+)`", line) or [("", "")]
    file = next((path for path in (Path("attempt", "workspace", name), Path("attempt", name)) if path.is_file()), None)
    if file is None or not texts:
        return {
            "text": line,
            "passed": False,
            "evidence": "This names no file that there is, or no text in backquotes.",
        }
    content = file.read_text(encoding="utf-8", errors="replace")
    found = [(text in content, bool(none), text) for none, text in texts]
    seen = "; ".join(f"{name} {'has' if there else 'has no'} {text!r}" for there, _, text in found)
    return {"text": line, "passed": all(there != none for there, none, _ in found), "evidence": seen}


def _skills(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("*/SKILL.md"))


def _fits(skill: str, prompt: str) -> bool:
    described = re.search(r"^description:(.*?)^(?:[a-z-]+:|---)", skill, re.DOTALL | re.MULTILINE)
    return len(_words(described[1] if described else "") & _words(prompt)) >= _SHARED


def _words(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())} - {"this", "that", "when", "with", "skill"}


class _Player:
    def __init__(self) -> None:
        self._calls = 0
        self._said: list[str] = []
        self._usage: dict[str, int] | None = None

    def play(self, steps: list[dict[str, Any]]) -> int:
        for step in steps:
            name = next(iter(step))
            if name == "exit":
                return int(step["exit"])
            getattr(self, f"do_{name}")(step)
        return 0

    def event(self, event: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()

    def call(self, tool: str, given: Any, answered: Any) -> None:
        self._calls += 1
        block = {"type": "tool_use", "id": f"call-{self._calls}", "name": tool, "input": given}
        self.event({"type": "assistant", "message": {"role": "assistant", "content": [block]}})
        answer = {"type": "tool_result", "tool_use_id": block["id"], "content": answered}
        self.event({"type": "user", "message": {"role": "user", "content": [answer]}})

    def result(self, prompt: str) -> None:
        text = "\n".join(self._said)
        usage = self._usage or {"input_tokens": len(prompt.split()), "output_tokens": len(text.split())}
        last = self._said[-1] if self._said else ""
        self.event({"type": "result", "subtype": "success", "result": last, "usage": usage})

    def do_say(self, step: dict[str, Any]) -> None:
        self._said.append(step["say"])
        content = [{"type": "text", "text": step["say"]}]
        self.event({"type": "assistant", "message": {"role": "assistant", "content": content}})

    def do_stream(self, step: dict[str, Any]) -> None:
        for piece in step["stream"]:
            delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}}
            self.event({"type": "stream_event", "event": delta})

    def do_call(self, step: dict[str, Any]) -> None:
        self.call(step["call"], step.get("input", {}), step.get("output"))

    def do_print(self, step: dict[str, Any]) -> None:
        for _ in range(step.get("times", 1)):
            sys.stdout.write(step["print"])
        sys.stdout.flush()

    def do_stderr(self, step: dict[str, Any]) -> None:
        sys.stderr.write(step["stderr"])
        sys.stderr.flush()

    def do_write(self, step: dict[str, Any]) -> None:
        path = Path(step["write"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.get("text", ""), encoding="utf-8")
        self.call("Write", {"file_path": step["write"]}, "written")

    def do_read(self, step: dict[str, Any]) -> None:
        self.call("Read", {"file_path": step["read"]}, Path(step["read"]).read_text(encoding="utf-8"))

    def do_link(self, step: dict[str, Any]) -> None:
        Path(step["link"]).symlink_to(step["to"])

    def do_fifo(self, step: dict[str, Any]) -> None:
        os.mkfifo(step["fifo"])

    def do_socket(self, step: dict[str, Any]) -> None:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(step["socket"])

    def do_environment(self, step: dict[str, Any]) -> None:
        Path(step["environment"]).write_text(json.dumps(dict(os.environ)), encoding="utf-8")

    def do_pid(self, step: dict[str, Any]) -> None:
        new = Path(f"{step['pid']}.new")
        new.write_text(str(os.getpid()), encoding="utf-8")
        new.rename(step["pid"])

    def do_await(self, step: dict[str, Any]) -> None:
        while not Path(step["await"]).exists():
            time.sleep(0.01)

    def do_usage(self, step: dict[str, Any]) -> None:
        self._usage = step["usage"]

    def do_sleep(self, step: dict[str, Any]) -> None:
        time.sleep(step["sleep"])

    def do_ignore(self, step: dict[str, Any]) -> None:
        signal.signal(signal.Signals[step["ignore"]], signal.SIG_IGN)

    def do_fork(self, step: dict[str, Any]) -> None:
        if os.fork() == 0:
            if step.get("detached"):
                os.setsid()
            os._exit(self.play(step["fork"]))


if __name__ == "__main__":
    sys.exit(main())
