"""How large an array a launch needs: what views, calls and queues of a program say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, integers, parameters

VIEW = """
    %c1 = arith.constant 1 : index
    %rows = arith.constant {rows} : index
    %cols = arith.constant {cols} : index
    %v = pto.make_tensor_view %p, shape = [%rows, %cols], strides = [%cols, %c1] : !pto.tensor_view<?x?xf32>
"""  # noqa: E501
TAKES_ONE = "func.func @f(%a: !pto.ptr<f32, gm>) {\n  return\n}"


def sizes(text: str) -> dict[str, int | None]:
    module = parse(text)
    return {p.name: p.elements for p in parameters(*entry_functions(module, None))}


def test_a_view_says_how_far_it_reaches() -> None:
    body = VIEW.format(rows=8, cols=16)
    assert sizes(f"func.func @f(%p: !pto.ptr<f32>, %n: i32) {{{body}return\n}}") == {
        "p": 128,
        "n": None,
    }


def test_a_called_function_says_it_for_its_caller() -> None:
    text = f"""
    func.func @main(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>) attributes {{pto.entry}} {{
      func.call @inner(%b) : (!pto.ptr<f32>) -> ()
      return
    }}
    func.func private @inner(%p: !pto.ptr<f32>) {{
      {VIEW.format(rows=4, cols=32)}
      return
    }}
    """
    assert sizes(text) == {"a": None, "b": 128}


def test_the_slots_of_a_queue_count() -> None:
    """Eight slots one way, four each way; the view of an entry is a single slot."""
    queue = (
        "pto.aic_initialize_pipe {{id = {id}, dir_mask = {mask}, slot_size = 1024}} ({operands})"
    )
    local = "c2v_consumer_buf = %z : i32, v2c_consumer_buf = %z : i32"
    one = queue.format(id=0, mask=1, operands="gm_slot_buffer = %a : !pto.ptr<f32>, " + local)
    both = queue.format(id=1, mask=3, operands="gm_slot_buffer = %b : !pto.ptr<f16>, " + local)
    entry = queue.format(id=2, mask=2, operands="gm_slot_tensor = %v : !pto.tensor_view<16x16xf32>")
    text = f"""
    func.func @f(%a: !pto.ptr<f32>, %b: !pto.ptr<f16>, %p: !pto.ptr<f32>)
        attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
      %z = arith.constant 0 : i32
      {VIEW.format(rows=16, cols=16).replace("?x?", "16x16")}
      {one}
      {both}
      {entry}
      return
    }}
    """
    assert sizes(text) == {"a": 8 * 256, "b": 2 * 4 * 512, "p": 8 * 256}


def test_functions_that_run_together_share_their_parameters_by_name() -> None:
    text = f"""
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @c(%a: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
        return
      }}
      func.func @v(%p: !pto.ptr<f32>, %a: !pto.ptr<f32>)
          attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
        {VIEW.format(rows=2, cols=8)}
        return
      }}
    }}
    """
    assert sizes(text) == {"a": None, "p": 16}


def _built(text: str) -> np.ndarray:
    (array,) = build(parameters(*entry_functions(parse(TAKES_ONE), None)), {"a": text}, 0)
    return array


@pytest.mark.parametrize(
    "text",
    [
        "zeros:9999999999999999999999xf32",
        "zeros:0x64xf32",
        "rand:-4x4xf32",
        "full(abc):4xf32",
        "full(1e999):4xf32",
        "full(nan):4xi32",
        "full(300):4xi8",
        "full(1.5):4xi32",
        "full(1):" + 201 * "1x" + "f32",
        "ones",
        "",
        "@",
    ],
)
def test_words_that_make_no_array(text: str) -> None:
    with pytest.raises(PtoError) as caught:
        _built(text)
    assert caught.value.code == "PTO-U036"


def test_what_a_type_can_hold_is_filled_in() -> None:
    assert (_built("full(-inf):4xf32") == -np.inf).all()
    assert (_built("full(-128):4xi8") == -128).all()
    assert np.isnan(_built("full(nan):4xf16")).all()


def _header(text: str) -> bytes:
    head = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 no archive",
        b"\x93NUMPY\x09\x00" + 40 * b"x",
        _header("{'descr': '<f4', 'fort"),
        _header("{'descr': " + 3000 * "["),
        _header("{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (1,)}"),
        _header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}"),
        _header("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, 64)}"),
        _header("{'descr': '|O', 'fortran_order': False, 'shape': (4,)}") + b"abcd",
    ],
)
def test_files_that_hold_no_array(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(data)
    with pytest.raises(PtoError) as caught:
        _built(str(path))
    assert caught.value.code == "PTO-U037"


def test_numbers_that_are_passed_say_how_far_a_view_reaches() -> None:
    """Of a command line alone: `--arg x=zeros --arg n=0x20` is an array of 32 rows."""
    text = """func.func @f(%x: !pto.ptr<f32>, %n: index, %by: f32) {
      %c1 = arith.constant 1 : index
      %cols = arith.constant 64 : index
      %v = pto.make_tensor_view %x, shape = [%n, %cols], strides = [%cols, %c1]
        : !pto.tensor_view<?x?xf32>
      return
    }"""
    functions = entry_functions(parse(text), None)
    given = {"x": "zeros", "n": "0x20", "by": "1.5"}
    assert integers(given) == {"n": 32}
    array, *_ = build(parameters(*functions, numbers=integers(given)), given, 0)
    assert array.size == 32 * 64
    with pytest.raises(PtoError, match="does not state the size of x"):
        build(parameters(*functions), given, 0)
