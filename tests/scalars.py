"""One scalar operation, on values given by type."""

from __future__ import annotations

from typing import Any

from tests.machine import Bench


def compute(line: str, result: str, **given: tuple[str, Any]) -> Any:
    """The value of `%r` after one line, with `name=(type, value)` given."""
    bench = Bench("a5")
    for name, (type, value) in given.items():
        bench.scalar(name, type, value)
    return bench.run(line, results=f"%r : {result}")[0]


def binary(name: str, type: str, a: Any, b: Any) -> Any:
    return compute(f"%r = arith.{name} %a, %b : {type}", type, a=(type, a), b=(type, b))


def cast(name: str, source: str, target: str, a: Any) -> Any:
    return compute(f"%r = arith.{name} %a : {source} to {target}", target, a=(source, a))
