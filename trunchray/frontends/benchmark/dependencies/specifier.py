"""The right-hand side of a dependency in package.json: a range, an alias, or a place that is not the registry."""

from __future__ import annotations

import re

_GIT = re.compile(r"(git[+:@]|github:|gitlab:|bitbucket:|gist:|ssh:)|[\w.-]+/[\w.-]+(#.*)?$")
_LOCAL = ("file:", "link:", "portal:")
_NAME = re.compile(r"(@[\w-][\w.~-]*/)?[\w-][\w.~-]*", re.ASCII)
_ALIAS = re.compile(r"npm:(@?[^@]+)@.*|npm:(@?[a-zA-Z][\w.~/-]*)")


def refusal(specifier: str) -> str | None:
    """Why a dependency with this specifier is not installed; None when it may be."""
    if _GIT.match(specifier):
        return (
            "comes from git, where no hash pins it; depend on a published version, or copy the code into the repository"
        )
    if specifier.startswith(("http:", "https:")):
        return "comes from a web address; depend on a published version, or copy the code into the repository"
    if specifier.startswith("jsr:"):
        return "comes from JSR, which is not supported; depend on a package of the npm registry"
    if specifier.startswith("patch:"):
        return "is patched, which is not supported; depend on a published version, or copy the code into the repository"
    if not is_package_name(alias(specifier) or "a"):
        return "names no package of the npm registry; correct it"
    return None


def is_package_name(text: str) -> bool:
    """Whether npm could have a package of this name; anything else might lead out of `node_modules`."""
    return _NAME.fullmatch(text) is not None


def alias(specifier: str) -> str | None:
    """The package that an alias such as `npm:zod@^3` stands for; None for every other specifier, also `npm:^3`."""
    found = _ALIAS.fullmatch(specifier)
    return found and (found[1] or found[2])


def local_folder(specifier: str) -> str | None:
    """The path that a `file:` dependency names, relative to its package.json; None for every other one."""
    if specifier.startswith(_LOCAL):
        return specifier.partition(":")[2]
    return specifier if specifier.startswith(("./", "../")) else None


def is_workspace(specifier: str) -> bool:
    return specifier.startswith("workspace:")


def catalog(specifier: str) -> str | None:
    """The name of the catalog that holds the range, "default" for the unnamed one; None for every other specifier."""
    if not specifier.startswith("catalog:"):
        return None
    return specifier.removeprefix("catalog:").strip() or "default"
