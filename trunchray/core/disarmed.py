"""Names under which coding tools look for instructions, and names under which they do not.

A tool reads some files without being told to, also in folders below its own: in a workspace that it is to judge, that
would be the judged one's chance to speak to the judge.
"""

from __future__ import annotations

DISARMED = ".data"
"""What is added to such a name."""

_READ_BY_THEMSELVES = frozenset(
    {
        ".agents",
        ".aider.conf.yml",
        ".claude",
        ".clinerules",
        ".codex",
        ".continue",
        ".copilot",
        ".cursor",
        ".cursorrules",
        ".gemini",
        ".github",
        ".kiro",
        ".mcp.json",
        ".opencode",
        ".qwen",
        ".roo",
        ".rules",
        ".windsurf",
        ".windsurfrules",
        "agent.md",
        "agents.md",
        "agents.override.md",
        "claude.local.md",
        "claude.md",
        "copilot-instructions.md",
        "gemini.md",
        "opencode.json",
        "opencode.jsonc",
        "qwen.md",
        "skill.md",
    }
)


def disarmed(name: str) -> str:
    """The name of a file or folder as no tool looks for it: `AGENTS.md` becomes `AGENTS.md.data`."""
    return f"{name}{DISARMED}" if name.casefold() in _READ_BY_THEMSELVES else name
