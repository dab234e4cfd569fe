"""Files that code is executed from: trusted if only the user can have written them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path


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


def distrust(found: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """The reason not to trust a file or folder; empty if it is trusted."""
    if not is_kind(found.st_mode):
        return "it is of another kind"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write to it"
    return ""
