"""Writes numbers of a launch into a program, so that passes see constants."""

from __future__ import annotations

from collections.abc import Mapping

from pto.ir.builder import Builder
from pto.ir.graph import Operation
from pto.isa.row.attributes import OfType
from pto.isa.row.types import Function, Scalar


def bind(function: Operation, numbers: Mapping[str, int]) -> None:
    """Replace each parameter that is named by a constant."""
    entry = function.regions[0].block
    builder = Builder(function)
    for parameter in entry.args:
        if parameter.name in numbers and isinstance(parameter.type, Scalar):
            constant = builder.constant(numbers[parameter.name], parameter.type)
            parameter.replace_all_uses(constant)
    entry.args = [arg for arg in entry.args if arg.name not in numbers]
    types = tuple(arg.type for arg in entry.args)
    function.attrs["function_type"] = OfType(Function(types, ()))
