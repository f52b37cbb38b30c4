"""A benchmark that imports a small package, locked to old versions of it and of what that depends on."""

import json
from pathlib import Path

HASHES = {
    "has": "sha512-f2dvO0VU6Oej7RkWJGrehjbzMAjFp5/VKPp5tTpWIV4JHHZK1/BxbFRtf/siA2SWTe09caDmVtYYzWEIbBS4zw==",
    "function-bind": "sha512-yIovAzMX49sF8Yl58fSCWJ5svSLuaibPxXQJFLmBObTuCr0Mf1KiPopGM9NiFjiYBCbfaa2Fh6breQ6ANVTI0A==",
}
VERSIONS = {"has": "1.0.3", "function-bind": "1.1.1"}
MANIFEST = {"name": "x", "private": True, "dependencies": {"has": "^1.0.0"}}
EVAL = """import has from "has";
import { prompt } from "@/prompt";
export default {
  id: "a",
  cases: [{ id: "a.1", prompt, data: { owns: has({ x: 1 }, "x") } }],
  evaluate: ({ caseData }) => ({ passed: has(caseData, "owns") }),
};
"""


def package_lock() -> str:
    packages = {
        "": {"name": "x", "dependencies": {"has": "^1.0.0"}},
        "node_modules/has": {
            "version": VERSIONS["has"],
            "integrity": HASHES["has"],
            "dependencies": {"function-bind": "^1.1.1"},
        },
        "node_modules/function-bind": {
            "version": VERSIONS["function-bind"],
            "integrity": HASHES["function-bind"],
        },
    }
    return json.dumps({"name": "x", "lockfileVersion": 3, "requires": True, "packages": packages})


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def benchmark(folder: Path, **files: str) -> Path:
    """The benchmark in `folder`; `files` are by name, with `__` for the dot and `_` for the dash."""
    extra = {name.replace("__", ".").replace("_", "-"): text for name, text in files.items()}
    tsconfig = json.dumps({"compilerOptions": {"paths": {"@/*": ["./lib/*"]}}})
    base = {
        "package.json": json.dumps(MANIFEST),
        "tsconfig.json": tsconfig,
        "lib/prompt.ts": 'export const prompt = "Say yes.";',
        "evals/a.ts": EVAL,
    }
    write(folder, base | extra)
    return folder
