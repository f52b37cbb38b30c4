"""The pages of the viewer in a real browser: what people see and do, and what hostile texts cannot do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

import pytest

from support.browser import Page, browsing, chromium
from support.made_runs import make_run
from support.releases import make_release
from trunchray.adapters.web_site import serve
from trunchray.core.trial import Failure, Result, Step, Trace
from trunchray.frontends.viewer.viewer import PAGES, Viewer

pytestmark = pytest.mark.skipif(not chromium(), reason="no Chromium")
pytest.importorskip("duckdb", reason="no DuckDB: `pip install 'trunchray[view]'`")

ATTACK = (
    "</script></pre>'\"><script>attacked=1</script><img src=x onerror='attacked=1'>"
    "<svg/onload=attacked=1><a href='javascript:attacked=1'>{{attacked=1}}\u202e\u2028"
)
"""Text that tries to run."""
LISTED = "document.querySelectorAll('#trials tbody tr').length"
SHOWN = "document.querySelectorAll('#answers article[aria-busy=false]').length"


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """Two models at 60 cases twice; wherever a stranger can write something, it is an attack."""
    here = tmp_path_factory.mktemp("view")
    release = make_release(here / "releases", 60, title=ATTACK, prompt=lambda number: f"{ATTACK} {number}")
    outcomes = {"plain": ["pf", *["pp"] * 58, "ee"], ATTACK: ["fp", *["ff"] * 59]}
    run = make_run(here / "run", release, outcomes, change=_attacked)
    scratch = here / "scratch"
    scratch.mkdir()
    with Viewer([run], scratch, private=True) as looking:
        yield looking


@pytest.fixture
async def site(viewer: Viewer) -> AsyncIterator[str]:
    async with serve(PAGES, viewer.questions, host="127.0.0.1", port=0) as address:
        yield address


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with browsing() as tab:
        yield tab


def _attacked(result: Result) -> Result:
    call = {"toolCallId": "1", "toolName": ATTACK, "arguments": json.dumps({ATTACK: ATTACK})}
    steps = (
        Step("model", ATTACK, {}, {"text": ATTACK, "toolCalls": [call]}),
        Step("tool", ATTACK, {}, {"type": "json", "value": {ATTACK: [ATTACK]}}),
    )
    trace = Trace(output=f"{ATTACK} {'long ' * 9000}", steps=steps, model=ATTACK, request_id=ATTACK)
    if result.verdict is None:
        failure = Failure(boundary="provider", type="timeout", message=ATTACK, retryable=True)
        return result.model_copy(update={"failure": failure, "trace": trace})
    verdict = result.verdict.model_copy(update={"message": ATTACK, "details": {ATTACK: ATTACK}})
    return result.model_copy(update={"verdict": verdict, "trace": trace})


async def test_hostile_texts_stay_texts(site: str, page: Page):
    """In titles, ids, prompts, answers, tool calls and results, messages and models: shown as written, never run.

    No request leaves for another place, and the page's policy has nothing to refuse.
    """
    targets = {
        f"{site}/?text={quote(ATTACK[:40])}": f"{LISTED} === 50",
        f"{site}/?model={quote(ATTACK)}": f"{LISTED} === 50",
        f"{site}/?run={quote(ATTACK)}": "!document.getElementById('problem').hidden",
        f"{site}/case?id=c0": f"{SHOWN} === 2",
        f"{site}/case?id={quote(ATTACK)}": "!document.getElementById('problem').hidden",
    }
    for url, until in targets.items():
        await page.open(url, until)
        assert await page.value("typeof attacked") == "undefined", url
        assert await page.value("document.querySelectorAll('img, svg, main script, iframe, [onerror]').length") == 0
        assert await page.value("[...document.links].filter(a => !a.href.startsWith(location.origin)).length") == 0
    await page.open(f"{site}/case?id=c0", f"{SHOWN} === 2")
    assert ATTACK in await page.value("document.querySelector('#answers pre').textContent")
    assert [url for url in page.requested() if not url.startswith(f"{site}/")] == []
    assert [text for text in page.complaints() if "400" not in text] == []


async def test_trials_are_found_filtered_and_turned_over(site: str, page: Page):
    """What is asked for stands in the URL, and going back goes back."""
    await page.open(site, f"{LISTED} === 50")
    assert await page.value("document.getElementById('total').textContent") == "240 trials"
    await page.press("n")
    await page.until("document.getElementById('page').textContent === 'Page 2 of 5'")
    await page.value("""{
        const field = document.querySelector('[name=outcome]');
        field.value = 'error';
        field.dispatchEvent(new Event('input', { bubbles: true }));
    }""")
    await page.until(f"{LISTED} === 2 && location.search === '?outcome=error'")
    await page.press("/")
    for key in "C59":
        await page.press(key)
    await page.until("location.search === '?outcome=error&text=C59'")
    await page.value("history.back()")
    await page.until("document.getElementById('page').textContent === 'Page 2 of 5'")


async def test_a_case_is_opened_read_and_left_by_the_keyboard(site: str, page: Page):
    """j and k move, Enter opens, answers stand side by side, and Escape leads back to the same list."""
    await page.open(f"{site}/?outcome=failed&sort=model&order=down", f"{LISTED} === 50")
    for key in ("j", "j", "k", "Enter"):
        await page.press(key)
    await page.until(f"location.pathname === '/case' && {SHOWN} === 2")
    first = await page.value("document.querySelector('h2').textContent")
    assert await page.value("document.getElementById('place').textContent") == "Case 1 of 60"
    await page.press("j")
    await page.until(f"document.querySelector('h2')?.textContent !== {first!r} && {SHOWN} === 2")
    await page.press("Escape")
    await page.until(f"location.pathname === '/' && {LISTED} === 50")
    assert await page.value("location.search") == "?outcome=failed&sort=model&order=down"


async def test_answers_are_chosen_and_shown_whole(site: str, page: Page):
    """The choice stands in the URL, so that it can be passed on; a long answer is whole when that is wanted."""
    await page.open(f"{site}/case?id=c0", f"{SHOWN} === 2")
    await page.value("document.querySelectorAll('#choice button')[1].click()")
    await page.until(f"{SHOWN} === 3")
    shared = await page.value("location.href")
    await page.open("about:blank")
    await page.open(shared, f"{SHOWN} === 3")
    await page.value("document.querySelector('#answers .answer button').click()")
    await page.until("document.querySelector('#answers .answer:last-child pre').textContent.length > 45000")


@pytest.mark.parametrize("width", [375, 1440])
async def test_nothing_is_wider_than_the_screen(site: str, page: Page, width: int):
    """Long words break, and tables scroll by themselves."""
    await page.screen(width)
    for path, until in (("/", f"{LISTED} === 50"), ("/case?id=c0", f"{SHOWN} === 2")):
        await page.open(site + path, until)
        assert await page.value("document.documentElement.scrollWidth") <= width
