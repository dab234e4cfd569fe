"""Text to graph and back: spellings of types and attributes, names, regions, the generic form."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.parser import Parser as XdslParser

from pto.core.errors import PtoError
from pto.ir.copied import same
from pto.ir.text.parser import parse, parse_file
from pto.ir.text.printer import print_module
from pto.ir.text.types import parse_type, type_text
from pto.isa.row.attributes import Enum

GOOD = sorted((Path(__file__).parent.parent / "pto" / "good").glob("*.pto"))


@pytest.mark.parametrize(
    ("spelling", "printed"),
    [
        ("!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x64xf32>"),
        (
            "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=64, "
            "blayout=row_major, slayout=none_box, fractal=512, pad=0>",
            "!pto.tile_buf<vec, 16x64xf32>",
        ),
        (
            "!pto.tile_buf<loc=acc, dtype=f32, rows=32, cols=32, v_row=?, v_col=8, "
            "blayout=col_major, slayout=row_major, fractal=1024, pad=3>",
            "!pto.tile_buf<acc, 32x32xf32, valid=?x8, blayout=col_major, slayout=row_major, "
            "fractal=1024, pad=3>",
        ),
        ("!pto.tile_buf<32x64xf32, #pto.address_space<vec>>", "!pto.tile_buf<vec, 32x64xf32>"),
        ("!pto.ptr<f32, gm>", "!pto.ptr<f32>"),
        ("!pto.ptr<!pto.hif8, l0a>", "!pto.ptr<!pto.hif8, l0a>"),
        ("!pto.mask", "!pto.mask"),
        ("!pto.mask<b16>", "!pto.mask<b16>"),
        ("!pto.vreg<128xbf16>", "!pto.vreg<128xbf16>"),
        ("!pto.tensor_view<?x?x1x16x64xui8>", "!pto.tensor_view<?x?x1x16x64xui8>"),
        (
            "memref<16x?xf16, strided<[?, 1], offset: ?>>",
            "memref<16x?xf16, strided<[?, 1], offset: ?>>",
        ),
        ("!pto.eventid_array<4>", "!pto.eventid_array<4>"),
    ],
)
def test_a_type_has_one_printed_spelling(spelling: str, printed: str) -> None:
    assert type_text(parse_type(spelling)) == printed
    assert parse_type(printed) == parse_type(spelling)


@pytest.mark.parametrize(
    "flag",
    [
        '["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]',
        "[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]",
        "[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
    ],
)
def test_spellings_of_a_flag_are_one_operation(flag: str) -> None:
    module = parse(f"func.func @k() {{\n  pto.set_flag{flag}\n  return\n}}")
    op = next(op for op in module.walk() if op.name == "pto.set_flag")
    assert op.attrs["src_pipe"] == Enum("pipe", "PIPE_MTE2")
    assert op.attrs["event_id"] == Enum("event", "EVENT_ID0")


def test_elided_types_take_the_head_of_the_operand() -> None:
    body = "%q = pto.addptr %p, %n : <f32, ub> -> <f32, ub>"
    module = parse(f"func.func @k(%p: !pto.ptr<f32, ub>, %n: index) {{\n  {body}\n  return\n}}")
    op = next(op for op in module.walk() if op.name == "pto.addptr")
    assert op.results[0].type == parse_type("!pto.ptr<f32, ub>")


def test_quoted_keys_aliases_and_nested_modules() -> None:
    text = """
    !tile = !pto.tile_buf<vec, 8x8xf32>
    module attributes {"pto.device-spec" = "Ascend910B1"} {
      module attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
        func.func @k(%t: !tile) { return }
      }
    }
    """
    module = parse(text)
    (function,) = module.functions()
    assert type_text(function.regions[0].block.args[0].type) == "!pto.tile_buf<vec, 8x8xf32>"
    assert same(module.op, parse(print_module(module)).op)


def test_every_operation_has_its_place() -> None:
    module = parse("func.func @k() {\n  %c = arith.constant 1 : index\n  return\n}", "here.pto")
    places = [(op.name, str(op.loc)) for op in module.walk() if op.loc]
    assert ("arith.constant", "here.pto:2:3") in places
    assert ("func.return", "here.pto:3:3") in places


def test_printing_is_stable_and_keeps_names() -> None:
    text = "func.func @k() {\n  %lanes = arith.constant 64 : index\n  return\n}"
    once = print_module(parse(text))
    assert "%lanes = arith.constant 64 : index" in once
    assert print_module(parse(once)) == once


def test_shadowed_names_are_told_apart() -> None:
    loop = "scf.for %i = %a to %b step %c {\n  }\n"
    text = f"func.func @k(%a: index, %b: index, %c: index) {{\n  {loop}  {loop}  return\n}}"
    printed = print_module(parse(text))
    assert printed.count("scf.for %i = %a to %b step %c {") == 2


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_the_generic_form_loads_in_xdsl(path: Path) -> None:
    module = parse_file(path)
    generic = print_module(module, generic=True)
    found = XdslParser(Context(allow_unregistered=True), generic).parse_module()
    outer, *inner = found.walk()  # a module of xDSL's own, around the one of the text
    assert len(inner) == len(list(module.walk())), outer


def test_what_a_compiler_reads_back_stays_as_written():
    text = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%p: !pto.ptr<f32>, %m: memref<256xi64>) {
    %0 = builtin.unrealized_conversion_cast %m : memref<256xi64> to memref<16xi64>
    return
  }
}
"""
    assert print_module(parse(text)) == text
    queue = """module { func.func @f(%t: !pto.tile_buf<vec, 16x16xf32>) attributes
      {pto.kernel_kind = #pto.kernel_kind<vector>} {
      pto.tpush_to_aic(%t : !pto.tile_buf<vec, 16x16xf32>) {id = 1, split = 2}
      return } }"""
    assert "{id = 1, split = 2}" in print_module(parse(queue))
    assert "{id = 1 : i32, split = 2 : i8}" in print_module(parse(queue), generic=True)


