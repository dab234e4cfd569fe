"""Output files, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pto.core.errors import fail


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file atomically: an older file of this name is replaced only by the complete one."""
    raw = data.encode() if isinstance(data, str) else data
    try:
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_bytes(raw)
            return
        target = path.resolve()
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            part.write_bytes(raw)
            part.replace(target)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
    except OSError as error:
        raise fail("PTO-U011", f"{path} cannot be written: {error.strerror or error}") from None
