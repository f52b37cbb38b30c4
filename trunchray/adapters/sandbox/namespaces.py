"""Modules whose exports are used as one object, such as zod's `z`: found in esbuild's output, and made modules again.

For `import * as z from "./all.js"; export { z }`, esbuild writes an object with a getter for each export, and so keeps
all of them, whichever are used. Of modules it keeps what is used.
"""

from __future__ import annotations

import re

ENTRY = "entry.js"

_HELPER = "var __export = (target, all) => {\n"
_object = re.compile(r"^var ([\w$]+) = \{\};\n__export\(\1, \{\n((?:  .+: \(\) => [\w$]+,?\n)+)\}\);\n", re.MULTILINE)
_member = re.compile(r"  (.+): \(\) => ([\w$]+),?\n")
_alias = re.compile(r"^var ([\w$]+) = ([\w$]+);\n", re.MULTILINE)
_copy = re.compile(r"^(var [\w$]+ = )(\{(?:\s+(?:\.\.\.|[\w$]+: )[\w$]+,?)+\s\});$", re.MULTILINE)
_copied = re.compile(r"(?:\.\.\.|: )([\w$]+)")
_extended = re.compile(r"__reExport\(([\w$]+)")
_exports = re.compile(r"^export \{\n((?:  .+\n)+)\};\n\Z", re.MULTILINE)


def as_modules(bundle: str) -> dict[str, str]:
    """Modules, by the names of their files, of which `ENTRY` does and exports what `bundle` does.

    `bundle` is what esbuild made of an entry, as ESM and not minified. {} when it has no such objects.
    """
    objects = _objects(bundle)
    exports = _exports.search(bundle)
    if not objects or exports is None:
        return {}
    files = {name: f"namespace{number}.js" for number, name in enumerate(objects)}
    code = _object.sub(lambda found: "" if found[1] in objects else found[0], bundle[: exports.start()])
    code = _alias.sub(lambda found: _import(found[1], files[found[2]]) if found[2] in files else found[0], code)
    code = _copy.sub(lambda found: _pure(found) if files.keys() >= {*_copied.findall(found[2])} else found[0], code)
    own = [name.strip().rstrip(",") for name in exports[1].splitlines()]
    shared = {local for members in objects.values() for _, local in members} | {name.split(" as ")[0] for name in own}
    imports = "".join(_import(name, file) for name, file in files.items())
    modules = {file: _export([f"{local} as {name}" for name, local in objects[of]]) for of, file in files.items()}
    return {**modules, "bundle.js": f"{imports}{code}export {{ {', '.join(sorted(shared))} }};\n", ENTRY: _export(own)}


def _objects(bundle: str) -> dict[str, list[tuple[str, str]]]:
    """What each object holds: names and the variables behind them."""
    if _HELPER not in bundle:
        return {}
    extended = {*_extended.findall(bundle)}  # they also get what a CommonJS module holds when it runs
    return {found[1]: _member.findall(found[2]) for found in _object.finditer(bundle) if found[1] not in extended}


def _import(name: str, file: str) -> str:
    return f'import * as {name} from "./{file}";\n'


def _export(names: list[str]) -> str:
    return f'export {{ {", ".join(names)} }} from "./bundle.js";\n'


def _pure(found: re.Match[str]) -> str:
    """A copy of such objects, marked as one that may be left out: what they hold can be read without any effect."""
    return f"{found[1]}/* @__PURE__ */ (() => ({found[2]}))();"
