"""A cluster that asks for a token: who has none, or another one, is told so at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pto.cluster.token import require_welcome
from pto.core.errors import PtoError

pytestmark = pytest.mark.skipif(
    find_spec("grpc") is None, reason='grpc is not installed: pip install "pto-machine[ray]"'
)
TOKEN = "open sesame"


@pytest.fixture
def head() -> Iterator[str]:
    """Answers as a head node of Ray 2.60 does, which was asked."""
    import grpc

    def answer(request: bytes, context: Any) -> bytes:
        if ("authorization", f"Bearer {TOKEN}") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "InvalidAuthToken")
        return b""

    class Every(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Every()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_without_a_token(head: str, scheme: str) -> None:
    with pytest.raises(PtoError, match=r"PTO-U307.*there is none here"):
        require_welcome(scheme + head)


def test_with_another_one(head: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text("open barley\n")
    with pytest.raises(PtoError, match=r"that in \S+auth_token is not its") as caught:
        require_welcome(head)
    assert "ray get-auth-token" in (caught.value.diagnostics[0].help or "")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "open wheat")
    with pytest.raises(PtoError, match="RAY_AUTH_TOKEN is not its"):
        require_welcome(head)


@pytest.mark.parametrize("place", ["home", "file", "environment"])
def test_with_the_token(head: str, home: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / ("token" if place == "file" else ".ray/auth_token")
    path.parent.mkdir(exist_ok=True)
    path.write_text(TOKEN if place != "environment" else "other")
    if place == "file":
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
    elif place == "environment":
        monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    require_welcome(head)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # then Ray sends none
    with pytest.raises(PtoError, match="PTO-U307"):
        require_welcome(head)
