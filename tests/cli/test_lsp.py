"""`pto lsp` where pygls is not installed; the server itself is tested in tests/lsp."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pto.cli.main import main


def test_without_pygls_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "pto.lsp.server", raising=False)
    for name in [n for n in sys.modules if n.partition(".")[0] in ("pygls", "lsprotocol")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    assert main(["lsp"]) == 2
    told = capsys.readouterr().err
    assert "error[PTO-U010]: pto lsp needs lsprotocol" in told and "pto-machine[lsp]" in told


def message(method: str, **more: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "method": method, **more}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


BEGIN = message("initialize", id=1, params={"processId": None, "rootUri": None, "capabilities": {}})


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (message("shutdown", id=2) + message("exit"), 0),
        (message("exit"), 1),  # the protocol has it so
    ],
)
def test_the_status_says_whether_the_client_took_its_leave(rest: bytes, status: int) -> None:
    pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
    command = [sys.executable, "-m", "pto", "lsp"]
    done = subprocess.run(command, input=BEGIN + rest, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (status, False)
