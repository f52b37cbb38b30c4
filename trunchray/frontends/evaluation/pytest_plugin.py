"""pytest runs Python evaluations as tests when it is asked to: `pytest --trunchray-evals`.

This module is imported by every pytest of an environment that has trunchray, so it imports nothing else until then.
"""

from __future__ import annotations

import pytest

DEFAULT = "evals/*.py"
OPTION = "--trunchray-evals"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("trunchray").addoption(
        OPTION,
        action="append",
        nargs="?",
        const=DEFAULT,
        metavar="FILES",
        help="Also run the Python evaluations in these files, one test for each check. FILES is a file, a folder or a "
        f"pattern, {DEFAULT} when left out; names that begin with _ are passed over. Can be repeated.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if patterns := config.getoption(OPTION):
        from trunchray.frontends.evaluation.pytest_files import EvalFiles  # noqa: PLC0415 - only when it is asked for

        files = EvalFiles.found(config, patterns)
        files.add_to(config)
        config.pluginmanager.register(files, "trunchray-evals")
