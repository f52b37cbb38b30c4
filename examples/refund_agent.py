"""A refund agent with tools: what it says, which tools it calls, and whether its reply may be sent.

The agent follows a script and its judge a rule, so that this runs offline. Use your own instead: an agent needs `send`,
and `stream` for its steps to be checked; a judge can be a language model: `judge_model("openai/gpt-4o-mini")`.

    python examples/refund_agent.py
    trunchray eval run examples/refund_agent.py
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from trunchray import avoids, evaluate, judge_model, mentions, ran_steps, steps_at_most

ORDERS = {
    "A-100": {"paid": [19.9, 19.9], "days": 3},
    "A-101": {"paid": [64.0], "days": 45},
    "A-102": {"paid": [12.5], "days": 12},
}
SHIPPING = "We ship to every address in the country, and it takes two to four days."


class RefundAgent:
    """Answers one message. Its stream tells of every call of the model and of a tool."""

    def __init__(self) -> None:
        self._listeners: list[asyncio.Queue[dict[str, Any]]] = []
        self._calls = 0

    async def send(self, message: str) -> dict[str, str]:
        """One turn of the conversation."""
        return {"type": "reply", "reply": self._reply(message)}

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        """The events from now on."""
        events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._listeners.append(events)
        try:
            while True:
                yield await events.get()
        finally:
            self._listeners.remove(events)

    def _reply(self, message: str) -> str:
        """What a language model would decide, step by step."""
        self._tell("inference.done", turn={"content": []})
        number = re.search(r"[A-Z]-\d+", message)
        if number is None:
            return SHIPPING if "ship" in message else "Which order is it about? Please send us its number."
        order = self._tool("find_order", number=number[0])
        if order is None:
            return f"There is no order {number[0]}."
        if order["days"] > 30:
            return f"Order {number[0]} is {order['days']} days old, and a refund is possible for 30 days. We are sorry."
        twice = len(order["paid"]) > 1
        self._tool("refund", number=number[0], amount=order["paid"][-1])
        why = "You were charged twice, and we are sorry for that. " if twice else ""
        return f"{why}Your refund of {order['paid'][-1]:.2f} € for order {number[0]} arrives within 5 days."

    def _tool(self, name: str, **arguments: Any) -> Any:
        self._calls += 1
        call = {"id": f"call-{self._calls}", "name": name, "arguments": arguments}
        self._tell("tool.start", call=call)
        found = ORDERS.get(arguments["number"]) if name == "find_order" else "done"
        self._tell("tool.done", result={"callId": call["id"], "content": found, "isError": found is None})
        self._tell("inference.done", turn={"content": []})
        return found

    def _tell(self, type: str, **data: Any) -> None:
        for listener in self._listeners:
            listener.put_nowait({"type": type, **data})


def ready(asked: dict[str, Any]) -> dict[str, Any]:
    """A judge as a function: for each question, the probability that the answer is yes."""
    reply = asked["state"]["output"]
    p = 0.5 if reply.startswith("There is no order") else 0.9
    return {"decisions": [{"id": question["id"], "type": "noul", "noul": p} for question in asked["questions"]]}


evaluation: dict[str, Any] = {
    "name": "refund-agent",
    "task": RefundAgent(),
    "data": [
        {
            "name": "duplicate charge",
            "input": "I was charged twice for order A-100.",
            "expectedOutput": ["refund", "19.90"],
            "must": ["refunds"],
            "skip": ["refuses", "answers by itself"],
        },
        {
            "name": "changed my mind",
            "input": "I do not want order A-102 any more, give me my money back.",
            "expectedOutput": ["refund", "12.50"],
            "skip": ["refuses", "answers by itself"],
        },
        {
            "name": "too late",
            "input": "I would like to return order A-101.",
            "expectedOutput": ["30 days", "sorry"],
            "must": ["refuses"],
            "skip": ["refunds", "answers by itself"],
        },
        {
            "name": "unknown order",
            "input": "Refund order Z-999!",
            "expectedOutput": ["Z-999"],
            "skip": ["refunds", "answers by itself"],
        },
        {
            "name": "shipping",
            "input": "Do you ship to Lake Street?",
            "expectedOutput": ["two to four days"],
            "skip": ["refunds", "refuses"],
        },
    ],
    "scorers": {
        "refunds": ran_steps(["find_order", "refund"]),
        "refuses": ran_steps(["find_order"]),
        "answers by itself": ran_steps([]),
        "says it": mentions(lambda run: run.expected_output),
        "promises nothing": avoids(["guarantee", "tomorrow"]),
        "few steps": steps_at_most(5),
        "ready to send": "Is this reply ready to be sent to the customer?",
    },
    "allow": {"ready to send": 1},
    "judge": judge_model(ready),
    "about": {"agent": "scripted"},
}

if __name__ == "__main__":
    for case in evaluate(**evaluation).cases:
        steps: Any = case.steps
        print(f"{case.name}: {' → '.join(step.get('name', step['kind']) for step in steps)}")
