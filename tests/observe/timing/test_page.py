"""The timeline page in a real browser: it is looked at as a person does, with pointer and keys."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from examples import flash_attention as attention
from pto.observe import timing
from pto.observe.timing import Timing
from pto.observe.timing.axis import axis, drawn
from pto.observe.timing.trace import chrome
from tests.observe.timing.page_helper import doubled

Vector = pto.Global[pto.f32, "n"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
DRIVER = shutil.which("chromedriver") or ""
selenium = pytest.importorskip("selenium", reason="the page is tested with selenium, not installed")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium and chromedriver: the page was NOT tested"
)


@pytest.fixture(scope="module")
def timed() -> Timing:
    """Flash attention, both sides of a core."""
    rows, blocks = 512, 512 // attention.ROWS
    tall, wide = (rows, attention.DEPTH), (attention.DEPTH, rows)
    room = (blocks * 2 * attention.SLOTS * attention.SLOT // 4,)
    launch = attention.flash_attention[blocks]
    return launch.time(tall, wide, tall, tall, room, False, device="950pr")


@pto.kernel(profile="a2a3")
def copies(x: Vector, y: Vector) -> None:
    i = pto.block_idx() * 8192
    pto.store(y[i:], pto.load(x[i:], 8192))


@pytest.fixture(scope="module")
def long() -> Timing:
    """Many rounds of blocks, of which few are drawn."""
    return copies[6400].time((1 << 26,), (1 << 26,), device="910b1")


def test_an_axis_has_the_whole_time(long: Timing):
    on = axis(long)
    skipped = {each.number: each.skipped for each in long.shown if each.skipped}
    assert long.rounds == 134 == len(long.shown) + sum(skipped.values())
    assert on.end / long.mhz == pytest.approx(long.core_us)
    assert max(on.done) == pytest.approx(on.end)
    assert sum(gap.end - gap.begin for gap in on.gaps) > 0.2 * on.end
    for gap in on.gaps:
        inside = [n for n, at in enumerate(on.start) if gap.begin < at < gap.end - 1e-6]
        assert not inside


def test_a_page_says_which_blocks_and_rounds_it_draws(long: Timing, timed: Timing):
    said = drawn(long)
    assert said.startswith("drawn: core 0 with rounds 1-")
    assert "of 134 (blocks 0, 48, 96, ..., " in said
    first = next(each for each in long.shown if each.skipped)
    a, b = first.number + 2, first.number + 1 + first.skipped
    assert f"repeated, not drawn: rounds {a} to {b} as round {first.number + 1}" in said
    head = f"{long.us:.1f} us: 2.2 us launch and {long.core_us:.1f} us on the cores, "
    assert head in long.html() and said in long.html()
    assert "drawn: block 0 of 16 blocks on 16 cores" in timed.html()


def test_a_trace_has_the_whole_time_and_names_rounds(long: Timing):
    events = chrome(long)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert max(e["ts"] + e["dur"] for e in slices) == pytest.approx(long.core_us)
    rounds = {(e["args"]["round"], e["args"]["block"]) for e in slices if e["args"]}
    assert rounds == {(each.number + 1, each.block) for each in long.shown}
    named = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert named == {"core 0 vector"}


def opened(page: Path, folder: Path) -> Iterator[Any]:
    """A browser that shows a page."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync"):
        options.add_argument(f"--{flag}")
    for flag in ("disable-background-networking", "disable-component-update", "disable-quic"):
        options.add_argument(f"--{flag}")
    options.add_argument("--window-size=1400,900")
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.get(page.as_uri())
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def browser(timed: Timing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("page")
    timed.html(str(folder / "page.html"))
    yield from opened(folder / "page.html", folder)


def state(browser: Any, what: str) -> Any:
    return browser.execute_script(f"return timeline.state.{what}")


@needs_browser
def test_the_sums_of_the_page_are_those_of_the_report(browser: Any, timed: Timing):
    (pipes,) = browser.execute_script("return timeline.sums(0, DATA.runs[0].end)")
    shown: dict[str, list[float]] = {}
    for pipe in pipes:
        side = "cube" if "cube" in pipe["agent"] else "vector"
        shown.setdefault(f"{side} {pipe['pipe']}", []).append(pipe["busy"])
    for side, each in timed.busy.items():
        for pipe, share in each.items():
            mean = np.mean(shown[f"{side} {pipe}"])
            assert mean == pytest.approx(share * timed.us, rel=0.01, abs=0.01), (side, pipe)


@needs_browser
def test_a_page_of_many_rounds_sums_those_it_does_not_draw(
    browser: Any, long: Timing, tmp_path: Path
):
    before = browser.current_url
    long.html(str(tmp_path / "long.html"))
    browser.get((tmp_path / "long.html").as_uri())
    assert browser.execute_script("return document.getElementById('span').innerText") == (
        f"all {long.core_us:.1f} us on the cores"
    )
    (pipes,) = browser.execute_script("return timeline.sums(0, DATA.runs[0].end)")
    for pipe in pipes:
        share = long.busy["vector"].get(pipe["pipe"], 0.0)
        assert pipe["busy"] == pytest.approx(share * long.us, rel=0.01, abs=0.01)
        assert pipe["count"] in (0, long.rounds)
    assert not browser.get_log("browser") if hasattr(browser, "get_log") else True
    browser.get(before)


@needs_browser
def test_keys_zoom_and_move(browser: Any):
    from selenium.webdriver.common.by import By

    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("0")
    whole = state(browser, "to") - state(browser, "from")
    body.send_keys("ww")
    assert state(browser, "to") - state(browser, "from") == pytest.approx(whole * 0.36)
    before = state(browser, "from")
    body.send_keys("d")
    assert state(browser, "from") > before
    body.send_keys("0")
    assert state(browser, "from") == 0


@needs_browser
def test_a_drag_selects_and_sums(browser: Any):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    canvas = browser.find_element(By.ID, "canvas")
    chain = ActionChains(browser).move_to_element_with_offset(canvas, -100, 150)
    chain.click_and_hold().move_by_offset(200, 0).release().perform()
    start, stop = state(browser, "range")
    assert 0 < start < stop
    told = browser.find_element(By.ID, "span").text
    assert told.endswith(" us") and ": " in told
    (pipes,) = browser.execute_script("return timeline.sums(...timeline.state.range)")
    assert all(0 <= pipe["busy"] <= (stop - start) * 1.001 for pipe in pipes)


@needs_browser
def test_a_wait_leads_to_what_it_waited_for(browser: Any, timed: Timing):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.find_elements(By.CLASS_NAME, "wait")[0].click()
    waiting = state(browser, "chosen.i")
    assert timed.stream.jobs[waiting].op is timed.waits[0].op
    assert "waited" in browser.find_element(By.ID, "chosen").text
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ENTER)
    assert timed.times is not None
    assert state(browser, "chosen.i") == timed.times.cause[waiting]
    assert not browser.get_log("browser") if hasattr(browser, "get_log") else True


