"""A bench for the fixpipe: an accumulator tile in, a destination out."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.memory import Space
from tests.transfers import FILL, NAMES, Transfers, places, up

ELEMS = {**NAMES, np.uint8: "ui8", np.int16: "i16"}


def fixpipe(
    acc: np.ndarray[Any, Any],
    clauses: str = "",
    *,
    kind: Any = np.float32,
    elem: str | None = None,
    to: str = "l1",
    size: int = 4096,
    **options: Any,
) -> np.ndarray[Any, Any]:
    """The destination, as items of `kind`, after a copy of all of `acc` (m x n).

    options: stride, pitch (of L0C), m, n, ctrl, before (of global memory), numbers (of the layout
    and loop3), payloads (name, type, value), where a table in fb has (address, values).
    """
    m, n = acc.shape
    pitch = options.get("pitch", up(m, 16))
    bench = Transfers()
    out = bench.at("s", f"{ELEMS[acc.dtype.type]}, l0c", 0).view(acc.dtype)
    out[places(m, n, pitch)] = acc
    elem = elem or ELEMS[kind]
    if to == "gm":
        before = options.get("before", np.full(size, FILL, np.uint8))
        live = bench.bytes("d", elem, before)
    else:
        live = bench.at("d", f"{elem}, {to}", 0)[:size]
    types = ["{s}", "{d}", *["i64"] * 4]
    own = {"gm": ", #0, #0", "ub": ", dst_mode(#0)", "l1": ""}[to]
    types += {"gm": ["i64"] * 2, "ub": ["i64"], "l1": []}[to]
    for name, type, value in options.get("payloads", ()):
        if ", fb" in type:
            address, values = value
            bench.at(name, type, address)
            table = bench.core.memory(Space.FIXPIPE).data
            raw = np.ascontiguousarray(values).view(np.uint8)
            table[address : address + raw.size] = raw
        else:
            bench.scalar(name, type, value)
        types.append(f"{{{name}}}")
    types += ["i64"] * options.get("numbers", 0)
    head = f"pto.set_ctrl #{options['ctrl']} : i64\n" if "ctrl" in options else ""
    rows, cols = options.get("m", m), options.get("n", n)
    stride = options.get("stride", n)
    bench.go(
        f"{head}pto.mte_l0c_{to} %s, %d, #{rows}, #{cols}, #{pitch}, #{stride}{own}{clauses}"
        f" : {', '.join(types)}"
    )
    return live.view(kind)


def ramp(m: int, n: int, kind: Any = np.float32) -> np.ndarray[Any, Any]:
    """Different numbers, some below zero."""
    return (np.arange(m * n).reshape(m, n) - 7).astype(kind)
