"""The page of a kernel side by side, in a real browser: lines of one place light up together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.cli.main import main

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
DRIVER = shutil.which("chromedriver") or ""
F32 = pto.Global[pto.f32]


@pto.kernel
def doubled(x: F32, y: F32) -> None:
    t = pto.load(x, 16, 64)
    t = pto.exp(t) + 1.0  # two instructions
    pto.store(y, t)


def made() -> str:
    x = np.zeros((16, 64), np.float32)
    return pto.side_by_side(doubled, x, x.copy()).html()


def test_the_page_needs_nothing_else_and_escapes_what_it_shows():
    text = made()
    assert 'src="http' not in text and 'href="http' not in text
    assert "#include &lt;pto/pto-inst.hpp&gt;" in text and "TEXP(" in text and "pto.texp" in text
    assert "t = pto.exp(t) + 1.0" in text and 'title="timeline"' in text


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
        assert browser.find_element("css selector", "iframe[title=timeline]").is_displayed()
    finally:
        browser.quit()
