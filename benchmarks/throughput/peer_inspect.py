"""The same trials in Inspect AI: run by `peers.py` in an environment that has it.

    peer_inspect.py CASES BASE_URL PERMITS LOGS [--quiet]

CASES is JSON Lines of `id`, `system` and `prompt`. Prints what it took as JSON. `--quiet`: without the database of
events that Inspect keeps beside its log while it runs, for those who look on.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from measure import Exertion


def main() -> None:
    cases, base_url, permits, logs, *flags = sys.argv[1:]
    samples = [
        Sample(
            id=case["id"],
            input=[ChatMessageSystem(content=case["system"]), ChatMessageUser(content=case["prompt"])],
            target="42",
        )
        for case in map(json.loads, Path(cases).read_text(encoding="utf-8").splitlines())
    ]
    config = GenerateConfig(max_connections=int(permits), max_tokens=4096)
    # Chat completions, which is what the server speaks.
    model = get_model("openai/fixed", base_url=base_url, api_key="not-a-key", responses_api=False, config=config)
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
    exertion = Exertion()
    (log,) = evaluate(
        task,
        model=model,
        log_dir=logs,
        display="none",
        max_samples=int(permits),
        log_realtime=False if flags else None,
    )
    assert log.status == "success", log.error
    assert log.results
    passed = round(log.results.scores[0].metrics["accuracy"].value * log.results.completed_samples)
    print(json.dumps(asdict(exertion.done(passed, logs))))


if __name__ == "__main__":
    main()
