"""A workflow of three steps, from a customer's letter to an order confirmation: its result, and the steps to it.

The steps are plain functions, so that this runs offline; in `invoke_step` you would ask a language model.

    python examples/workflow.py
    trunchray eval run examples/workflow.py
"""

from __future__ import annotations

import re
from typing import Any

from trunchray import RunRecord, evaluate, fits_schema, matches, ran_steps, under, workflow

PRICES = {"kettle": 39.0, "cup": 6.5, "filter": 2.25}


def read(letter: str) -> dict[str, int]:
    """What is ordered, and how many of each."""
    found = re.findall(r"(\d+) (\w+?)s?\b", letter.lower())
    return {item: int(count) for count, item in found if item in PRICES}


def price(items: dict[str, int]) -> dict[str, Any]:
    """The order with its total; five per cent off from ten pieces."""
    if not items:
        raise ValueError("nothing is ordered")
    total = sum(PRICES[item] * count for item, count in items.items())
    off = 0.95 if sum(items.values()) >= 10 else 1
    return {"items": items, "total": round(total * off, 2)}


def confirm(order: dict[str, Any]) -> str:
    """What the customer is told."""
    listed = ", ".join(f"{count} × {item}" for item, count in order["items"].items())
    return f"We have received your order: {listed}. It comes to {order['total']:.2f} €."


def invoke_step(step: Any, payload: Any) -> Any:
    """Run one step."""
    return step(payload)


def result(run: Any) -> dict[str, Any]:
    """What is checked: the priced order, and the text."""
    return {**run.outputs["price"], "text": run.outputs["confirm"]}


def says_the_total(run: RunRecord) -> dict[str, Any]:
    """A check of your own: the text names the total that was computed."""
    total = f"{run.output['total']:.2f} €"
    return {"pass": total in run.output["text"], "explanation": f"expected {total} in the text"}


evaluation: dict[str, Any] = {
    "name": "order-confirmation",
    "task": workflow({"read": read, "price": price, "confirm": confirm}, invoke_step, output=result),
    "data": [
        {"name": "one kettle", "input": "Please send me 1 kettle.", "expectedOutput": {"total": 39.0}},
        {"name": "two things", "input": "I need 2 cups and 4 filters.", "expectedOutput": {"total": 22.0}},
        {"name": "discount", "input": "Send 10 cups, please.", "expectedOutput": {"total": 61.75}},
        {"name": "in words", "input": "Two cups, please.", "expectedOutput": {"total": 13.0}},
    ],
    "scorers": {
        "total": matches("total"),
        "text": says_the_total,
        "shape": fits_schema({"type": "object", "required": ["items", "total", "text"]}),
        "way": ran_steps(["read", "price", "confirm"]),
        "fast": under(ms=5_000),
    },
    # Numbers in words are not understood: that run fails, and with it every check of its case.
    "allow": {"total": 1, "text": 1, "shape": 1, "way": 1, "fast": 1},
}

if __name__ == "__main__":
    print(evaluate(**evaluation).markdown())
