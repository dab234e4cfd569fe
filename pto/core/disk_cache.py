"""Caches on disk: folders below one root, with entries that only the user can have written.

The root is PTO_CACHE_DIR, else `pto` in the user's cache directory. Code from a cache is executed:
a folder that other users may write to is not used, and entries of other users are ignored.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pto.core.trust import distrust, refused


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
        given, root = os.environ.get(self.variable), _root()
        return Path(given) if given else root / self.folder if root is not None else None

    def refused(self) -> str:
        """The reason why the folder is not used; empty if it is."""
        home, root = self.directory(), _root()
        inside = root is not None and home is not None and root in home.parents
        return refused(home) or (refused(root) if inside else "")

    def trusted(self) -> Path | None:
        return None if self.refused() else self.directory()

    def entries(self) -> list[CacheEntry]:
        """Files or folders of the user with the name of an entry, least recently used first."""
        found: list[CacheEntry] = []
        kind = stat.S_ISDIR if self.has_folders else stat.S_ISREG
        home = self.trusted()
        if home is None:
            return found
        with suppress(OSError), os.scandir(home) as listed:
            for each in (e for e in listed if self.name.fullmatch(e.name)):
                with suppress(OSError):
                    status = each.stat(follow_symlinks=False)
                    if not distrust(status, kind):
                        sizes = _sizes(each.path) if self.has_folders else [status.st_size]
                        path = Path(each.path)
                        found.append(CacheEntry(status.st_mtime, len(sizes), sum(sizes), path))
        return sorted(found)

    def info(self) -> Info:
        own = [each for each in self.entries() if self.is_ours(each.path)]
        files, nbytes = sum(e.files for e in own), sum(e.nbytes for e in own)
        return Info(self.directory(), files, nbytes, self.refused())

    def clear(self, unused: float = 0.0) -> int:
        """Remove entries that were not used for so many seconds; returns the number of files."""
        old = [e for e in self.entries() if not unused or e.last_use < time.time() - unused]
        own = [each for each in old if self.is_ours(each.path)]
        for each in own:
            _remove(each.path)
        return sum(each.files for each in own)

    def shrink(self, limit: int) -> None:
        """Remove the least recently used entries until the rest has at most `limit` bytes."""
        found = self.entries()
        total = sum(each.nbytes for each in found)
        for each in found:
            if total <= limit:
                return
            if self.is_ours(each.path):
                _remove(each.path)
            total -= each.nbytes


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, all writable by the user alone."""
    for each in reversed([p for p in (path, *path.parents) if not p.exists()]):
        each.mkdir(mode=0o700, exist_ok=True)


def users_root() -> Path | None:
    """`pto` in the user's cache directory; None if the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "pto"
    except RuntimeError:  # no HOME, and no entry in the list of users
        return None


def _root() -> Path | None:
    given = os.environ.get("PTO_CACHE_DIR")
    return Path(given) if given else users_root()


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _sizes(folder: str) -> list[int]:
    """Bytes of each file; a file that another process removes meanwhile does not count."""
    found: list[int] = []
    for top, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found.append(Path(top, name).lstat().st_size)
    return found
