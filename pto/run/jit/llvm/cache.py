"""Compiled objects on disk: found by a hash of their sources, written atomically.

This code is executed, so it must be the user's own: only the user may write to the directory and
the files, and every object carries a MAC by the user's key. Any other object is ignored, and the
program is compiled again. This module knows nothing of LLVM.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Final

from pto.core.disk_cache import DiskCache, make_folder, users_root
from pto.core.trust import distrust, refused

_MAGIC: Final = b"PTOOBJ2\n"
_DIGEST: Final = 32
_OBJECT: Final = re.compile(r"[0-9a-f]{64}\.obj")
_PART: Final = re.compile(r"pto-\w+\.part")  # left by a writer that was killed
_KEY: Final = "key"
LIMIT: Final = 256 << 20  # bytes; the files used longest ago go first
SELDOM: Final = 64  # of so many objects one looks whether there are too many


def _is_ours(path: Path) -> bool:
    if _PART.fullmatch(path.name):
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


OBJECTS: Final = DiskCache(
    "", "PTO_CACHE_DIR", re.compile(f"{_OBJECT.pattern}|{_PART.pattern}"), _is_ours
)


def key(*parts: str) -> str:
    """The name of what is made from these parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """The object of this name; None where there is none, or one that is not to be trusted."""
    home = OBJECTS.trusted()
    secret = None if home is None else _secret()
    if home is None or secret is None:
        return None
    path = home / f"{name}.obj"
    raw = _read(path)
    if raw is None:
        return None
    head = len(_MAGIC) + _DIGEST
    code = _code(secret, name, raw[head:])
    if not raw.startswith(_MAGIC) or not hmac.compare_digest(raw[len(_MAGIC) : head], code):
        discard(name)
        return None
    with contextlib.suppress(OSError):
        path.touch()
    return raw[head:]


def store(name: str, data: bytes) -> None:
    """Keep an object. A cache that cannot be written to is no error: it is only slower."""
    with contextlib.suppress(OSError):
        home = OBJECTS.trusted()
        if home is not None:
            make_folder(home)
        secret = None if home is None else _secret()
        if home is None or secret is None:
            return
        _put(home / f"{name}.obj", _MAGIC + _code(secret, name, data) + data)
        if int(name[:8], 16) % SELDOM == 0:
            OBJECTS.shrink(LIMIT)


def discard(name: str) -> None:
    """Forget an object that turned out to be no good."""
    home = OBJECTS.trusted()
    if home is not None:
        with contextlib.suppress(OSError):
            (home / f"{name}.obj").unlink()


# ---- trust


def _read(path: Path) -> bytes | None:
    """A file that only the user can have written."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return None if distrust(os.fstat(handle), stat.S_ISREG) else file.read()


def _code(secret: bytes, name: str, data: bytes) -> bytes:
    """The MAC of an object of this name."""
    return hmac.digest(secret, name.encode() + b"\0" + data, hashlib.sha256)


def _secret() -> bytes | None:
    """The key of the user, made when first needed; it never lies in a PTO_CACHE_DIR."""
    home = users_root()
    if home is None or refused(home):
        return None
    path = home / _KEY
    found = _read(path)
    if found is None:
        try:
            make_folder(home)
            _put(path, os.urandom(_DIGEST), only_new=True)
        except OSError:
            return None
        found = _read(path)
    return found if found and len(found) == _DIGEST else None


# ---- files


def _put(path: Path, data: bytes, *, only_new: bool = False) -> None:
    """A file whole or not at all; `only_new`: unless another process was first."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="pto-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if only_new:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        else:
            Path(temporary).replace(path)
    finally:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
