"""`report.html`: one file that says the same as `report.md`, and in which nothing but our scripts can run."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.made_reports import Outcomes, large_report, made_report
from trunchray.core.report import Report
from trunchray.pages import html
from trunchray.pages.report.page import report_page

VENDOR = Path(html.__file__).parent / "vendor"
HOSTILE = """</script><script>alert(1)</script><img src="//x/y" onerror='alert(1)'>&amp;<!--${d3}\u2028\u202e"""
ONE: dict[str, Outcomes] = {"m": {"e": "pf"}}
TWO: dict[str, Outcomes] = {"good": {"e": "ppp", "f": "ppf"}, "bad": {"e": "pff", "f": "ffe"}}


class Page(HTMLParser):
    """A page as a browser reads it: its elements, the text that people see, and what stands in scripts and styles."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.source = report_page(report).decode()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.text = ""
        self._inside = ""
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in {"script", "style"}:
            self.raw.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in {"script", "style"}:
            tag, before = self.raw[-1]
            self.raw[-1] = tag, before + data
        else:
            self.text += data + " "

    def row(self, start: str) -> str:
        """The text of the first row that starts so."""
        return next(row for row in self.rows() if row.startswith(start))

    def rows(self) -> list[str]:
        """The text of each row of tables."""
        rows = re.findall(r"<tr>(.*?)</tr>", self.source, flags=re.S)
        return [" ".join(unescape(re.sub(r"<[^>]+>", " ", row)).split()) for row in rows]

    def data(self) -> dict[str, list[dict[str, object]]]:
        """What charts are drawn from."""
        (content,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', self.source)
        return json.loads(content)


def test_the_page_tells_what_the_report_says():
    """Models best first, with counts and intervals; evals, pairs, errors and the cases they differ on."""
    page = Page(made_report(TWO))
    assert page.row("1 good").startswith("1 good 83.3% 43.6% to 97.0%")
    assert page.row("2 bad").startswith("2 bad 20.0% 3.6% to 62.4%")
    assert page.row("e 3") == "e 3 100.0% 33.3% 66.7 pp"
    assert page.row("f 3") == "f 3 66.7% 0.0% † 66.7 pp"
    assert page.row("bad − good").startswith("bad − good no -80.0 pp")
    assert page.row("provider/timeout") == "provider/timeout 1 0 1 no answer within 120 s"
    assert "2026-01-01 09:30 UTC" in page.text
    assert "1 of 2 models passed" in page.text
    assert "trunchray view RUN --case e/1" in page.text


def test_charts_have_the_figures_of_the_tables():
    """Cost per 1,000 trials, pass rate with interval and the front; latencies: all by the place in the leaderboard."""
    data = Page(made_report(TWO, cost=lambda name: 0.5 if name == "good" else 0.25)).data()
    good, bad = data["cost"]
    assert (good["place"], good["name"], good["cost"], good["front"]) == (1, "good", 500, True)
    assert (bad["place"], bad["cost"], bad["rate"], bad["front"]) == (2, 1000 * 5 * 0.25 / 6, 0.2, True)
    assert [each["name"] for each in data["latency"]] == ["good", "bad"]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (made_report(ONE), "the leaderboard is its result"),
        (made_report({"m": {"e": "pppp"}}), "nothing failed"),
        (made_report({"m": {"e": "ffff"}, "n": {"e": "ffff"}}), "models agree"),
        (made_report({"m": {"e": "eee", "f": "eee"}, "n": {"e": "e-e", "f": "eee"}}), "Too few cases"),
        (made_report({"m": {"e": "---"}}), "3 of 3 trials have not been run"),
        (made_report(ONE, cost=lambda _: None), "No model has both"),
        (made_report(ONE, cost=lambda _: 0.0), "0.00"),
        (made_report({"m": {"e": ["pf", "pp"]}}), "pass^2"),
    ],
    ids=["one model", "all passed", "none passed", "errors alone", "nothing run", "no price", "free", "attempts"],
)
def test_the_page_makes_sense_of_little(report: Report, said: str):
    """Whatever there is not has a word for it, and nowhere is a figure that is none."""
    page = Page(report)
    assert said in page.text
    assert not re.search(r"\b(NaN|None|nan|inf|null|undefined)\b", page.text + json.dumps(page.data()["cost"]))


def test_text_from_elsewhere_stays_text():
    """Markup in titles, names, ids and messages is shown, and ends neither an element nor the data."""
    outcomes: Outcomes = {HOSTILE: "pe", "f": "pp"}
    hostile = made_report(
        {HOSTILE: outcomes, "n": {HOSTILE: "fp", "f": "ff"}},
        title=HOSTILE,
        case=lambda eval_id, number: f"{eval_id}{number}",
        failure=("tool", HOSTILE, HOSTILE),
    )
    page, plain = Page(hostile), Page(made_report({"m": {"e": "pe", "f": "pp"}, "n": {"e": "fp", "f": "ff"}}))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.elements for name in attributes)
    assert page.text.count("<script>alert(1)</script>") > 10
    assert {each["name"] for each in page.data()["cost"]} == {HOSTILE, "n"}


def test_only_our_scripts_may_run():
    """The policy forbids everything, but the scripts and the style that are in the page, by what is in them."""
    page = Page(made_report(TWO))
    policy = next(attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes) or ""
    allowed = {
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for _, text in page.raw if text[0] != "{"
    }
    assert policy.startswith("default-src 'none'; script-src ")
    assert set(re.findall(r"'sha256-[^']+'", policy)) == allowed
    assert "unsafe" not in policy
    assert {tag: [each for each, _ in page.raw].count(tag) for tag in ("script", "style")} == {"script": 4, "style": 1}


def test_nothing_is_fetched():
    """No element names another file."""
    page = Page(large_report(3, 3))
    links = [attributes.get("href") for tag, attributes in page.elements if tag in {"a", "link"}]
    assert all(link and link.startswith("#") for link in links)
    assert not [tag for tag, attributes in page.elements if "src" in attributes]
    targets = {attributes.get("id") for _, attributes in page.elements}
    assert {link[1:] for link in links if link} <= targets


def test_a_large_report_stays_small():
    """Twenty models and a hundred evals take less than a megabyte, and every table is bounded."""
    page = Page(large_report(20, 100, cases=2))
    assert len(page.source.encode()) < 1_000_000
    assert sum("eval-" in row for row in page.rows()) == 100
    assert page.source.count("<details") == 20


def test_tables_can_be_read_aloud():
    """Every table has a caption and headings with a scope; every figure a caption; the page has a language."""
    page = Page(large_report(2, 2))
    names = [tag for tag, _ in page.elements]
    assert names.count("table") == names.count("caption")
    assert names.count("figure") == names.count("figcaption") == 2
    assert all(attributes.get("scope") in {"col", "row"} for tag, attributes in page.elements if tag == "th")
    assert ("html", {"lang": "en"}) in page.elements


def test_vendored_files_are_the_published_ones():
    """Each file of others has the SHA-256 that its table names, and can stand inside an element."""
    named = dict(re.findall(r"^\| `([^`]+)` \|.*`([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), flags=re.M))
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in VENDOR.glob("*.js")}
    assert named == found
    for path in VENDOR.parent.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"</script|<!--|\r", text), path
