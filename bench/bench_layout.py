"""Layout conversion of a 128x128 f16 tile against a plain NumPy copy of the same bytes."""

from __future__ import annotations

import numpy as np

from bench.measure import Rows, seconds, table
from pto.core.layout import NZ

ROWS = COLS = 128
GOAL = 5.0


def run() -> Rows:
    tile = np.arange(ROWS * COLS, dtype=np.uint16).view(np.float16).reshape(ROWS, COLS)
    stored = NZ.to_storage(tile, tile.itemsize)
    took = seconds(
        {
            "copy": lambda: tile.copy(),
            "ND -> NZ": lambda: NZ.to_storage(tile, tile.itemsize),
            "NZ -> ND": lambda: NZ.to_logical(stored, ROWS, COLS, tile.itemsize),
        },
        rounds=41,
        calls=200,
    )
    return [
        ("copy of 32 KiB", took["copy"] * 1e6, "us"),
        ("ND -> NZ", took["ND -> NZ"] / took["copy"], f"x copy (goal {GOAL:g})"),
        ("NZ -> ND", took["NZ -> ND"] / took["copy"], f"x copy (goal {GOAL:g})"),
    ]


if __name__ == "__main__":
    print(table(str(__doc__), run()))
