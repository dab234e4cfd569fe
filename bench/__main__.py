"""`python -m bench`: run every bench_* module of this folder and print its table."""

from __future__ import annotations

import importlib
from pathlib import Path

from bench.measure import table

for path in sorted(Path(__file__).parent.glob("bench_*.py")):
    module = importlib.import_module(f"bench.{path.stem}")
    print(table(str(module.__doc__).strip(), module.run()), flush=True)
