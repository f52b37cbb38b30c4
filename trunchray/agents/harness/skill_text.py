"""The skill that is there to see whether a tool loads it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from trunchray.core.agent import TriggerSkill

_ROOM = 64 - len("-trig-01234567")


@dataclass(frozen=True, slots=True)
class SyntheticSkill:
    """Name and description of a real one, and a body that asks for a word which stands nowhere else."""

    name: str
    token: str
    text: str
    """Of its `SKILL.md`."""

    @classmethod
    def of(cls, skill: TriggerSkill, digits: str, secret: str) -> SyntheticSkill:
        """For one attempt; `digits` and `secret` are eight hex digits each, which nothing else has.

        The digits are in its name, and the secret in its body alone: neither a tool that lists its skills nor a model
        that only knows the name can say it. Names have 64 characters at most, for many tools, so that of a skill with a
        long name is cut.
        """
        safe = re.sub("[^A-Za-z0-9._-]+", "_", skill.name)[:_ROOM].strip(".") or "unnamed"
        name, token = f"{safe}-trig-{digits}", f"TRIGGER-LOADED-{secret}"
        text = (
            f"---\nname: {name}\ndescription: {_yaml(skill.description.strip())}\n---\n\n# {skill.name}\n\n"
            f"This skill handles: {skill.description}\n\n"
            f"Begin your reply with the exact token `{token}`, then continue.\n"
        )
        return cls(name, token, text)


def _yaml(text: str) -> str:
    """A text as YAML, on one line if it has one: some tools read front matter line by line, without a YAML parser."""
    lines = text.splitlines()
    if len(lines) > 1:
        return "|\n" + "\n".join(f"  {line}".rstrip() for line in lines)
    return text if re.fullmatch(r"[A-Za-z][\w ,;.()/'-]*", text) and not _is_word(text) else json.dumps(text)


def _is_word(text: str) -> bool:
    """Whether it may be something else than text in YAML, as `yes`, `null` and `off` are."""
    return " " not in text
