"""The extension for VS Code: what its package holds, its protocol in Node.js, and all of it in a
real VS Code (code-server) where that is installed."""

from __future__ import annotations

import json
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pto import __version__

HOME = Path(__file__).parents[2] / "editors" / "vscode"
NODE, SERVER = shutil.which("node") or "", shutil.which("code-server") or ""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
DRIVER = shutil.which("chromedriver") or ""
LONGEST = 60  # seconds


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a user does, without network."""
    folder = tmp_path_factory.mktemp("vsix")
    command = [sys.executable, str(HOME / "package.py"), str(folder)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Path(told.strip())


def files_of(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_package_has_all_that_it_names(package: Path):
    files = files_of(package)
    about = json.loads(files["extension/package.json"])
    assert package.name == f"pto-{__version__}.vsix" and about["version"] == __version__
    named = [about["main"], about["icon"], "README.md", "LICENSE.txt"]
    named += [each["path"] for each in about["contributes"]["grammars"]]
    named += [each["configuration"] for each in about["contributes"]["languages"]]
    assert {f"extension/{name.removeprefix('./')}" for name in named} <= set(files)
    png = files[f"extension/{about['icon']}"]
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and min(struct.unpack(">II", png[16:24])) >= 128
    manifest = ElementTree.fromstring(files["extension.vsixmanifest"])
    space = {"v": "http://schemas.microsoft.com/developer/vsx-schema/2011"}
    identity = manifest.find("v:Metadata/v:Identity", space)
    assert identity is not None
    assert (identity.get("Id"), identity.get("Version")) == (about["name"], __version__)
    assert {e.get("Path") for e in manifest.iterfind("v:Assets/v:Asset", space)} <= set(files)
    types = files["[Content_Types].xml"].decode()
    for name in files:
        assert name.startswith("[") or f'Extension="{Path(name).suffix}"' in types, name


def test_it_needs_no_other_package_and_says_all_its_settings(package: Path):
    files = files_of(package)
    about = json.loads(files["extension/package.json"])
    assert "dependencies" not in about
    scripts = {name: data.decode() for name, data in files.items() if name.endswith(".js")}
    for text in scripts.values():
        for wanted in re.findall(r'require\("([^"]+)"\)', text):
            inside = f"extension/{wanted.removeprefix('./')}.js" in files
            assert wanted in ("vscode", "child_process") or inside, wanted
    readme, code = files["extension/README.md"].decode(), scripts["extension/extension.js"]
    settings = about["contributes"]["configuration"]["properties"]
    assert settings["pto.python"]["default"] is False  # nothing is executed unasked
    assert "executes" in settings["pto.python"]["markdownDescription"]
    for name in settings:
        assert f"`{name}`" in readme and f'settings.get("{name.removeprefix("pto.")}")' in code
    restricted = about["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == {"pto.command", "pto.python"} and "workspace.isTrusted" in code
    for each in about["contributes"]["commands"]:
        assert f'registerCommand("{each["command"]}"' in code


@pytest.mark.skipif(not NODE, reason="no Node.js: the extension's protocol was NOT tested")
def test_the_protocol_speaks_with_the_server(tmp_path: Path):
    """Messages that come in pieces, answers, notifications, and an end."""
    pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
    script = """
