"""Expected results of a kernel, from a reference function or from arrays; compares nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pto.lang.call.place import mistake
from pto.run.launch.arrays import borrow

Expected = dict[str, Any]  # by parameter


def copied(values: Sequence[object]) -> list[object]:
    """Copies of arrays and tensors (one copy if given twice); other values unchanged."""
    copies: dict[int, object] = {}
    return [copies.setdefault(id(value), _copy(value)) for value in values]


def _copy(value: object) -> object:
    if isinstance(value, np.ndarray):
        return np.copy(value)
    clone: object = getattr(value, "clone", None)  # as torch spells it
    if callable(clone):
        return clone()
    lent = borrow(value)
    return value if lent is None else np.array(lent.array)


def by_reference(
    reference: Callable[..., object],
    values: Sequence[object],
    names: Sequence[str],
    arrays: list[str],
) -> Expected:
    """The results of a function for the same arguments: returned arrays, or changed arguments."""
    args = copied(values)
    result = reference(*args)
    if result is not None:
        return by_value(result, arrays)
    return {name: value for name, value in zip(names, args, strict=True) if name in arrays}


def by_value(result: object, arrays: list[str]) -> Expected:
    """Expected values by parameter: from a dict, or for the last array parameters in order."""
    if isinstance(result, Mapping):
        named: Expected = dict(result)  # pyright: ignore[reportUnknownArgumentType]
        wrong = [name for name in named if name not in arrays]
        if wrong:
            raise mistake(
                "PTO-U075",
                f"there is no array {wrong[0]!r} to compare with; the arrays are"
                f" {', '.join(arrays)}",
            )
        return named
    values: list[object] = list(result) if isinstance(result, tuple | list) else [result]
    if not 1 <= len(values) <= len(arrays):
        raise mistake(
            "PTO-U075",
            f"{len(values)} results are expected of a kernel with {len(arrays)} arrays"
            f" ({', '.join(arrays)})",
            help="return one array for each of the last parameters, or a dict of name and array",
        )
    return dict(zip(arrays[-len(values) :], values, strict=True))
