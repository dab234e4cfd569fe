"""Check that a cluster accepts our token. Ray itself tries for half a minute, and names no reason.

A cluster that requires a token refuses the first request without one. The token is Ray's:
RAY_AUTH_TOKEN, or the file that RAY_AUTH_TOKEN_PATH names, else ~/.ray/auth_token.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pto.core.errors import PtoError, fail

_SECONDS = 5.0
_QUESTIONS = {  # of little weight, to a head node and to its client server
    False: "/ray.rpc.NodeInfoGcsService/GetClusterId",
    True: "/ray.rpc.RayletDriver/ClusterInfo",
}


def require_welcome(address: str) -> None:
    """Raise if the cluster at an address refuses our token; other failures are left to Ray."""
    if find_spec("grpc") is None:
        return
    grpc: Any = import_module("grpc")
    token, source = _token()
    sent = (("authorization", f"Bearer {token}"),) if token else ()
    with grpc.insecure_channel(address.rpartition("//")[2]) as channel:
        ask = channel.unary_unary(_QUESTIONS["://" in address])
        try:
            ask(b"", timeout=_SECONDS, metadata=sent)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                raise refused(address, source) from None


def refused(address: str, source: str) -> PtoError:
    why = f"{source} is not its" if source else "there is none here"
    return fail(
        "PTO-U307",
        f"the cluster at `{address}` requires a token, but {why}",
        help="`ray get-auth-token` prints it on the head node: put it into ~/.ray/auth_token here,"
        " readable by you alone, or into RAY_AUTH_TOKEN",
    )


def _token() -> tuple[str, str]:
    """The token that Ray would send, and its source."""
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return "", ""
    from_environment = os.environ.get("RAY_AUTH_TOKEN", "").strip()
    if from_environment:
        return from_environment, "RAY_AUTH_TOKEN"
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    try:
        stored = path.read_text(encoding="utf-8").strip()
    except OSError:
        return "", ""
    return stored, f"that in {path}" if stored else ""
