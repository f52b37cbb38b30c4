"""`report.html` in a real browser: charts are drawn, and what models and authors write never runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.browser import Page, browsing, chromium
from support.made_reports import large_report, made_report
from trunchray.core.report import Report
from trunchray.pages.report.page import report_page

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium here: apt-get install chromium")

HOSTILE = """</title></script></style><img src="http://localhost:9/image" onerror="document.title='taken'">\
<script>fetch("http://localhost:9/script"); document.title = "taken"</script><svg onload="document.title='taken'">"""
DRAWN = "document.querySelectorAll('figure svg.chart').length === 2"

FITTED = (
    "[...document.querySelectorAll('figure')].every((it) => it.querySelector('svg').clientWidth === it.clientWidth)"
)


@asynccontextmanager
async def opened(page: bytes, folder: Path, until: str = DRAWN) -> AsyncGenerator[Page]:
    """A tab that shows the page."""
    file = folder / "report.html"
    file.write_bytes(page)
    async with browsing() as tab:
        await tab.open(file.as_uri(), until)
        yield tab


def hostile_report() -> Report:
    return made_report(
        {HOSTILE: {HOSTILE: "pe", "f": "pp"}, "n": {HOSTILE: "fp", "f": "ff"}},
        title=HOSTILE,
        case=lambda eval_id, number: f"{eval_id}{number}",
        failure=("tool", HOSTILE, HOSTILE),
    )


async def test_charts_are_drawn(tmp_path: Path):
    """Both charts have a mark for each model; nothing is refused, nothing fetched, and nothing sticks out."""
    async with opened(report_page(large_report(5, 3)), tmp_path) as tab:
        marks = "[...document.querySelectorAll('svg.chart')].map(chart => chart.querySelectorAll('circle').length)"
        assert await tab.value(marks) == [5, 5]
        await tab.screen(375)
        assert await tab.value("document.documentElement.scrollWidth") <= 375
        assert tab.complaints() == []
        assert tab.requested() == [(tmp_path / "report.html").as_uri()]


async def test_the_leaderboard_of_twenty_models_fits(tmp_path: Path):
    """Nobody has to scroll sideways on a usual screen to see what models cost and how quick they are."""
    async with opened(report_page(large_report(20, 3)), tmp_path) as tab:
        await tab.screen(1400)
        width = "document.querySelector('#leaderboard .frame').{}Width"
        assert await tab.value(width.format("scroll")) == await tab.value(width.format("client"))


@pytest.mark.parametrize("costs", [(2e-6, 1.2e-5), (2e-6, 1e-4), (1e-6, 1e-2), (1e-12, 10), (0, 0)])
async def test_labels_of_an_axis_do_not_touch(costs: tuple[float, float], tmp_path: Path):
    """On a phone as on a desk, however far costs are apart; a logarithmic axis says what it is."""
    report = made_report({"a": {"e": "ppf"}, "b": {"e": "ppp"}}, cost=dict(zip("ab", costs, strict=True)).__getitem__)
    async with opened(report_page(report), tmp_path) as tab:
        for width in (375, 1440):
            await tab.screen(width)
            await tab.until(f"innerWidth === {width} && {FITTED}")
            gaps = await tab.value(
                """[...document.querySelectorAll('svg.chart')].flatMap((chart) => {
                    const labels = [...chart.querySelectorAll('[aria-label="x-axis tick label"] text')];
                    const ticks = chart.querySelectorAll('[aria-label="x-axis tick"] path');
                    if (labels.length !== ticks.length) throw new Error("a tick has no label");
                    const boxes = labels.map((label) => label.getBoundingClientRect());
                    return boxes.slice(1).map((box, before) => box.left - boxes[before].right);
                })"""
            )
            assert gaps
            assert min(gaps) > 2
            label = "document.querySelector('[aria-label=\"x-axis label\"]').textContent"
            assert ("logarithmic" in await tab.value(label)) == (costs[1] > 20 * costs[0])


async def test_tables_can_be_sorted(tmp_path: Path):
    """A heading sorts by its column, the other way the second time; what has no figure stays last."""
    report = made_report({"a": {"e": "ppf"}, "b": {"e": "ppp"}, "c": {"e": "eee"}}, cost=lambda name: float(name < "b"))
    async with opened(report_page(report), tmp_path) as tab:
        names = "[...document.querySelectorAll('#leaderboard tbody bdi')].map(name => name.textContent).join('')"
        click = "document.querySelectorAll('#leaderboard th button')[1].click()"
        assert await tab.value(names) == "bac"
        await tab.value(click)
        assert await tab.value(names) == "bac"
        await tab.value(click)
        assert await tab.value(names) == "abc"
        assert await tab.value("document.querySelector('#leaderboard th[aria-sort]').ariaSort") == "ascending"


async def test_a_link_opens_a_case(tmp_path: Path):
    """The address of a case shows its verdicts."""
    async with opened(report_page(made_report({"a": {"e": "pp"}, "b": {"e": "ff"}})), tmp_path) as tab:
        await tab.open((tmp_path / "report.html").as_uri() + "#case-2", "document.querySelector('#case-2').open")
        assert not await tab.value("document.querySelector('#case-1').open")


async def test_hostile_text_is_shown_and_nothing_more(tmp_path: Path):
    """Whatever titles, names, ids and messages hold is text: no script of theirs runs and no request leaves."""
    async with opened(report_page(hostile_report()), tmp_path) as tab:
        await tab.value("document.querySelectorAll('details').forEach(panel => panel.open = true)")
        assert await tab.value("document.title") == HOSTILE
        assert await tab.value("document.querySelector('h1').textContent") == HOSTILE
        assert await tab.value("document.querySelectorAll('img, iframe, [onload], [onerror]').length") == 0
        assert tab.complaints() == []
        assert tab.requested() == [(tmp_path / "report.html").as_uri()]


async def test_markup_that_got_in_would_be_powerless(tmp_path: Path):
    """Were text taken for markup, the policy of the page would still let it run nothing and ask nobody."""
    page = report_page(made_report({"m": {"e": "pf"}})).replace(b"<main>", f"<main>{HOSTILE}".encode())
    async with opened(page, tmp_path) as tab:
        assert await tab.value("document.querySelectorAll('img').length") == 1
        assert await tab.value("document.title") == "Title"
        assert len(tab.complaints()) >= 3
        sent = [params for name, params in tab.events if name == "Network.responseReceived"]
        assert [each["response"]["url"] for each in sent] == [(tmp_path / "report.html").as_uri()]
