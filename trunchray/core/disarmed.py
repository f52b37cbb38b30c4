"""Names under which coding tools look for instructions, and names under which they do not.

A tool reads some files without being told to, in the folders above its own and below it as well: in a workspace that it
is to judge, that would be the judged one's chance to speak to the judge.
"""

from __future__ import annotations

DISARMED = ".data"
"""What is added to such a name."""

INSTRUCTIONS = (
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".augment",
    ".augment-guidelines",
    ".claude",
    ".clinerules",
    ".codex",
    ".continue",
    ".continuerules",
    ".copilot",
    ".crush.json",
    ".cursor",
    ".cursorrules",
    ".factory",
    ".gemini",
    ".github",
    ".goosehints",
    ".junie",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".qwen",
    ".roo",
    ".roorules",
    ".rules",
    ".trae",
    ".windsurf",
    ".windsurfrules",
    "AGENT.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "CRUSH.local.md",
    "CRUSH.md",
    "GEMINI.md",
    "QWEN.md",
    "SKILL.md",
    "WARP.md",
    "copilot-instructions.md",
    "crush.json",
    "opencode.json",
    "opencode.jsonc",
)
"""Files and folders that tools read by themselves, as they are usually written; such a list never has all."""
_FOLDED = frozenset(name.casefold() for name in INSTRUCTIONS)


def instructs(name: str) -> bool:
    """Whether there are tools that take what has this name for instructions, in whatever letters."""
    return name.casefold() in _FOLDED


def disarmed(name: str) -> str:
    """The name of a file or folder as no tool looks for it: `AGENTS.md` becomes `AGENTS.md.data`.

    All that is hidden gets such a name: tools that nobody here knows of have their instructions there.
    """
    return f"{name}{DISARMED}" if instructs(name) or name.startswith(".") else name
