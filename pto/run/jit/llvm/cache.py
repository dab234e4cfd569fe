"""Compiled objects on disk: found by what they were made of, written whole or not at all.

A damaged or foreign file is as good as none. Nothing here knows LLVM.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

_MAGIC: Final = b"PTOOBJ1\n"
_DIGEST: Final = 32
_SUFFIX: Final = ".obj"
LIMIT: Final = 256 << 20  # bytes; the files used longest ago go first


class Info(NamedTuple):
    """What the cache holds."""

    directory: Path
    files: int
    nbytes: int
    limit: int


def directory() -> Path:
    """PTO_CACHE_DIR, else `pto` in the user's cache directory."""
    own = os.environ.get("PTO_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pto"


def key(*parts: str) -> str:
    """The name of what is made from these parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """The object of this name; None where there is none, or a damaged one."""
    path = directory() / (name + _SUFFIX)
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST
    if not raw.startswith(_MAGIC) or hashlib.sha256(raw[head:]).digest() != raw[len(_MAGIC) : head]:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        path.touch()
    return raw[head:]


def store(name: str, data: bytes) -> None:
    """Keep an object. A cache that cannot be written to is no error: it is only slower."""
    home = directory()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=home, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(data).digest() + data)
            Path(temporary).replace(home / (name + _SUFFIX))
        except OSError:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
        _shrink(home)
    except OSError:
        return


def info() -> Info:
    files = _files(directory())
    return Info(directory(), len(files), sum(size for _, size, _ in files), LIMIT)


def clear() -> int:
    """Remove every object; how many there were."""
    files = _files(directory())
    for _, _, path in files:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(files)


def _files(home: Path) -> list[tuple[float, int, Path]]:
    """(last use, bytes, path), longest ago first; leftovers of a killed writer too."""
    found: list[tuple[float, int, Path]] = []
    for suffix in (_SUFFIX, ".part"):
        for path in home.glob("*" + suffix):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
    return sorted(found)


def _shrink(home: Path) -> None:
    files = _files(home)
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= LIMIT:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
