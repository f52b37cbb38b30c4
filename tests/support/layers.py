"""The layers of the code, lowest first; those that share a line never import each other."""

from __future__ import annotations

LAYERS = ["errors", "core", "adapters pages", "agents evaluators", "engine", "frontends", "cli"]
