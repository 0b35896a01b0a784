"""The status page in a browser: Chromium without a window, against a server whose engine is scripted."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from snapshots import HOSTILE, NOW, Scripted, busy, ended, hostile, idle, many, open_jobs, parts

from cuzk.config import Settings
from cuzk.engine.snapshot import Snapshot
from cuzk.server.web_server import WebServer, serve_web

pytestmark = pytest.mark.browser
T = TypeVar("T")
WIDE, PHONE = (1280, 900), (360, 740)


def program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None and os.environ.get("CUZK_REQUIRE_BROWSER"):
        pytest.fail(f"{names[0]} is not installed: apt install chromium chromium-driver")
    if found is None:
        pytest.skip(f"{names[0]} is not installed: apt install chromium chromium-driver")
    return found


class Served:
    """A server on an event loop of its own, whose engine shows what a test says; it can go and come back."""

    def __init__(self) -> None:
        self.engine = Scripted(busy())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._web: WebServer | None = None
        self.security: dict[str, Any] = {}
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        daemon = {"status_listen": self.address}
        settings = Settings.model_validate({"daemon": daemon, "security": self.security})
        self._web = self._run(serve_web(self.engine, settings))
        self.address = self._web.address

    def stop(self) -> None:
        if self._web:
            self._run(self._web.close())
        self._web = None

    def show(self, moment: Snapshot) -> None:
        self.engine.moment = moment

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)


class Page:
    """The page as a person meets it."""

    def __init__(self, driver: webdriver.Chrome, served: Served) -> None:
        self.driver, self.served = driver, served

    def open(self, moment: Snapshot, size: tuple[int, int] = WIDE, *, dark: bool = False) -> None:
        self.served.show(moment)
        metrics = {
            "width": size[0],
            "height": size[1],
            "deviceScaleFactor": 1,
            "mobile": size == PHONE,
        }
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(f"http://{self.served.address}/")
        self.until(lambda: self.text("#health") not in ("", "connecting"))

    def until(self, held: Callable[[], T], seconds: float = 120) -> T:
        return WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: held())

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def text(self, selector: str) -> str:
        found: str = self.run(f"return document.querySelector({selector!r})?.innerText ?? ''")
        return found

    def texts(self, selector: str) -> list[str]:
        script = f"return [...document.querySelectorAll({selector!r})].map(n => n.innerText)"
        found: list[str] = self.run(script)
        return found

    def count(self, selector: str) -> int:
        return len(self.texts(selector))

    def complaints(self) -> list[str]:
        logged = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in logged]


@pytest.fixture(scope="module")
def driver() -> Iterator[webdriver.Chrome]:
    chromium, chromedriver = program("chromium", "chromium-browser"), program("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(chromedriver))
    try:
        yield found
    finally:
        found.quit()


@pytest.fixture
def page(driver: webdriver.Chrome) -> Iterator[Page]:
    served = Served()
    driver.get("about:blank")
    driver.get_log("browser")  # type: ignore[no-untyped-call]
    try:
        yield Page(driver, served)
    finally:
        driver.get("about:blank")  # its connections end
        served.close()


def test_it_loads_without_a_complaint_and_from_nowhere_else(page: Page) -> None:
    page.open(busy())
    page.until(lambda: page.count("#rows tr") == 25)
    assert page.texts("#tiles dd")[:2] == ["88", "7 of 1,000"]
    asked = page.run("return performance.getEntriesByType('resource').map(e => e.name)")
    assert asked
    assert {url.split("/")[2] for url in asked if not url.startswith("data:")} == {
        page.served.address
    }
    assert page.complaints() == []
    assert "critical 0.1 s (1.4 s) · high 6.1 s (39 s) · normal 24 s (6 min 52)" in page.text(
        "#waits"
    )
    for heading in (
        "Queue",
        "Failures",
        "Devices",
        "Throughput",
        "Memory budget",
        "Keys",
        "Timeline",
    ):
        assert heading in page.texts("h2")


def test_a_running_job_moves_on_before_ones_eyes(page: Page) -> None:
    job = replace(open_jobs(NOW)[2], partitions=parts(10, 2, {2: "cuda:0"}, NOW))
    page.open(replace(busy(), jobs=(job,)))
    page.until(lambda: page.text("#rows .c-parts") == "2/10")
    assert (page.count("#rows i.done"), page.count("#rows i.proving")) == (2, 1)
    page.run("document.querySelector('#rows .id').focus()")
    page.served.show(
        replace(busy(), jobs=(replace(job, partitions=parts(10, 9, {9: "cuda:1"}, NOW)),))
    )
    page.until(lambda: page.text("#rows .c-parts") == "9/10")
    assert (page.count("#rows i.done"), page.count("#rows i.proving")) == (9, 1)
    said = page.run("return document.querySelector('#rows .cells').getAttribute('aria-label')")
    assert said == "9 of 10 proved, 1 in work"
    assert page.run("return document.activeElement.className") == "id"  # the row was kept
    over = replace(job, state="done", ended=NOW, partitions=parts(10, 10, {}, NOW))
    page.served.show(replace(busy(), jobs=(over,)))
    page.until(lambda: "done" in page.text("#rows .c-state"))


def test_a_job_tells_its_times_when_it_is_opened(page: Page) -> None:
    page.open(busy())
    page.until(lambda: page.count("#rows .id") == 25)
    button = page.driver.find_elements(By.CSS_SELECTOR, "#rows .id")[2]
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert len(page.texts("#rows .detail .parts li")) == 8
    assert "0 done on cuda:0 41 s" in " ".join(page.texts("#rows .detail .parts li")[0].split())
    assert "10.20.0.7" in page.text("#rows .detail")
    button.click()
    assert page.count("#rows .detail") == 0


def test_a_partition_that_is_staged_has_no_time_of_its_own(page: Page) -> None:
    begun = parts(10, 2, {2: "cuda:0"}, NOW)
    staged = replace(begun[3], state="staged")
    job = replace(open_jobs(NOW)[2], partitions=(*begun[:3], staged, *begun[4:]))
    page.open(replace(busy(), jobs=(job,)))
    page.until(lambda: page.count("#rows i.staged") == 1)
    page.driver.find_elements(By.CSS_SELECTOR, "#rows .id")[0].click()
    assert page.texts("#rows .detail .parts li")[3].split() == ["◪", "3", "staged"]


def test_a_failure_shows_its_reason_and_when(page: Page) -> None:
    page.open(idle())
    page.until(lambda: page.text("#failures") == "Nothing has failed.")
    failed = ended(70, "failed", 75, NOW, "unsatisfied", "constraint 7 is not satisfied")
    page.served.show(replace(idle(), jobs=(failed,)))
    page.until(lambda: "constraint 7 is not satisfied" in page.text("#failures"))
    shown = page.text("#failures")
    assert "unsatisfied" in shown
    assert "porep-1000-5170" in shown
    age = re.search(r"(\d+) min (\d+)", shown)
    assert age, shown
    assert 60 * int(age[1]) + int(age[2]) >= 75  # ago, and on


def test_hostile_names_are_text_and_nothing_else(page: Page) -> None:
    page.open(hostile())
    page.until(lambda: page.count("#rows tr") == 2)
    before = page.run("return document.querySelectorAll('script').length")
    assert before == 1
    visible = HOSTILE.replace("\n", "\\n").replace("\u202e", "\\u202e").replace("\0", "\\u0000")
    for selector in ("#rows .id", "#failures", "#devices", "#memory", "#keys"):
        assert visible in page.text(selector), selector
    assert visible in page.run("return document.querySelector('#rows .id').title")
    assert "\u202e" not in page.run("return document.documentElement.outerHTML")
    page.driver.find_element(By.CSS_SELECTOR, "#rows .id").click()
    assert visible in page.text("#rows .detail")
    assert page.complaints() == []  # nothing was blocked either: nothing was tried


def test_a_thousand_jobs_stay_quick(page: Page) -> None:
    page.open(many(1000))
    page.until(lambda: page.text("#page") == "1–25 of 1,000")
    page.driver.find_element(By.ID, "next").click()
    page.until(lambda: page.text("#page") == "26–50 of 1,000")
    assert page.texts("#rows .id")[0] == "porep-1000-5225"
    times = page.run(
        "const s = await (await fetch('status?jobs=1000&spans=2000')).json(), times = [];"
        "s.spans_asked = true; clearTimeout(timer); flying = null; last = s; answered = performance.now();"
        "for (let i = 0; i < 4; i++) { rows.clear(); $('rows').replaceChildren();"
        " const start = performance.now(); render(s); document.body.offsetHeight; times.push(performance.now() - start); }"
        "const start = performance.now(); render(s); document.body.offsetHeight;"
        "return [...times, performance.now() - start]"
    )
    assert page.count("#rows .id") == 1000
    assert min(times[:4]) < 1000, (
        times
    )  # 260 ms on an idle machine, of them 210 the browser's layout
    assert times[4] < 500, times  # 10 ms: what stays is not made again
    page.run("scrollTo(0, 20000)")
    assert page.until(lambda: page.run("return scrollY")) == 20000
    at_top = page.run("return document.elementFromPoint(200, 300).closest('#rows') !== null")
    assert at_top


def test_jobs_are_found_by_text_and_by_state(page: Page) -> None:
    page.open(many(1000))
    page.until(lambda: page.count("#rows .id") == 25)
    field = page.driver.find_element(By.ID, "text")
    field.send_keys("1000-5999")
    page.until(lambda: page.texts("#rows .id") == ["porep-1000-5999"])
    field.send_keys("x")
    page.until(lambda: page.text("#jobs-empty") == "No job matches the filter.")
    field.clear()
    field.send_keys(Keys.SPACE, Keys.BACKSPACE)  # clear() alone is no input
    Select(page.driver.find_element(By.ID, "state")).select_by_value("proving")
    page.until(lambda: page.count("#rows .id") == 4)


def test_nothing_to_do_is_said_in_words(page: Page) -> None:
    page.open(idle())
    page.until(lambda: page.text("#jobs-empty") == "Nothing is queued.")
    assert page.text("#rate") == "No proof in the last hour."
    assert page.text("#time-sum") == "Nothing was proved in this time."
    assert page.text("#keys") == "No circuit is configured."
    assert "idle" in page.text("#devices")
    assert page.complaints() == []


def test_draining_is_announced(page: Page) -> None:
    moment = replace(busy(), keys=())
    page.open(moment)
    assert page.text("#health") == "● serving"
    assert not page.driver.find_element(By.ID, "banner").is_displayed()
    page.served.show(replace(moment, draining=True))
    page.until(lambda: page.text("#banner").startswith("Draining: it finishes what it has"))
    assert page.text("#health") == "◑ draining"
    assert page.run("return document.getElementById('banner').getAttribute('role')") == "status"


def test_what_keeps_proofs_from_being_made_is_said_first(page: Page) -> None:
    """Before anything else, in the window's name too: who looks at night need not look for it."""
    away = [replace(key, tier="not ready", fault="gone") for key in busy().keys]
    moment = replace(busy(), keys=(), queue_limit=100)
    page.open(moment)
    assert page.run("return document.title") == "12 · cuzk"
    down = replace(moment.workers[1], alive=False, fault="its process died (signal 9)")
    page.served.show(replace(moment, workers=(moment.workers[0], down)))
    page.until(lambda: page.text("#banner") == "✕ cuda:1 is down")
    assert page.run("return document.title") == "▲ 12 · cuzk"
    page.served.show(replace(moment, keys=(away[0], *busy().keys[1:2])))
    page.until(lambda: page.text("#banner") == f"✕ not ready: {away[0].circuit}")
    page.served.show(replace(moment, keys=tuple(away), queue_limit=15, draining=True))
    page.until(lambda: page.text("#banner").endswith("are taken: 12 of 15"))
    assert "takes nothing more. ✕ not ready: " in page.text("#banner")
    assert ", … · ▲ nearly as many jobs" in page.text("#banner")
    page.served.show(moment)
    page.until(lambda: not page.driver.find_element(By.ID, "banner").is_displayed())
    assert page.run("return document.title") == "12 · cuzk"