def test_names_of_march_that_end_in_dps_are_those_of_today() -> None:
    tile, view = "!pto.tile_buf<vec, 8x8xf32>", "!pto.partition_tensor_view<8x8xf32>"
    text = f"""func.func @f(%t: {tile}, %v: {view}) {{
  pto.tabs_dps ins(%t : {tile}) outs(%t : {tile})
  pto.store_dps ins(%t : {tile}) outs(%v : {view})
  return
}}
"""
    today = text.replace("tabs_dps", "tabs").replace("store_dps", "tstore")
    assert print_module(parse(text)) == print_module(parse(today))
    with pytest.raises(PtoError, match=r"unknown operation `pto\.nothing_dps`"):
        parse(text.replace("tabs_dps", "nothing_dps"))


def test_strides_without_a_comma_before_them_are_those_of_march() -> None:
    text = """func.func @f(%p: !pto.ptr<f32>, %n: index) {
  %0 = pto.make_tensor_view %p, shape = [%n, %n] strides = [%n, %n] : !pto.tensor_view<?x?xf32>
  return
}
"""
    assert "shape = [%n, %n], strides = [%n, %n] :" in print_module(parse(text))


_TILE = "!pto.tile_buf<vec, 4x8xf32>"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        # Logical vectors that PTOAS reads in MLIR's generic form alone.
        (
            "%r = pto.vmi.constant {value = dense<1.0> : tensor<8xf32>} : !pto.vmi.vreg<8xf32>",
            '%r = "pto.vmi.constant"() {value = dense<1.0> : tensor<8xf32>}'
            " : () -> !pto.vmi.vreg<8xf32>",
        ),
        # Words that only stand in quotes or in angles.
        ('pto.dsb "DDR"', 'pto.dsb "DDR"'),
        ("pto.fence.barrier_all <gm>", "pto.fence.barrier_all #pto.fence_scope<gm>"),
        # The dictionary of tcolsum: inside beside a tmp, behind without.
        (
            f"pto.tcolsum ins(%a {{isBinary = true}} : {_TILE}) outs(%b : {_TILE})",
            f"pto.tcolsum ins(%a : {_TILE}) outs(%b : {_TILE}) {{isBinary = true}}",
        ),
        (
            f"pto.tcolsum ins(%a, %b : {_TILE}, {_TILE}) outs(%b : {_TILE}) {{isBinary = true}}",
            f"pto.tcolsum ins(%a, %b {{isBinary = true}} : {_TILE}, {_TILE}) outs(%b : {_TILE})",
        ),
        # A scale of tmov: as text it would be taken for fp.
        (
            f"pto.tmov ins(%a : {_TILE}, %n : i64) outs(%b : {_TILE})",
            '"pto.tmov"(%a, %b, %n) {operandSegmentSizes = array<i32: 1, 1, 0, 1>}'
            f" : ({_TILE}, {_TILE}, i64) -> ()",
        ),
        ('pto.get_buf_dyn "PIPE_V", %i, 0', 'pto.get_buf_dyn "PIPE_V", %i, 0'),
    ],
)
def test_an_operation_is_printed_as_its_compiler_reads_it(written: str, printed: str) -> None:
    text = (
        f"func.func @f(%a: {_TILE}, %b: {_TILE}, %n: i64, %i: index) {{\n  {written}\n  return\n}}"
    )
    module = parse(text)
    assert printed in print_module(module)
    assert same(parse(print_module(module)).op, module.op)
