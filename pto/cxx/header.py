"""The header tree: hand-written types (`include/`), functions generated from the rows.

One macro line per instruction. A call takes any number of operands and events, with the template
parameter lists that C++ PTO code uses: values, then types, then values.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

from pto.cxx import provided, register_forms
from pto.cxx.forms import by_name, cxx_name
from pto.isa.row.pipe_of import OP_PIPES
from pto.isa.table import rows

INCLUDE = Path(__file__).parent / "include"
RUNTIME = Path(__file__).parent / "runtime.cpp"
_QUEUES = INCLUDE / "pto" / "machine" / "queue.hpp"  # defines its instructions for one profile
_COMPOSED = _QUEUES.with_name("compose.hpp")  # further forms of instructions that are generated
_DEFINED = re.compile(r"\b(?:void|RecordEvent|bool|AsyncEvent) ([A-Z][A-Z0-9_]+)\(")
PRELUDE = Path("pto", "machine", "prelude.hpp")  # precompiled: headers that many hosts include
FILES = Path("pto", "machine", "files.hpp")  # included before the host of a system test
_STANDARD = """algorithm array cassert cstdint fstream functional iomanip iostream map memory
 random sstream string thread vector gtest/gtest.h"""
_TYPES, _VALUES = 7, 2  # most types, most values of a template parameter list

# Kinds of operation that events name by source and destination buffer, and other exceptions.
_KINDS = {
    **OP_PIPES,
    "SCALAR": "S",
    "VECTOR": "V",
    "TRESHAPE": "S",
    "TMOV_V2V": "V",
    "TMOV_M2R": "MTE1",
    "TMOV_A2V": "FIX",
    "TMOV_A2M": "FIX",
    "TSTORE_MAT": "MTE3",
    "TEXTRACT_V2M": "FIX",
    "TEXTRACT_M2LR": "MTE1",
    "TEXTRACT_A2M": "FIX",
    "TINSERT_A2M": "FIX",
    "TFILLPAD_VEC": "V",
    "TFILLPAD_MAT": "MTE2",
    "MGATHER_VEC": "V",
    "MGATHER_MAT": "MTE2",
    "TEXPANDS_MAT": "MTE2",
    "TCI": "S",
    "TEXPANDS": "V",
    "TTRANS": "V",
    "MSCATTER": "V",
}

_BEHIND = {"TPRINT": "machine::show<V...>(a...); "}  # done in addition to the record


def kinds() -> str:
    """`kinds.hpp`: the operations that events name, and their pipes."""
    pipes = {
        cxx_name(row): row.pipe
        for row in rows()
        if row.family.section == "tile" and isinstance(row.pipe, str) and row.pipe[0].isupper()
    }
    pipes = dict(sorted((pipes | _KINDS).items()))
    names = ", ".join(pipes)
    listed = ", ".join(f"PIPE_{pipe}" for pipe in pipes.values())
    return (
        "// Generated from the instruction table.\n#pragma once\n#include <pto/machine/words.hpp>\n"
        f"namespace pto {{\nenum class Op : uint16_t {{ {names}, OP_COUNT }};\n"
        f"namespace machine {{ constexpr pipe_t opPipes[] = {{ {listed} }}; }}\n}}\n"
    )


@cache
def by_hand() -> frozenset[str]:
    """Instructions that the headers in `include/` define themselves."""
    paths = (path for path in sorted(INCLUDE.rglob("*.hpp")) if path not in (_QUEUES, _COMPOSED))
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return frozenset(_DEFINED.findall(text))


def _heads(name: str) -> list[str]:
    """The template heads of an instruction: values, types, values."""
    forms = by_name()[name]
    most = min(_TYPES, max(len(form.arguments) for form in forms) + 2)
    heads = [""]
    for before in range(_VALUES + 1):
        for types in range(1, most + 1):
            front = [f"auto P{n}" for n in range(before)] + [f"class X{n}" for n in range(types)]
            heads.append(", ".join(front) + ", ")
    return heads


def instructions() -> str:
    """`instructions.hpp`: a function for each name."""
    lines = ["// Generated from the instruction table.", "#pragma once", "namespace pto {"]
    queues = set(_DEFINED.findall(_QUEUES.read_text(encoding="utf-8")))
    for name in _generated():
        space, _, short = name.rpartition("::")
        lines += [f"namespace {space} {{"] if space else []
        lines += ["#if PTO_MACHINE_PROFILE != 2"] if name in queues else []
        poll = "machine::pause(); " if space else _BEHIND.get(name, "")  # other agents poll it
        for head in _heads(name):
            before = re.findall(r"auto (P\d)", head)
            passed = "".join(f"{argument}, " for argument in before)
            lines.append(
                f"template <{head}auto... V, class... A> RecordEvent {short}(A&&... a)"
                f' {{ machine::record<{passed}V...>("{name}", PTO_HERE, a...); '
                f"{poll.replace('V...', f'{passed}V...')}"
                "return {}; }"
            )
        lines += ["#endif"] if name in queues else []
        lines += ["}"] if space else []
        lines += [f"#define {short}_IMPL {short}"]
    return "\n".join([*lines, "}", ""])


def register_headers() -> dict[str, str]:
    """Headers of vector instructions, by file name."""
    return {
        "register_words.hpp": register_forms.words_header(),
        "register_names.hpp": register_forms.names_header(),
    }


def _generated() -> list[str]:
    names = (n for n in sorted(by_name()) if n.removeprefix("comm::").isupper())
    return [n for n in names if n.removeprefix("comm::") not in by_hand() and n != "TPIPE"]


def write(folder: Path) -> Path:
    """The whole tree, for compilers and editors; returns the folder to pass as -I."""
    shutil.copytree(INCLUDE, folder, dirs_exist_ok=True)
    for name in provided.header_names():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#include <pto/pto-inst.hpp>\n", encoding="utf-8")
    machine = folder / "pto" / "machine"
    (machine / "kinds.hpp").write_text(kinds(), encoding="utf-8")
    (machine / "target.hpp").write_text(provided.macros_text(), encoding="utf-8")
    (machine / "names.hpp").write_text(provided.names_text(), encoding="utf-8")
    (machine / "instructions.hpp").write_text(instructions(), encoding="utf-8")
    for name, text in register_headers().items():
        (machine / name).write_text(text, encoding="utf-8")
    names = ["pto/pto-inst.hpp", *_STANDARD.split()]
    prelude = "".join(f"#include <{name}>\n" for name in names)
    (folder / PRELUDE).write_text(f"#pragma once\n{prelude}", encoding="utf-8")
    return folder
