"""Caches on disk: folders below one root, with entries that only the user can have written.

The root is PTO_CACHE_DIR, else `pto` in the user's cache directory. Code from a cache is executed:
a folder that other users may write to is not used, and entries of other users are ignored. An
object (`load`, `store`) has the hash of its sources as its name and carries a MAC by the user's
key; any other object is ignored, and made again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple


class Info(NamedTuple):
    """The content of a cache; `refused` is the reason why it is not used."""

    directory: Path | None
    files: int
    nbytes: int
    refused: str


class CacheEntry(NamedTuple):
    last_use: float
    files: int
    nbytes: int
    path: Path


@dataclass(frozen=True, slots=True)
class DiskCache:
    """One folder. Its entries are files, or folders of files."""

    folder: str  # below the root; empty: the root itself
    variable: str  # the environment variable that names another folder
    name: re.Pattern[str]  # of an entry
    is_ours: Callable[[Path], bool]  # by the content of an entry
    has_folders: bool = False

    def directory(self) -> Path | None:
        """The folder; None if the user has no home."""
        folder_set, root = os.environ.get(self.variable), _root()
        return Path(folder_set) if folder_set else root / self.folder if root is not None else None

    def refused(self) -> str:
        """The reason why the folder is not used; empty if it is."""
        home, root = self.directory(), _root()
        inside = root is not None and home is not None and root in home.parents
        return refused(home) or (refused(root) if inside else "")

    def trusted(self) -> Path | None:
        return None if self.refused() else self.directory()

    def entries(self) -> list[CacheEntry]:
        """Files or folders of the user with the name of an entry, least recently used first."""
        cached: list[CacheEntry] = []
        kind = stat.S_ISDIR if self.has_folders else stat.S_ISREG
        home = self.trusted()
        if home is None:
            return cached
        with suppress(OSError), os.scandir(home) as listed:
            for item in (e for e in listed if self.name.fullmatch(e.name)):
                with suppress(OSError):
                    status = item.stat(follow_symlinks=False)
                    if not distrust(status, kind):
                        sizes = _sizes(item.path) if self.has_folders else [status.st_size]
                        path = Path(item.path)
                        cached.append(CacheEntry(status.st_mtime, len(sizes), sum(sizes), path))
        return sorted(cached)

    def info(self) -> Info:
        entries = [entry for entry in self.entries() if self.is_ours(entry.path)]
        files, nbytes = sum(e.files for e in entries), sum(e.nbytes for e in entries)
        return Info(self.directory(), files, nbytes, self.refused())

    def clear(self, unused: float = 0.0) -> int:
        """Remove entries that were not used for so many seconds; returns the number of files."""
        old = [e for e in self.entries() if not unused or e.last_use < time.time() - unused]
        ours = [entry for entry in old if self.is_ours(entry.path)]
        for entry in ours:
            _remove(entry.path)
        return sum(entry.files for entry in ours)

    def shrink(self, limit: int) -> None:
        """Remove the least recently used entries until the rest has at most `limit` bytes."""
        entries = self.entries()
        total = sum(entry.nbytes for entry in entries)
        for entry in entries:
            if total <= limit:
                return
            if self.is_ours(entry.path):
                _remove(entry.path)
            total -= entry.nbytes


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, all writable by the user alone."""
    for folder in reversed([p for p in (path, *path.parents) if not p.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)


def users_root() -> Path | None:
    """`pto` in the user's cache directory; None if the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "pto"
    except RuntimeError:  # no HOME, and no entry in the list of users
        return None


def _root() -> Path | None:
    folder = os.environ.get("PTO_CACHE_DIR")
    return Path(folder) if folder else users_root()


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _sizes(folder: str) -> list[int]:
    """Bytes of each file; a file that another process removes meanwhile does not count."""
    sizes: list[int] = []
    for top, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                sizes.append(Path(top, name).lstat().st_size)
    return sizes


def refused(folder: Path | None) -> str:
    """The reason not to use a folder; empty if it is trusted or does not exist yet."""
    if folder is None:
        return "the user has no home directory"
    try:
        return distrust(folder.stat(), stat.S_ISDIR)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error)


def is_trusted(path: Path, is_kind: Callable[[int], bool] = stat.S_ISREG) -> bool:
    """True if a file (or a folder) is there, no link, and only the user can have written it."""
    try:
        return not distrust(path.lstat(), is_kind)
    except OSError:
        return False


def distrust(status: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """The reason not to trust a file or folder; empty if it is trusted."""
    if not is_kind(status.st_mode):
        return "it is of another kind"
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write to it"
    return ""


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
    with suppress(OSError):
        path.touch()
    return raw[head:]


def store(name: str, data: bytes) -> None:
    """Keep an object. A cache that cannot be written to is no error: it is only slower."""
    with suppress(OSError):
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
        with suppress(OSError):
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
    secret = _read(path)
    if secret is None:
        try:
            make_folder(home)
            _put(path, os.urandom(_DIGEST), only_new=True)
        except OSError:
            return None
        secret = _read(path)
    return secret if secret and len(secret) == _DIGEST else None


# ---- files


def _put(path: Path, data: bytes, *, only_new: bool = False) -> None:
    """A file whole or not at all; `only_new`: unless another process was first."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="pto-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if only_new:
            with suppress(FileExistsError):
                os.link(temporary, path)
        else:
            Path(temporary).replace(path)
    finally:
        with suppress(OSError):
            Path(temporary).unlink()