@pto.kernel(profile="a2a3")
def ragged(x: Vector, y: Vector) -> None:
    i = pto.block_idx() * 1024
    pto.store(y[i:], doubled(pto.load(x[i:], 1024)))


@pytest.fixture(scope="module")
def uneven() -> Timing:
    """52 blocks on 48 cores, the last one half full: three sorts of cores."""
    size = (51 * 1024 + 512,)
    return ragged[52].time(size, size, device="910b1")


def test_every_core_of_a_launch_is_in_a_group(uneven: Timing):
    groups = [each.numbers for each in uneven.groups]
    assert sorted(core for each in groups for core in each) == list(range(48))
    assert sorted(map(len, groups)) == [1, 3, 44]  # half a block more, a block more, none
    assert [3] in groups and [0, 1, 2] in groups
    ends = {each.numbers[0]: max(each.timing.times.done) for each in uneven.groups}
    assert ends[0] > ends[3] > ends[4]
    assert max(ends.values()) / uneven.mhz == pytest.approx(uneven.core_us)


@needs_browser
def test_all_cores_are_there_and_open_with_a_click(browser: Any, uneven: Timing, tmp_path: Path):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    before = browser.current_url
    uneven.html(str(tmp_path / "cores.html"))
    browser.get((tmp_path / "cores.html").as_uri())
    kinds = "return timeline.rows.map(row => row.kind)"
    assert browser.execute_script(kinds).count("core") == 48
    lanes = browser.execute_script(kinds).count("lane")
    titles = browser.execute_script("return timeline.cores.map(titleOf)")
    assert titles[0] == "core 0, blocks 0, 48" and "core 3, blocks 3, 51" in titles
    assert "core 2, blocks 2, 50, as core 0" in titles and "core 47, block 47, as core 4" in titles
    y = browser.execute_script("return timeline.rows.filter(row => row.kind === 'core')[1].y")
    canvas = browser.find_element(By.ID, "canvas")
    size = canvas.size
    chain = ActionChains(browser).move_to_element_with_offset(
        canvas, 20 - size["width"] // 2, round(y + 8) - size["height"] // 2
    )
    chain.click().perform()
    assert browser.execute_script(kinds).count("lane") == 2 * lanes
    chain.click().perform()
    assert browser.execute_script(kinds).count("lane") == lanes
    browser.find_element(By.TAG_NAME, "body").send_keys("o")
    assert browser.execute_script(kinds).count("lane") == 48 * lanes
    assert browser.execute_script("return !timeline.cores.some(core => core.drawn === null)")
    browser.get(before)


