"""Builds of C++ kernels kept on disk: where, how much there is, and forgetting them.

A folder holds the header, compiled for a profile by a compiler, and what was built against it. Each
state of the header is another: those that nothing has asked for in a month go when one is made.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from pto.core.errors import PtoError, fail
from pto.core.trust import is_trusted, refused

_NAME: Final = re.compile(r"\w+-[0-9a-f]{20}")
_MARK: Final = Path("include", "pto", "machine")  # what a folder of ours has inside
_MONTH: Final = 30 * 24 * 3600.0  # seconds


def folder() -> Path:
    """The folder of the builds; a private one of this process if other users can write to it."""
    home = chosen()
    return _private() if refused(home) else home


@cache
def _private() -> Path:
    made = Path(tempfile.mkdtemp(prefix="pto-cxx-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def is_ready(path: Path) -> bool:
    """True if a file of a build is there and can be trusted; one that cannot is removed."""
    if is_trusted(path):
        return True
    with suppress(OSError):
        path.unlink()
    return False


def require_own(path: Path) -> None:
    """A folder of builds is the user's own; one that is not is removed, or nothing is built."""
    if path.exists() and not is_trusted(path, stat.S_ISDIR):
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            raise fail(
                "PTO-U011",
                f"{path} cannot be used: others may write to it, and it cannot be removed",
                help="remove it, or set PTO_CXX_CACHE to a folder of the user's own",
            )


def publish(made: Path, target: Path) -> None:
    """Rename a built file to its final name, writable by the user alone."""
    made.chmod(0o700)
    made.replace(target)


def why_not() -> str:
    """Why the chosen folder is not used; empty if it is."""
    try:
        return refused(chosen())
    except PtoError as error:
        return error.diagnostics[0].message


def chosen() -> Path:
    """The chosen folder: PTO_CXX_CACHE, else one in the user's cache directory."""
    given, base = os.environ.get("PTO_CXX_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given)
    try:
        return (Path(base) if base else Path.home() / ".cache") / "pto-machine" / "cxx"
    except RuntimeError:
        raise fail(
            "PTO-U011",
            "builds of C++ kernels cannot be kept: the user has no home",
            help="set PTO_CXX_CACHE to a folder of the user's own",
        ) from None


def _folders() -> Iterator[Path]:
    with suppress(OSError, PtoError):
        for path in folder().iterdir():
            is_ours = _NAME.fullmatch(path.name) and is_trusted(path, stat.S_ISDIR)
            if is_ours and (path / _MARK).is_dir():
                yield path


def _sizes(home: Path) -> list[int]:
    """Bytes of each file; those that another process takes away meanwhile do not count."""
    found: list[int] = []
    for top, _, names in os.walk(home):
        for name in names:
            with suppress(OSError):
                found.append(Path(top, name).lstat().st_size)
    return found


def info() -> tuple[int, int]:
    """How many files there are, and their bytes."""
    sizes = [size for home in _folders() for size in _sizes(home)]
    return len(sizes), sum(sizes)


def clear(unused: float = 0.0) -> int:
    """Forget what nothing has asked for in so many seconds; how many files that were."""
    count = 0
    for home in list(_folders()):
        if not unused or home.stat().st_mtime < time.time() - unused:
            count += len(_sizes(home))
            shutil.rmtree(home, ignore_errors=True)
    return count


def note_use(home: Path, is_new: bool) -> None:
    """A folder is asked for: it stays, and a new one takes the place of old ones."""
    with suppress(OSError):
        os.utime(home)
        if is_new:
            clear(_MONTH)
