"""Arguments of rules: a parameter names an operand, result or attribute, its annotation what of it.

`rule.py` has the decorator that uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pto.isa.row import types

if TYPE_CHECKING:
    from pto.isa.rules.rule import Case

Query = Callable[["Case", str], Any]

_QUERIES: dict[str, Query] = {
    "Case": lambda case, name: case,  # the operation itself
    "TileType": lambda case, name: case.tile(name),
    "t.Scalar": lambda case, name: case.elem(name),  # the element type of whatever it is
    "int": lambda case, name: case.number(name),
    "str": lambda case, name: case.word(name),
}


def _query(annotation: str) -> Query:
    if annotation in _QUERIES:
        return _QUERIES[annotation]
    classes = tuple(attrgetter(each.removeprefix("t."))(types) for each in annotation.split(" | "))

    def of_type(case: Case, name: str) -> types.Type | None:
        type = case.type(name)
        return type if isinstance(type, classes) else None

    return of_type


def with_arguments(test: Callable[..., str | None]) -> Callable[[Case], str | None]:
    """A test of a case that calls `test` with its arguments, and holds where one is None."""
    parameters = [(name, kind) for name, kind in test.__annotations__.items() if name != "return"]
    if [kind for _, kind in parameters] == ["Case"]:
        return test
    queries = [(name, _query(kind)) for name, kind in parameters]

    def of_case(case: Case) -> str | None:
        arguments: list[Any] = []
        for name, query in queries:
            argument = query(case, name)
            if argument is None:
                return None
            arguments.append(argument)
        return test(*arguments)

    return of_case
