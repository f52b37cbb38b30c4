"""A gate's findings as JUnit XML, which continuous integration shows as tests: one limit is one test."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from trunchray.core.verdicts import Finding, GateReport

NAMED = 100
"""Cases that a test names."""

# What XML 1.0 has no way to write.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: GateReport) -> bytes:
    """The whole file: a suite for each model.

    A limit that is broken is a failure, one that stays open an error, and one of these that does not keep the gate shut
    is skipped, with the reason.
    """
    root = Element("testsuites", name=_text(f"trunchray gate {report.run}"))
    for model in dict.fromkeys(finding.model for finding in report.findings):
        mine = [finding for finding in report.findings if finding.model == model]
        kinds = [_kind(finding) for finding in mine]
        suite = SubElement(
            root,
            "testsuite",
            name=_text(model),
            tests=str(len(mine)),
            failures=str(kinds.count("failure")),
            errors=str(kinds.count("error")),
            skipped=str(kinds.count("skipped")),
        )
        for finding, kind in zip(mine, kinds, strict=True):
            _add(suite, finding, kind, report.run)
    indent(root)
    return tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _kind(finding: Finding) -> str | None:
    if finding.verdict == "PASS":
        return None
    if not finding.blocks:
        return "skipped"
    return "failure" if finding.verdict == "FAIL" else "error"


def _add(suite: Element, finding: Finding, kind: str | None, run: str) -> None:
    name = f"{finding.scope}: {finding.limit} ({finding.tier})"
    test = SubElement(suite, "testcase", classname=_text(f"{run}.{finding.model}"), name=_text(name))
    if kind is None:
        SubElement(test, "system-out").text = _text(finding.message)
        return
    found = SubElement(test, kind, message=_text(f"{finding.verdict}: {finding.message}"))
    if kind != "skipped":
        found.set("type", finding.verdict)
    cases = finding.cases
    more = [f"… and {cases.count - NAMED:,} more"] if cases.count > NAMED else []
    found.text = _text("\n".join([finding.message, *cases.cases[:NAMED], *more]))


def _text(value: str) -> str:
    return _UNWRITABLE.sub("\ufffd", value)
