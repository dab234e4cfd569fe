"""Headers of a repository are found where its build finds them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pto
from pto.core.errors import PtoError

_KERNEL = """#include <pto/pto-inst.hpp>
#include "{header}"
using namespace pto;
__global__ AICORE void fill(__gm__ float* out)
{{
    using G = GlobalTensor<float, Shape<1, 1, 1, 8, 8>, Stride<64, 64, 64, 8, 1>>;
    Tile<TileType::Vec, float, 8, 8> t;
    TASSIGN(t, 0x0);
    G to(out);
    TEXPANDS(t, VALUE);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, t);
}}
"""


def _repository(root: Path, files: dict[str, str]) -> Path:
    (root / ".git").mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / "op" / "a5" / "fill.cpp"


def _filled(source: Path) -> float:
    out = np.zeros((8, 8), np.float32)
    pto.cpp(str(source), profile="a2a3")["fill"](out)
    assert (out == out[0, 0]).all()
    return float(out[0, 0])


@pytest.mark.parametrize("place", ["common", "include/common", "op/common"])
def test_a_folder_above_the_source_has_the_header(tmp_path: Path, place: str) -> None:
    files = {f"{place}/value.h": "#define VALUE 3.0f\n"}
    source = _repository(
        tmp_path, {**files, "op/a5/fill.cpp": _KERNEL.format(header="common/value.h")}
    )
    assert _filled(source) == 3


def test_a_header_of_the_repository_includes_another(tmp_path: Path) -> None:
    files = {
        "op/a5/fill.cpp": _KERNEL.format(header="first.h"),
        "include/first.h": '#include "parts/second.h"\n',
        "op/parts/second.h": "#define VALUE 4.0f\n",
    }
    assert _filled(_repository(tmp_path, files)) == 4


def test_cmake_names_the_folder(tmp_path: Path) -> None:
    cmake = "target_include_directories(fill PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/private)\n"
    files = {
        "op/a5/fill.cpp": _KERNEL.format(header="value.h"),
        "op/CMakeLists.txt": cmake,
        "op/private/value.h": "#define VALUE 5.0f\n",
    }
    assert _filled(_repository(tmp_path, files)) == 5


def test_the_compile_command_of_a_source_comes_first(tmp_path: Path) -> None:
    files = {
        "op/a5/fill.cpp": _KERNEL.format(header="value.h"),
        "mine/value.h": "#define VALUE 6.0f\n",
        "op/value.h": "#define VALUE 7.0f\n",
    }
    source = _repository(tmp_path, files)
    command = {"directory": str(tmp_path), "file": "op/a5/fill.cpp", "arguments": ["cc", "-Imine"]}
    (tmp_path / "compile_commands.json").write_text(json.dumps([command]), encoding="utf-8")
    assert _filled(source) == 6


def test_the_message_names_a_header_that_lies_elsewhere(tmp_path: Path) -> None:
    files = {
        "op/a5/fill.cpp": _KERNEL.format(header="value.h"),
        "tools/deep/value.h": "#define VALUE 8.0f\n",
    }
    source = _repository(tmp_path, files)
    with pytest.raises(PtoError) as error:
        _filled(source)
    folder = tmp_path / "tools" / "deep"
    assert f"-I {folder}" in (error.value.diagnostics[0].help or "")


def test_a_template_names_the_file_that_instantiates_it(tmp_path: Path) -> None:
    template = _KERNEL.format(header="value.h").replace(
        "__global__", "template <int N>\n__global__"
    )
    files = {
        "op/a5/fill.cpp": template,
        "op/value.h": "#define VALUE 1.0f\n",
        "op/host.cpp": "void start(float* x) { fill<16>(x); }\n",
    }
    source = _repository(tmp_path, files)
    with pytest.raises(PtoError) as error:
        _filled(source)
    text = error.value.diagnostics[0].help or ""
    assert "host.cpp:1" in text and "fill<16>" in text
