"""A full mask means the same however it was made: by a pattern, by a count, or loaded from UB."""

import numpy as np
import pytest

from tests.vectors import Registers

F, H, W, U, B = (f"!pto.vreg<{t}>" for t in ("64xf32", "128xf16", "64xi32", "64xui32", "256xui8"))
BODIES = {
    "vabs": (32, f"%r = pto.vabs %f, %m : {F}, M -> {F}", F),
    "vadd": (32, f"%r = pto.vadd %f, %f, %m : {F}, {F}, M -> {F}", F),
    "vadd of halves": (16, f"%r = pto.vadd %h, %h, %m : {H}, {H}, M -> {H}", H),
    "vmuls": (32, f"%r = pto.vmuls %f, %k, %m : {F}, f32, M -> {F}", F),
    "vaxpy": (32, f"%r = pto.vaxpy %f, %f, %k, %m : {F}, {F}, f32, M -> {F}", F),
    "vmula": (32, f"%r = pto.vmula %f, %f, %f, %m : {F}, {F}, {F}, M -> {F}", F),
    "vcmp": (32, f'%r = pto.vcmp %f, %f, %m, "ge" : {F}, {F}, M -> M', "M"),
    "vcmps": (32, f'%r = pto.vcmps %f, %k, %m, "gt" : {F}, f32, M -> M', "M"),
    "vsel": (32, f"%r = pto.vsel %f, %f, %m : {F}, {F}, M -> {F}", F),
    "vdup": (32, f"%r = pto.vdup %k, %m : f32, M -> {F}", F),
    "vcvt": (
        32,
        f'%r = pto.vcvt %f, %m {{rnd = "R", sat = "SAT", part = "ODD"}} : {F}, M -> {H}',
        H,
    ),
    "widening vcvt": (16, f'%r = pto.vcvt %h, %m {{part = "ODD"}} : {H}, M -> {F}', F),
    "vcadd": (32, f"%r = pto.vcadd %f, %m : {F}, M -> {F}", F),
    "vcmax": (32, f"%r = pto.vcmax %f, %m : {F}, M -> {F}", F),
    "vcgadd": (32, f"%r = pto.vcgadd %f, %m : {F}, M -> {F}", F),
    "vcpadd": (32, f"%r = pto.vcpadd %f, %m : {F}, M -> {F}", F),
    "vmull": (32, f"%r, %s = pto.vmull %i, %i, %m : {W}, {W}, M -> {W}, {W}", W),
    "vexpdif": (16, f'%r = pto.vexpdif %h, %h, %m, "EVEN" : {H}, {H}, M -> {F}', F),
    "vgather2": (32, f"%r = pto.vgather2 %p, %u, %m : P, {U}, M -> {F}", F),
    "vsqz": (8, f"%r = pto.vsqz %b, %m : {B}, M -> {B}", B),
    "vsts": (
        32,
        f"pto.vsts %f, %p[%z], %m : {F}, P, M\n%r = pto.vlds %p[%z] : P -> {F}",
        F,
    ),
    "packed vsts": (
        32,
        f'pto.vsts %f, %p[%z], %m {{dist = "PK_B32"}} : {F}, P, M\n%r = pto.vlds %p[%z] : P -> {F}',
        F,
    ),
    "vscatter": (
        32,
        f"pto.vscatter %f, %p, %u, %m : {F}, P, {U}, M\n%r = pto.vlds %p[%z] : P -> {F}",
        F,
    ),
}


def outcome(name, made):
    """The bytes of %r under a full mask made by `made`."""
    bits, body, kind = BODIES[name]
    bench = Registers()
    values = np.random.default_rng(11).uniform(-3, 3, 128)
    bench.vreg("f", "f32", values)
    bench.vreg("h", "f16", values)
    bench.vreg("i", "i32", values * 7e8)
    bench.vreg("u", "ui32", np.arange(63, -1, -1))
    bench.vreg("b", "ui8", np.arange(256))
    bench.pointer("p", "f32, ub", values)
    bench.pointer("ones", "ui8, ub", np.full(32, 0xFF))
    bench.scalar("k", "f32", 0.75)
    bench.scalar("z", "index", 0)
    bench.scalar("n", "i32", 999)
    mask, pointer = f"!pto.mask<b{bits}>", "!pto.ptr<f32, ub>"
    text = f"{made.format(bits=bits, mask=mask)}\n{body}"
    for short, long in ((" M", f" {mask}"), (" P", f" {pointer}")):
        text = text.replace(short, long)
    return bench.one(text, kind.replace("M", mask)).tobytes()


@pytest.mark.parametrize("name", BODIES)
def test_full_masks_are_all_the_same(name):
    pattern = outcome(name, '%m = pto.pset_b{bits} "PAT_ALL" : {mask}')
    count = outcome(name, "%m, %left = pto.plt_b{bits} %n : i32 -> {mask}, i32")
    image = outcome(name, '%m = pto.plds %ones[%z], "NORM" : !pto.ptr<ui8, ub>, index -> {mask}')
    assert pattern == count == image
    assert any(pattern)
