"""`[tool.pto]` in the `pyproject.toml` of a project: the profile and the chip of its kernels."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pto.core.errors import fail, nearest
from pto.target.defaults import DEFAULTS
from pto.target.profile import device as find_device
from pto.target.profile import profile_name

_KEYS = ("profile", "device")


def apply() -> None:
    """Use the settings of the nearest `pyproject.toml` that has some, from this folder upwards."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        path = folder / "pyproject.toml"
        table = _table(path) if path.is_file() else None
        if table is not None:
            _apply(path, table)
            return


def _table(path: Path) -> dict[str, Any] | None:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError):
        return None
    except tomllib.TOMLDecodeError as error:
        raise fail("PTO-U014", f"{path} is not TOML: {error}") from None
    table = tool.get("pto") if isinstance(tool, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return table if isinstance(table, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _apply(path: Path, table: dict[str, Any]) -> None:
    for key, value in table.items():
        if key not in _KEYS:
            help = nearest(key, _KEYS) or f"the settings are {' and '.join(_KEYS)}"
            raise fail("PTO-U014", f"{path}: [tool.pto] has no setting {key!r}", help=help)
        if not isinstance(value, str):
            message = f"{path}: [tool.pto] {key} is a text, got {value!r}"
            raise fail("PTO-U014", message, help=f'{key} = "{_EXAMPLES[key]}"')
    chip = find_device(table["device"]) if "device" in table else None
    profile = table.get("profile") or (chip.profile if chip else None)
    if profile is not None:
        DEFAULTS.text = DEFAULTS.python = profile_name(profile)
    DEFAULTS.device = chip.name if chip else None


_EXAMPLES = {"profile": "a2a3", "device": "910b2"}
