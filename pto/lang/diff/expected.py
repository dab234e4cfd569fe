"""What a kernel should give: told by a function, or by arrays. Nothing is compared here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pto.lang.call.place import mistake
from pto.run.launch.arrays import borrow

Expected = dict[str, Any]  # by parameter


def copied(values: Sequence[Any]) -> list[Any]:
    """Copies of arrays and tensors; one that is given twice stays one. Other values as they are."""
    known: dict[int, Any] = {}
    return [known.setdefault(id(value), _copy(value)) for value in values]


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.copy(value)
    clone: Any = getattr(value, "clone", None)  # as torch spells it
    if callable(clone):
        return clone()
    lent = borrow(value)
    return value if lent is None else np.array(lent.array)


def by_reference(
    reference: Callable[..., Any], values: Sequence[Any], names: Sequence[str], arrays: list[str]
) -> Expected:
    """What a function gives for the same arguments: arrays it returns, or those it changed."""
    given = copied(values)
    found = reference(*given)
    if found is not None:
        return by_value(found, arrays)
    return {name: value for name, value in zip(names, given, strict=True) if name in arrays}


def by_value(found: Any, arrays: list[str]) -> Expected:
    """By name, or for as many parameters as there are values: the last of those that are arrays."""
    if isinstance(found, Mapping):
        named: Expected = dict(found)  # pyright: ignore[reportUnknownArgumentType]
        wrong = [name for name in named if name not in arrays]
        if wrong:
            raise mistake(
                "PTO-U075",
                f"there is no array {wrong[0]!r} to compare with; the arrays are"
                f" {', '.join(arrays)}",
            )
        return named
    values: list[Any] = list(found) if isinstance(found, tuple | list) else [found]
    if not 1 <= len(values) <= len(arrays):
        raise mistake(
            "PTO-U075",
            f"{len(values)} results are expected of a kernel with {len(arrays)} arrays"
            f" ({', '.join(arrays)})",
            help="return one array for each of the last parameters, or a dict of name and array",
        )
    return dict(zip(arrays[-len(values) :], values, strict=True))
