"""`pto lsp` where pygls is not installed; the server itself is tested in tests/lsp."""

from __future__ import annotations

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
