"""`python -m pto.lang.stubs`: the stub files of `pto`, written from the rows and the public names.

Editors and type checkers read them; nothing at run time does. A test compares them with the rows.
"""

from __future__ import annotations

from pathlib import Path

from pto.core.dtypes import ALL
from pto.isa.row.instr import Instr
from pto.lang.call.signature import Param, instructions, parameters, takes_indices
from pto.lang.names import HOMES, MODULES, RENAMED, exported

_ROOT = Path(__file__).parent.parent
_ANNOTATIONS: dict[str, str] = dict.fromkeys(("Global", "Scalar"), "pto.lang.values.annotations")
_NUMBER = "Number"
_VIEW = "Array"
_ADDRESS = "Address"
_WORDS = {  # the Python type of an operand, by a word of its kind; the first that matches
    "tile or view": "Tile | Array",
    "tile or scalar": "Tile | Number",
    "vreg or scalar": "Vreg | Number",
    "vreg or mask": "Vreg | Mask",
    "mask or index": "Mask | Number",
    "scalar or pointer": "Number | Address",
    "logical": "Logical",
    "vreg": "Vreg",
    "mask": "Mask",
    "tile": "Tile",
    "view": _VIEW,
    "pointer": _ADDRESS,
    "buffer": _ADDRESS,
    "address": _ADDRESS,
    "memref": _ADDRESS,
}
_NUMBERS = ("scalar", "element", "number", "int", "float", "index", "i64", "i32", "i16", "i1")
_RESULTS = {  # where a result is narrower than an operand of its kind
    "Number": "Scalar[object]",
    _ADDRESS: "Pointer",
    **dict.fromkeys(("Logical", "object", _VIEW), "ValueHandle"),
    "Tile | Array": "Tile",
}


def files() -> dict[Path, str]:
    """Every stub file and what it should hold."""
    return {
        _ROOT / "__init__.pyi": _package(),
        _ROOT / "lang" / "values" / "elements.pyi": _elements(),
        _ROOT / "isa" / "__init__.pyi": _instructions(),
    }


def _package() -> str:
    homes = "\n".join(f"from {home} import {name} as {name}" for home, name in sorted(_public()))
    names = ", ".join(f'"{name}"' for name in exported())
    renamed = "\n".join(
        f"from {home} import {old} as _{old}\n{new} = _{old}"
        for new, (home, old) in sorted(RENAMED.items())
    )
    modules = "\n".join(f"from pto import {name} as {name}" for name in MODULES)
    stars = "from pto.lang.values.elements import *"
    return (
        "# The public names of `pto`. Written by `python -m pto.lang.stubs`: do not edit.\n"
        "# ruff: noqa\n# fmt: off\n"
        f"{homes}\n{modules}\n{renamed}\n{stars}\n\n__all__ = [{names}]\n\n__version__: str\n"
    )


def _public() -> list[tuple[str, str]]:
    """Where a type checker finds each public name."""
    return [
        (_ANNOTATIONS.get(name, home), name)
        for home, names in HOMES.items()
        for name in names.split()
    ]


def _elements() -> str:
    listed = "\n".join(f"class {kind.name}(Element): ..." for kind in ALL)
    names = ", ".join(f'"{kind.name}"' for kind in ALL)
    return (
        "# Element types. Written by `python -m pto.lang.stubs`: do not edit.\n"
        "# ruff: noqa\n# fmt: off\n"
        "from pto.core.dtypes import DType\n\n"
        "def element(given: object) -> DType: ...\n\n"
        f"__all__ = [{names}]\n\n"
        "ELEMENTS: dict[str, DType]\n\n"
        f"class Element: ...\n\n{listed}\n"
    )


def _instructions() -> str:
    functions_by_name = instructions()
    names = ", ".join(f'"{name}"' for name in functions_by_name)
    functions = "\n".join(_function(name, row) for name, row in functions_by_name.items())
    return (
        "# Every instruction. Written by `python -m pto.lang.stubs`: do not edit.\n"
        "# ruff: noqa\n# fmt: off\n"
        "from collections.abc import Callable\n"
        "from types import ModuleType\n\n"
        "from pto.core.dtypes import DType\n"
        "from pto.isa.row.types import Type\n"
        "from pto.lang.call.session import ValueHandle\n"
        "from pto.lang.values.annotations import Array\n"
        "from pto.lang.values.elements import Element\n"
        "from pto.lang.values.registers import Mask, Pointer, Vreg\n"
        "from pto.lang.values.scalars import Scalar\n"
        "from pto.lang.values.tiles import Tile\n"
        "\n"
        "Number = int | float | Scalar[object]\n"
        "Address = Pointer | Tile | Array\n"
        "Logical = ValueHandle | Number\n"
        "Kind = type[Element] | DType | Type | ValueHandle | str  # the type of a result\n\n"
        f"__all__ = [{names}]\n\n{functions}\n\n"
        "def provide(functions: Callable[[], ModuleType]) -> None: ...\n"
    )


def _function(name: str, row: Instr) -> str:
    parts: list[str] = []
    positional = [p for p in parameters(row) if not p.keyword_only]
    named = [p for p in parameters(row) if p.keyword_only]
    parts += map(_parameter, positional)
    if takes_indices(row):
        parts.append(f"*indices: {_NUMBER}")
    elif named:
        parts.append("*")
    parts += map(_parameter, named)
    results = [r for r in row.results if not r.optional]
    kinds = [_RESULTS.get(k, k) for k in (_kind(r.kind) for r in results)]
    back = "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
    text = row.meaning.replace("\\", "\\\\").replace('"', "'")
    return f'def {name}({", ".join(parts)}) -> {back}:\n    """{text}"""'


def _parameter(param: Param) -> str:
    default = "" if param.required else " = None"
    return f"{param.name}: {_type(param)}{' | None' if default else ''}{default}"


def _type(param: Param) -> str:
    if param.operand is not None:
        kind = _kind(param.operand.kind)
        return f"list[{kind}] | {kind}" if param.operand.variadic else kind
    if param.attr is None:
        return "Kind"
    kinds = {"int": "int", "i32": "int", "i8": "int", "bool": "bool", "str": "str"}
    return kinds.get(param.attr.kind, "str | int")


def _kind(kind: str) -> str:
    if kind in _NUMBERS:
        return _NUMBER
    return next((python for word, python in _WORDS.items() if word in kind), "object")


def main() -> None:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
