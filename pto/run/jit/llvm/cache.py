"""Compiled objects on disk: found by what they were made of, written whole or not at all.

Code from here is executed, so only the user's own is: nobody else may write to the directory and
the files, and every object carries a code that only the user's key gives. Anything else is as good
as none: programs are compiled, which only takes longer. Nothing here knows LLVM.
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
from typing import Final, NamedTuple

from pto.core.trust import distrust, refused

_MAGIC: Final = b"PTOOBJ2\n"
_DIGEST: Final = 32
_OBJECT: Final = re.compile(r"[0-9a-f]{64}\.obj")
_PART: Final = re.compile(r"pto-\w+\.part")  # left by a writer that was killed
_KEY: Final = "key"
LIMIT: Final = 256 << 20  # bytes; the files used longest ago go first
SELDOM: Final = 64  # of so many objects one looks whether there are too many


class Info(NamedTuple):
    """What the cache holds; `refused` says why it is not used."""

    directory: Path | None
    files: int
    nbytes: int
    limit: int
    refused: str


def directory() -> Path | None:
    """PTO_CACHE_DIR, else `pto` in the user's cache directory; None: the user has no home."""
    own = os.environ.get("PTO_CACHE_DIR")
    return Path(own) if own else _users()


def _users() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "pto"
    except RuntimeError:  # no HOME, and no entry in the list of users
        return None


def key(*parts: str) -> str:
    """The name of what is made from these parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """The object of this name; None where there is none, or one that is not to be trusted."""
    home = _trusted()
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
        home = directory()
        if home is not None:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = None if _trusted() is None else _secret()
        if home is None or secret is None:
            return
        _put(home / f"{name}.obj", _MAGIC + _code(secret, name, data) + data)
        if int(name[:8], 16) % SELDOM == 0:
            _shrink(home)


def discard(name: str) -> None:
    """Forget an object that turned out to be no good."""
    home = _trusted()
    if home is not None:
        with contextlib.suppress(OSError):
            (home / f"{name}.obj").unlink()


def info() -> Info:
    home = directory()
    why = refused(home)
    files = [] if home is None or why else _files(home)
    return Info(home, len(files), sum(size for _, size, _ in files), LIMIT, why)


def clear() -> int:
    """Remove every object; how many there were."""
    home = _trusted()
    files = [] if home is None else _files(home)
    for _, _, path in files:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(files)


# ---- trust


def _trusted() -> Path | None:
    """The directory, where nobody but the user can put anything."""
    home = directory()
    return None if refused(home) else home


def _read(path: Path) -> bytes | None:
    """A file that only the user can have written."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return None if distrust(os.fstat(handle), stat.S_ISREG) else file.read()


def _code(secret: bytes, name: str, data: bytes) -> bytes:
    """What only the owner of the key can put before an object of this name."""
    return hmac.digest(secret, name.encode() + b"\0" + data, hashlib.sha256)


def _secret() -> bytes | None:
    """The key of the user, made when first needed; it never lies in a PTO_CACHE_DIR."""
    home = _users()
    if home is None or refused(home):
        return None
    path = home / _KEY
    found = _read(path)
    if found is None:
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
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


def _files(home: Path) -> list[tuple[float, int, Path]]:
    """(last use, bytes, path) of what this module wrote, longest ago first."""
    return [entry for entry in _named(home) if _is_ours(entry[2])]


def _named(home: Path) -> list[tuple[float, int, Path]]:
    """The same by names alone."""
    found: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            if _OBJECT.fullmatch(entry.name) or _PART.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if not distrust(status, stat.S_ISREG):
                        found.append((status.st_mtime, status.st_size, Path(entry.path)))
    return sorted(found)


def _is_ours(path: Path) -> bool:
    if _PART.fullmatch(path.name):
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _shrink(home: Path) -> None:
    files = _named(home)
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= LIMIT:
            return
        if _is_ours(path):
            with contextlib.suppress(OSError):
                path.unlink()
        total -= size
