"""The page in Chromium: what it shows, keys, and that no other host is asked for anything."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from squallpy.live.live_session import LiveSession
from squallpy.runtime.observers.report import BatchReport, JoinReport
from tests.web.conftest import SCRIPT, Site

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright drives the browser: pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TABS = ("overview", "plan", "triggers", "views", "joins", "events", "settings")
WAIT = 30_000  # milliseconds
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")


@pytest.fixture
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page that is looked at, with what went wrong and the hosts that were asked."""

    def __init__(self, browser: Any, url: str, scheme: str, width: int) -> None:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
        self.page, self.wrong, self.hosts = context.new_page(), list[str](), set[str]()
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.wrong.append(said.text))
        self.page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        self.page.set_default_timeout(WAIT)
        self.page.goto(url)

    def shows(self, selector: str, text: str) -> None:
        playwright.expect(self.page.locator(selector).filter(has_text=text).first).to_be_visible(timeout=WAIT)


def batches(site: Site) -> int:
    session = site.session._session
    assert isinstance(session, LiveSession)
    return session.program.batches - 1


def test_the_page_shows_a_session_light_dark_and_narrow(site: Site, browser: Any, tmp_path: Path) -> None:
    rows = [(n, SCRIPT if n == 7 else f"name {n:03}", f"{n}.50") for n in range(120)]
    site.step(*rows)
    report_joins_of_several_partitions(site)
    shots, papers = dict[str, bytes](), dict[str, str]()
    for scheme, width in (("light", 1200), ("dark", 1200), ("light", 380)):
        visit = Visit(browser, site.url, scheme, width)
        visit.shows("#batch", str(batches(site)))
        site.step((500 + width, "later", "1"))
        visit.shows("#batch", str(batches(site)))  # NB: by itself
        for number, tab in enumerate(TABS, 1):
            visit.page.keyboard.press(str(number))
            visit.shows(f"#tab-{tab}[aria-selected=true]", "")
            assert visit.page.locator("section:visible").count() == 1
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, f"{tab} is too wide"
            shots[f"{tab}-{scheme}-{width}"] = visit.page.screenshot(path=tmp_path / f"{tab}-{scheme}-{width}.png")
        papers[f"{scheme} {width}"] = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        if scheme == "light":
            look(visit)
        assert not visit.wrong
        assert visit.hosts == {urlsplit(site.url).netloc}
        visit.page.context.close()
    visit = Visit(browser, site.url, "light", 1200)
    visit.shows("#state", "up to date")
    site.session.close()
    visit.shows("#state", "ended")
    assert papers["light 1200"] == papers["light 380"] != papers["dark 1200"]
    assert len(set(shots.values())) == len(shots)


def report_joins_of_several_partitions(site: Site) -> None:
    """Let the page be told what there is only on Spark, and of a row that could not be read."""
    assert site.session._page and site.session._page._page
    monitored: Any = site.session._page._page.monitored
    mappings = ([2, 2], [4, 1])
    for epoch, mapping in enumerate(mappings):
        join = JoinReport(mapping, ilf=8338.25, ilf_ratio=1.0, busiest=1.5, epoch=epoch)
        received = {"0": {"0": 10, "1": 90, "2": 11, "3": 12}}
        letters = {"items": [json.dumps({"line": epoch, "reason": SCRIPT})]}
        report = BatchReport(batches(site), skipped=1, join=join, received=received, dead_letters=letters)
        monitored.recorder.on_query_progress(report)


def look(visit: Visit) -> None:
    """Go through the page by keys."""
    page = visit.page
    page.keyboard.press("2")
    visit.shows("#picture .node.stream", "items")
    page.locator("#picture .node.result").filter(has_text="rev").focus()
    page.keyboard.press("Enter")
    visit.shows("#node", "rev result")
    visit.shows("#node .cost", "O(1)")
    page.locator("#plan-of").select_option(label="rev")
    visit.shows("#picture .node.result", "rev")
    assert page.locator("#picture .node.result").count() == 1
    page.locator("#plan h2").click()
    page.keyboard.press("3")
    visit.shows("#program .trigger h3", "on ΔITEMS")
    visit.shows("#program .sum sub", "who")
    page.keyboard.press("5")
    visit.shows("#join-body h3", "mapping (4, 1)")
    visit.shows("#join-body .bars p", "180 · hot")
    visit.shows("#join-body td", "(2, 2)")
    page.keyboard.press("6")
    visit.shows("#left-rows code", SCRIPT)
    visit.shows("#event-rows tr.warning td", "left out")
    page.keyboard.press("/")
    page.keyboard.type("ALERT")
    visit.shows("#view-about", "1 of")
    visit.shows("#rows td", SCRIPT)
    page.keyboard.press("Escape")
    visit.shows("#view-about", "as of batch")
    visit.shows("#range", "1–50")
    page.keyboard.press("n")
    visit.shows("#range", "51–100")
    page.locator("#rows th button").filter(has_text="total").click()
    page.locator("#rows th button").filter(has_text="total").click()
    visit.shows("#rows tr:first-child td", "name 119")
    page.keyboard.press("j")
    visit.shows("#view-name", SCRIPT)
    visit.shows("#rows th", "<b>id</b>")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.keyboard.press("?")
    visit.shows("#keys", "dark or light")
    page.keyboard.press("Escape")
    assert page.locator("#keys").is_hidden()
