"""Faults from public reports, rebuilt: each is found, and its right twin is clean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import pto
from pto.core.dtypes import dtype
from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.observe import deep, watch
from pto.plan.sync.program import insert
from pto.run.machine.device import Device
from pto.run.machine.world import World
from pto.target.profile import profile
from tests.observe.pairs import Array, Pair, Program, pairs

PAIRS = pairs()
_ENOUGH = 60
Found = tuple[str, int, int, str]  # code, part, short line, severity


def _told(findings: Iterable[Diagnostic], program: Program) -> set[Found]:
    found: set[Found] = set()
    for d in findings:
        part = int(d.loc.file) if d.loc else 0
        rows = program.parts[part].rows
        line = d.loc.line - 1 if d.loc else -1
        found.add((d.code, part, rows[line] if line < len(rows) else -1, d.severity))
    return found


def _args(pair: Pair) -> list[Any]:
    return [
        np.ones(p.shape, dtype(p.type).numpy) if isinstance(p, Array) else p[2] for p in pair.params
    ]


def _found(pair: Pair, program: Program) -> set[Found]:
    options = pair.options
    if "ranks" in options or "streams" in options:
        return _told(_together(pair, program), program)
    (part,) = program.parts
    module = parse(part.text, "0")
    if "check" in options:
        return _told(pto.check(module), program)
    if "deep" in options:
        looked = deep.deep(module, profile=None, device=None)
        return _told([d for each in looked for d in each.verdict.findings], program)
    blocks, device = int(options.get("blocks", 1)), options.get("device")
    verdict = pto.sanitize(module, args=_args(pair), blocks=blocks, device=device)
    return _told(verdict.findings, program)


def _together(pair: Pair, program: Program) -> list[Diagnostic]:
    """Several kernels on ranks of one world, or on streams of one device."""
    count = max(part.at for part in program.parts) + 1
    world = World(count, pair.target) if "ranks" in pair.options else Device(pair.target)
    args = _args(pair)
    if isinstance(world, World):
        for n, p in enumerate(pair.params):
            if isinstance(p, Array):
                args[n] = world.symmetric(p.shape, p.type)[p.rank]
    stopped: list[Diagnostic] = []
    with watch(world) as found:
        devices = world.devices if isinstance(world, World) else [world] * count
        streams = [device.stream() for device in devices]
        done: list[Any] = []
        for n, part in enumerate(program.parts):
            if part.after is not None:
                streams[part.at].wait(done[part.after])
            streams[part.at].launch(parse(part.text, str(n)), args=args)
            done.append(streams[part.at].record())
        try:
            world.synchronize()
        except PtoError as error:
            stopped += error.diagnostics
    return [*found.findings(), *stopped]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_the_reported_fault_is_found(pair: Pair) -> None:
    """All that is expected, at its line, and no other error."""
    program = pair.side("-")
    found = _found(pair, program)
    assert program.expected <= {each[:3] for each in found}
    assert {each[:3] for each in found if each[3] == "error"} <= program.expected


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_the_right_twin_is_clean(pair: Pair) -> None:
    assert _found(pair, pair.side("+")) == set()


_INSERTED = re.compile(r"pto\.(set_flag|wait_flag|barrier)")
_ORDERED = [
    pair
    for pair in PAIRS
    if not {"ranks", "streams", "check"} & set(pair.options)
    and any(code.startswith("PTO-R00") for code, _, _ in pair.side("-").expected)
]


@pytest.mark.parametrize("pair", _ORDERED, ids=str)
def test_sync_does_not_repeat_the_fault(pair: Pair) -> None:
    """Without its flags and barriers the right program is given others, and they are enough."""
    (part,) = pair.side("+").parts
    bare = "\n".join(line for line in part.text.split("\n") if not _INSERTED.match(line))
    module = insert(parse(bare), profile(pair.target))
    found = pto.sanitize(module, args=_args(pair)).findings
    assert [d for d in found if d.severity == "error"] == []


def test_there_are_enough_pairs_and_each_names_its_report() -> None:
    assert len(PAIRS) >= _ENOUGH
    for pair in PAIRS:
        assert re.fullmatch(r"(PTOAS|pypto|pypto-lib|simpler|pto-isa|pto-dsl)#\d+", pair.report)
        assert pair.side("-").expected, pair
        assert {line[0] for line in pair.lines} & set("+-"), pair
