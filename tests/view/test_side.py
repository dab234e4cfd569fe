"""The page of a kernel side by side, in a real browser: lines of one place light up together."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.core.dtypes import dtype
from pto.core.layout import NZ
from pto.core.memory import Role
from pto.core.tile import TileType
from pto.view.side.layout import caption, svg
from tests.observe.timing.page_helper import doubled as twice

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
DRIVER = shutil.which("chromedriver") or ""
LIT = "return [...document.querySelectorAll('.lit')].map(each => each.innerText).join()"
F32 = pto.Global[pto.f32]


@pto.kernel
def doubled(x: F32, y: F32) -> None:
    t = pto.load(x, 16, 64)
    t = pto.exp(t) + 1.0  # two instructions
    pto.store(y, twice(t))


def made() -> str:
    x = np.zeros((16, 64), np.float32)
    return pto.side_by_side(doubled, x, x.copy()).html()


def test_the_page_needs_nothing_else_and_escapes_what_it_shows():
    text = made()
    assert 'src="http' not in text and 'href="http' not in text
    assert "#include &lt;pto/pto-inst.hpp&gt;" in text and "TEXP(" in text and "pto.texp" in text
    assert "t = pto.exp(t) + 1.0" in text and 'title="timeline"' in text


def test_lines_have_the_numbers_of_their_file_and_tiles_their_layout():
    text, here = made(), Path(__file__).read_text("utf-8").splitlines()
    line = 1 + next(n for n, each in enumerate(here) if "# two instructions" in each)
    assert f'data-at="{__file__}:{line}"><i>{line}</i>    t = pto.exp(t)' in text
    assert '<h3 title="' in text and ">page_helper.py</h3>" in text
    assert "vec 16x64xf32 ND: elements row by row" in text and "<svg" in text


def test_a_layout_is_darker_where_addresses_are_higher():
    tile = TileType.of(Role.VEC, dtype("f16"), 32, 32, NZ)
    shades = [float(n) for n in re.findall(r"62% (\d+)%", svg(tile))]
    side = 24  # samples along each side
    first, last, corner = shades[0], shades[-1], shades[(side - 1) * side]
    assert first == 86 and last == 36  # the first element and the last box's last row
    assert (
        corner > shades[side - 1]
    )  # boxes go down first: the lower left is lower than upper right
    assert caption(tile).startswith("boxes of 16x16 column by column")


def test_a_program_without_time_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    program = Path(__file__).parents[2] / "examples" / "add.pto"
    given = [f"--arg={n}=zeros:16x64xf32" for n in "abc"]
    out = tmp_path / "add.html"
    assert main(["view", str(program), *given, "--arg=rows=16", "-o", str(out)]) == 0
    assert "add.html" in capsys.readouterr().out and "pto.tadd" in out.read_text("utf-8")


@pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium and chromedriver: the page was NOT tested"
)
def test_lines_are_linked_in_a_browser(tmp_path: Path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.support.wait import WebDriverWait

    options: Any = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(word)
    page = tmp_path / "side.html"
    page.write_text(made(), "utf-8")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        browser.get(page.as_uri())
        lines = browser.find_elements("css selector", "section:first-of-type li")
        source = next(each for each in lines if "two instructions" in each.text)
        source.click()
        lit = [each.text for each in browser.find_elements("css selector", ".lit")]
        assert any("pto.texp" in each for each in lit) and any("pto.tadds" in each for each in lit)
        assert any("TEXP(" in each for each in lit) and any("TADDS(" in each for each in lit)
        assert not any("TLOAD(" in each or "pto.tstore" in each for each in lit)
        frame = browser.find_element("css selector", "iframe[title=timeline]")
        assert frame.is_displayed()
        place = source.get_attribute("data-at")
        browser.switch_to.frame(frame)
        wait = WebDriverWait(browser, 30)  # pages exchange messages
        wait.until(lambda b: b.execute_script("return timeline.state.line") == place)
        browser.switch_to.default_content()
        title = browser.find_element("css selector", "h1")
        webdriver.ActionChains(browser).move_to_element(title).perform()  # no line is under it
        browser.switch_to.frame(frame)
        tmuls = "DATA.runs[0].ops.findIndex(op => op.name === 'tmuls')"
        browser.execute_script(
            f"choose({{run: DATA.runs[0], i: DATA.runs[0].slices.op.indexOf({tmuls})}}, true)"
        )
        browser.switch_to.default_content()
        wait.until(lambda b: "return t * 2.0" in b.execute_script(LIT))
        lit = browser.execute_script(LIT)
        assert "TMULS(" in lit and "pto.tmuls" in lit and "pto.texp" not in lit
        how = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", how)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.quit()
