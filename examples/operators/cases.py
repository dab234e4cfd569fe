"""Small calls of operators: arrays with drawn values, and attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from pto.core.dtypes import decode, dtype, encode

_ARRAY = re.compile(r"(\w+)\[([\d, ]*)\](?: ([-+.\w]+)\.\.([-+.\w]+))?")
Arguments = dict[str, Any]


def unfilled(case: Mapping[str, Any]) -> Arguments:
    """The arguments of a case with arrays that have no values, for predictions of times."""
    return {name: _value(each, None) for name, each in case.items()}


def drawn(case: Mapping[str, Any], seed: int = 0) -> Arguments:
    """The arguments of a case. A text `f16[33, 70] -2..3` is an array with values in that range,
    -1 to 1 for floats and 0 to 100 for integers by default; a list of such texts is a list of
    arrays. Everything else is an attribute."""
    random = np.random.default_rng(seed)
    return {name: _value(each, random) for name, each in case.items()}


def _value(each: Any, random: np.random.Generator | None) -> Any:
    if isinstance(each, list):
        return [_value(part, random) for part in each]
    found = _ARRAY.fullmatch(each) if isinstance(each, str) else None
    if found is None:
        return each
    kind = dtype("u8" if found[1] == "bool" else found[1])
    shape = tuple(int(n) for n in found[2].split(",") if n.strip())
    if random is None:
        return np.zeros(shape, np.bool_ if found[1] == "bool" else kind.numpy)
    if kind.is_integer:
        low, high = int(found[3] or 0), int(found[4] or (1 if found[1] == "bool" else 100))
        values = random.integers(low, high, shape, np.int64, endpoint=True)
    else:
        low, high = float(found[3] or -1), float(found[4] or 1)
        if np.isfinite(low) and np.isfinite(high):
            values = random.uniform(low, high, shape)
        else:
            special = np.where(random.random(shape) < 0.5, low, high)
            values = np.where(random.random(shape) < 0.1, special, random.uniform(-1, 1, shape))
    items = np.ascontiguousarray(encode(kind, values)).view(kind.numpy).reshape(shape)
    return items.view(np.bool_) if found[1] == "bool" else items


def exact(value: Any) -> Any:
    """An array as f64 or i64, lists element by element; attributes as they are."""
    if isinstance(value, list | tuple):
        return [exact(each) for each in value]
    if not isinstance(value, np.ndarray) or value.dtype == np.bool_:
        return value
    return decode(dtype(value.dtype), value).reshape(value.shape)
