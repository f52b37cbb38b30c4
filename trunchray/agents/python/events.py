"""Events of an agent's stream as steps."""

from __future__ import annotations

from typing import Any, NamedTuple

from trunchray.agents.python.failure import RunFailed
from trunchray.agents.python.peek import as_name, peek, words
from trunchray.agents.python.steps import Steps


class _Call(NamedTuple):
    name: str | None
    arguments: Any


class EventReader:
    """Reads the events of one run, in their order.

    An event is a mapping or an object with a `type`, its fields beside that or under `data`. Of these types:

    - `inference.done {turn {content}}`: a step of the model;
    - `tool.start {call {id, name, arguments}}`: a call of a tool begins, and is a step, whether or not it ends;
    - `tool.done {result {callId, content, isError?}}`: it ends. One that never began, because a policy denied it, is a
      step if the model named it, and is dropped otherwise;
    - `inference.tool_call.end {callId, name, arguments?}` names a call, as do the blocks
      `{type: "tool_call", id, name, arguments?}` of a turn.

    All others are passed over.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._named: dict[str, _Call] = {}

    def read(self, event: object) -> None:
        """One event.

        Raises:
            RunFailed: a tool begins that has no name.
        """
        data = peek(event, "data")
        data = event if data is None else data
        match peek(event, "type"):
            case "inference.done":
                self._turn(peek(data, "turn", "message"))
            case "inference.tool_call.end":
                self._name(peek(data, "callId"), data)
            case "tool.start":
                self._start(peek(data, "call"))
            case "tool.done":
                self._done(peek(data, "result"))
            case _:
                pass

    def _turn(self, turn: object) -> None:
        self._steps.model()
        content = peek(turn, "content")
        for block in content if isinstance(content, list | tuple) else ():
            if peek(block, "type") == "tool_call":
                self._name(peek(block, "id"), block)

    def _name(self, call_id: object, call: object) -> None:
        if call_id is not None and (name := as_name(peek(call, "name"))):
            self._named[str(call_id)] = _Call(name, peek(call, "arguments"))

    def _start(self, call: object) -> None:
        call_id, name = peek(call, "id"), as_name(peek(call, "name"))
        if name is None:
            raise RunFailed("a tool.start has no call.name; an event is {type, call: {id, name, arguments}}")
        self._named.pop(str(call_id), None)
        self._steps.start(call_id, name, peek(call, "arguments"))

    def _done(self, result: object) -> None:
        call_id = peek(result, "callId")
        content = peek(result, "content")
        error = words(content) if peek(result, "isError") is True else None
        output = None if error is not None else content
        if self._steps.done(call_id, output, error) or call_id is None:
            return
        if denied := self._named.pop(str(call_id), None):
            self._steps.start(call_id, denied.name, denied.arguments)
            self._steps.done(call_id, output, error)