@needs_browser
def test_compared_launches_stand_above_each_other(browser: Any, uneven: Timing, tmp_path: Path):
    before = browser.current_url
    uneven.html(str(tmp_path / "two.html"), uneven)
    browser.get((tmp_path / "two.html").as_uri())
    rows = "timeline.rows.filter(row => row.kind === 'core')"
    heads = browser.execute_script(f"return {rows}.map(row => [row.text, row.core.open])")
    assert [text for text, is_open in heads if is_open] == [text for text, _ in heads[:2]]
    assert [text.split(",")[0] for text, _ in heads[:2]] == ["ragged 1: core 0", "ragged 2: core 0"]
    assert len(heads) == 96
    browser.get(before)


@needs_browser
def test_lines_of_two_files_are_told_apart(browser: Any, uneven: Timing, tmp_path: Path):
    """`tmuls` is in a helper's file, at a line that the kernel's file has too."""
    from selenium.webdriver.common.by import By

    before = browser.current_url
    uneven.html(str(tmp_path / "files.html"))
    browser.get((tmp_path / "files.html").as_uri())
    names = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#source h3")]
    assert names == ["test_page.py", "page_helper.py"]
    line = next(
        each
        for each in browser.find_elements(By.CSS_SELECTOR, "#source div")
        if each.get_attribute("innerText").endswith("    return t * 2.0")
    )
    browser.execute_script("arguments[0].click()", line)
    assert state(browser, "line").endswith("page_helper.py:8")
    lit = browser.execute_script(
        "const run = DATA.runs[0];"
        "return run.ops.filter(op => placeOf(op) === timeline.state.line).map(op => op.name)"
    )
    assert lit == ["tmuls"]
    assert "page_helper.py:8" in browser.execute_script(
        "const i = DATA.runs[0].ops.findIndex(op => op.name === 'tmuls');"
        "return told({run: DATA.runs[0], i: DATA.runs[0].slices.op.indexOf(i)})"
    )
    browser.get(before)


@needs_browser
def test_the_source_begins_at_a_line_that_takes_time(browser: Any):
    """The kernel of this file is below its docstring and imports."""
    above, below = browser.execute_script(
        "const pane = document.getElementById('source').getBoundingClientRect();"
        "const lines = [...document.querySelectorAll('#source div')];"
        "const at = lines.find(line => line.firstChild.innerText).getBoundingClientRect();"
        "return [at.top - pane.top, pane.bottom - at.bottom]"
    )
    assert above >= 0 and below >= 0


@needs_browser
def test_a_legend_and_both_themes(browser: Any):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    legend = browser.find_element(By.ID, "legend").text
    for words in ("M: matrix unit", "V: vector unit", "waits for another pipe", "arrow: from"):
        assert words in legend
    feature = "prefers-color-scheme"
    seen: dict[str, list[int]] = {}
    for theme, paper in (("light", "#ffffff"), ("dark", "#161c22")):
        wanted = {"features": [{"name": feature, "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        # the browser reports the change with its next frame
        WebDriverWait(browser, 20).until(
            lambda page, paper=paper: page.execute_script("return ink.paper") == paper
        )
        seen[theme] = browser.execute_script(
            "return [getComputedStyle(document.body).backgroundColor, ink.paper, ink.soft]"
        )
    assert seen["light"][:2] == ["rgb(255, 255, 255)", "#ffffff"]
    assert seen["dark"][:2] == ["rgb(22, 28, 34)", "#161c22"] and seen["dark"] != seen["light"]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@needs_browser
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_window(browser: Any, width: int):
    how = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", how)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    canvas = browser.execute_script("return document.getElementById('canvas').clientWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width and canvas > 300


def test_a_page_needs_nothing_else_and_trusts_no_name(timed: Timing):
    text = timed.html()
    assert "http://" not in text and "https://" not in text and "src=" not in text
    assert text.count("<script>") == text.count("</script>") == 2
    assert timing.Timing is Timing
