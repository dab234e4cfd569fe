"""The disk cache of C++ builds: its folder, its size, and removal of old builds.

A folder contains the header, compiled for a profile by a compiler, and the builds against it. Each
version of the header has its own folder; folders unused for a month are removed when one is added.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from pto.core.disk_cache import DiskCache, is_trusted
from pto.core.errors import fail

_NAME: Final = re.compile(r"\w+-[0-9a-f]{20}")
_MARK: Final = Path("include", "pto", "machine")  # present in every folder of the cache
_MONTH: Final = 30 * 24 * 3600.0  # seconds


def _is_ours(path: Path) -> bool:
    return (path / _MARK).is_dir()


BUILDS: Final = DiskCache("cxx", "PTO_CXX_CACHE", _NAME, _is_ours, has_folders=True)


def folder() -> Path:
    """The folder of the builds; a private one of this process if other users can write to it."""
    home = BUILDS.directory()
    if home is None:
        raise fail(
            "PTO-U011",
            "builds of C++ kernels cannot be cached: the user has no home",
            help="set PTO_CACHE_DIR to a folder of the user's own",
        )
    return _private() if BUILDS.refused() else home


@cache
def _private() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pto-cxx-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def is_ready(path: Path) -> bool:
    """True if a file of a build exists and is trusted; an untrusted file is removed."""
    if is_trusted(path):
        return True
    with suppress(OSError):
        path.unlink()
    return False


def require_own(path: Path) -> None:
    """Raise if a folder of builds does not belong to the user alone and cannot be removed."""
    if path.exists() and not is_trusted(path, stat.S_ISDIR):
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            raise fail(
                "PTO-U011",
                f"{path} cannot be used: other users may write to it, and it cannot be removed",
                help="remove it, or set PTO_CACHE_DIR to a folder that only you can write to",
            )


def publish(built: Path, target: Path) -> None:
    """Rename a built file to its final name, writable by the user alone."""
    built.chmod(0o700)
    built.replace(target)


def note_use(home: Path, is_new: bool) -> None:
    """Record the use of a folder; a new folder also triggers the removal of old ones."""
    with suppress(OSError):
        os.utime(home)
        if is_new:
            BUILDS.clear(_MONTH)