const { spawn } = require("child_process");
const { Connection } = require(process.argv[1]);
const child = spawn(process.argv[2], ["-m", "pto", "lsp"], { stdio: ["pipe", "pipe", "inherit"] });
const read = Connection.prototype.read;
Connection.prototype.read = function (data) {  // byte by byte: no message comes whole
  for (const byte of data) read.call(this, Buffer.from([byte]));
};
const found = [];
const connection = new Connection(child, (method, params) => { found.push([method, params]); });
(async () => {
  const begun = await connection.request("initialize", { processId: null, rootUri: null, capabilities: {} });
  connection.notify("initialized", {});
  const textDocument = { uri: "file:///größer.pto", languageId: "pto", version: 1, text: "module { 𝛼" };
  connection.notify("textDocument/didOpen", { textDocument });
  const hover = await connection.request("textDocument/hover", { textDocument, position: { line: 0, character: 2 } });
  const wrong = await connection.request("no/such", {}).catch((error) => error.message);
  await connection.request("shutdown");
  const late = connection.request("textDocument/hover", {}).catch((error) => error.message);
  connection.notify("exit");
  child.on("exit", async (code) => console.log(JSON.stringify([begun.serverInfo.name, hover, wrong, found.map(each => each[0]), code, await late])));
})();
"""  # noqa: E501
    command = [NODE, "-e", script, str(HOME / "protocol.js"), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
    name, hover, wrong, heard, code, late = json.loads(done.stdout)
    assert name == "pto" and (hover is None or "module" in hover["contents"]["value"])
    assert "no/such" in wrong and "textDocument/publishDiagnostics" in heard
    assert code == 0 and late


KERNEL = '''\
import numpy as np
import pto
from pto import isa


@pto.kernel(profile="a2a3")
def racy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
    """
    >>> racy(np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32))
    """
    t = pto.tile(16, 64, pto.f32, address=0)
    isa.tload(t, x[:16, :64])
    isa.set_flag("MTE2", "V", 0)
    isa.wait_flag("MTE2", "V", 0)
    isa.texp(t, t)
    isa.tstore(y[:16, :64], t)
'''


@pytest.mark.skipif(
    not (SERVER and CHROMIUM and DRIVER),
    reason="no code-server with Chromium: the extension was NOT tested in VS Code",
)
def test_in_a_real_vs_code(package: Path, tmp_path: Path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    work, data = tmp_path / "work", tmp_path / "data"
    (data / "User").mkdir(parents=True)
    work.mkdir()
    (work / "k.py").write_text(KERNEL)
    settings = {"pto.command": str(Path(sys.executable).with_name("pto")), "pto.python": True}
    settings |= {"security.workspace.trust.enabled": False}
    (data / "User" / "settings.json").write_text(json.dumps(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    base = [SERVER, "--user-data-dir", str(data), "--extensions-dir", str(tmp_path / "ext")]
    subprocess.run([*base, "--install-extension", str(package)], check=True, timeout=LONGEST)
    command = [*base, "--auth", "none", "--bind-addr", at, "--disable-update-check", str(work)]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    options: Any = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "window-size=1400,900"):
        options.add_argument(f"--{flag}")
    browser: Any = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        _in_vs_code(browser, webdriver.ActionChains, f"http://{at}/?folder={work}", work / "k.py")
    finally:
        browser.quit()
        server.terminate()
        server.wait()


def _in_vs_code(browser: Any, chains: Any, page: str, file: Path) -> None:
    def texts(selector: str) -> list[str]:
        found = f"[...document.querySelectorAll({selector!r})].map(each => each.innerText)"
        return [each.replace("\xa0", " ") for each in browser.execute_script(f"return {found}")]

    def wait(what: Callable[[], Any]) -> Any:
        for _ in range(2 * LONGEST):
            try:
                if found := what():
                    return found
            except Exception:  # not up yet, or drawn anew meanwhile
                pass
            time.sleep(0.5)
        raise AssertionError(texts("body"))

    def open_file() -> bool:
        items = browser.find_elements("css selector", ".monaco-list-row")
        (item,) = [each for each in items if each.text.strip() == file.name]
        chains(browser).double_click(item).perform()
        return True

    def press(key: str, held: str = "") -> None:
        chain = chains(browser)
        chain = chain.key_down(held).send_keys(key).key_up(held) if held else chain.send_keys(key)
        chain.perform()

    control, enter = "\ue009", "\ue007"
    wait(lambda: browser.get(page) or True)
    wait(open_file)
    wait(lambda: texts(".squiggly-error"))
    wait(lambda: any("us on 910b1, bound by" in each for each in texts(".view-line")))
    assert any("t: 16x64xf32 = pto.tile" in each for each in texts(".view-line"))
    press("g", control)
    wait(lambda: texts(".quick-input-widget input"))
    press("15,6")
    press(enter)
    time.sleep(1)
    press(".", control)
    wait(lambda: any("set_flag(V, MTE3, 0)" in each for each in texts(".action-widget")))
    press(enter)
    wait(lambda: any('pto.wait_flag("V", "MTE3"' in each for each in texts(".view-line")))
    press("s", control)
    wait(lambda: 'pto.wait_flag("V", "MTE3", 0)' in file.read_text())
    wait(lambda: not texts(".squiggly-error"))