def test_a_daemon_that_goes_and_comes_back(page: Page) -> None:
    page.open(busy())
    page.until(lambda: page.count("#rows .id") == 25)
    page.served.stop()
    page.until(lambda: page.text("#banner").startswith("No answer since "))
    assert page.text("#health") == "✕ no answer"
    assert page.count("#rows .id") == 25  # what was known stays
    page.served.show(replace(idle(), version="0.6.1"))  # a new one
    page.served.start()
    page.until(lambda: page.text("#health") == "● serving")
    page.until(lambda: page.text("#version") == "v0.6.1" and page.count("#rows .id") == 0)
    assert not page.driver.find_element(By.ID, "banner").is_displayed()


def test_a_token_is_taken_by_a_browser(page: Page, tmp_path: Path) -> None:
    page.served.stop()
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    page.served.security = {"token_file": token}
    page.served.start()
    page.driver.get(f"http://anybody:0123456789abcdef@{page.served.address}/")
    page.until(lambda: page.text("#health") == "● serving")
    page.until(lambda: page.count("#rows .id") == 25)


def brightness(page: Page, selector: str, what: str) -> float:
    color: str = page.run(f"return getComputedStyle(document.querySelector({selector!r})).{what}")
    numbers = [float(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [n / 255 / 12.92 if n <= 10 else ((n / 255 + 0.055) / 1.055) ** 2.4 for n in numbers]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_light_or_dark_and_its_text_can_be_read(page: Page, dark: bool) -> None:
    page.open(busy(), dark=dark)
    page.until(lambda: page.count("#rows .id") == 25)
    ground = brightness(page, "section", "backgroundColor")
    assert (ground < 0.1) == dark
    for selector in ("h2", ".muted", ".bad", ".good", ".accent", ".warn", "th", ".sub"):
        ink = brightness(page, f"main {selector}", "color")
        contrast = (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05)
        assert contrast >= 4.5, (selector, contrast)  # WCAG 2.2, AA
    button = page.driver.find_element(By.ID, "theme")
    assert button.text == "Theme: system"
    for expected in ("light", "dark"):
        button.click()
        assert button.text == f"Theme: {expected}"
        assert (brightness(page, "section", "backgroundColor") < 0.1) == (expected == "dark")
    page.driver.refresh()  # it is remembered
    assert brightness(page, "section", "backgroundColor") < 0.1
    page.driver.find_element(By.ID, "theme").click()


@pytest.mark.parametrize("moment", [busy, idle, hostile], ids=lambda made: made.__name__)
def test_a_phone_never_scrolls_sideways(page: Page, moment: Callable[[], Snapshot]) -> None:
    page.open(moment(), PHONE)
    page.until(lambda: page.count("#rows .id") == min(10, len(moment().jobs)))
    for button in page.driver.find_elements(By.CSS_SELECTOR, "#rows .id")[:3]:
        page.run("document.querySelectorAll('#rows .id')[0].scrollIntoView({block: 'center'})")
        page.driver.execute_script("arguments[0].click()", button)
    wide = page.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide == [360, 360]


def test_the_keyboard_reaches_everything(page: Page) -> None:
    page.open(busy())
    page.until(lambda: page.count("#rows .id") == 25)
    seen = []
    for _ in range(40):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        name = page.run(
            "const a = document.activeElement; return a.id || a.className || a.textContent"
        )
        outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", name
        seen.append(name)
        if name == "lanes":
            break
    assert seen[:5] == ["skip", "theme", "text", "state", "size"]
    assert seen.count("id") == 25
    assert seen[-3:] == ["next", "window", "lanes"]  # previous has nothing to go to
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    page.until(lambda: " · " in page.text("#told"))
    told = page.text("#told")
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_UP)
    page.until(lambda: page.text("#told") not in ("", told))


def test_the_timeline_tells_what_is_under_the_pointer(page: Page) -> None:
    page.open(busy(time.time()))
    box = page.until(
        lambda: page.run("return line.boxes.find(b => b.span.name === 'msm h') ?? null")
    )
    page.run(
        "const b = line.boxes.find(b => b.span.name === 'msm h'), r = document.getElementById('lanes').getBoundingClientRect();"
        "document.getElementById('lanes').dispatchEvent(new PointerEvent('pointermove',"
        "{clientX: r.left + (b.left + b.right) / 2, clientY: r.top + (b.top + b.bottom) / 2}))"
    )
    told = page.text("#told")
    assert told.startswith("msm h · 4.6 s · ")
    assert box["span"]["job"] in told
    assert "cuda:0 compute" in told
