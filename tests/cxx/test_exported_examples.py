"""Every launch of every example, exported: it builds, and gives the bits of the kernel on as many
cores as a board starts, two vector sub-blocks beside each cube.

With `--agree` all launches; else the first ones of each example, on one of its profiles.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import pto
from examples.decoder import __main__ as decoder
from pto.cxx import st
from pto.cxx.export import folder
from pto.lang.kernel import Kernel
from pto.suite import pool
from tests.examples.test_examples import runs
from tests.examples.test_gallery import KERNELS, kernel_of

CHIPS = ("a2a3", "a5")
# Examples of code that only an assembler or a compiler of text takes.
WITHOUT_CPP = {
    "manual_extract_insert": "'pto.textract' uses tiles of both cores, and is no plain move",
    "manual_vector_listing": "'pto.tile_buf_addr' op: it has no form in C++",
    "softmax_registers": "'pto.vecscope' op: it has no form in C++",
}


@dataclass
class Exports:
    """The launches that a test makes, each as a folder; one a kernel, grid and list of shapes."""

    path: Path
    every: bool  # all launches, else the first one of each kernel
    seen: set[object] = field(default_factory=set)

    def add(self, name: str, blocks: object, args: Sequence[Any], write: Callable[[Path], Any]):
        shapes = tuple(getattr(each, "shape", None) for each in args)
        launch = (name, blocks, shapes) if self.every else name
        if launch not in self.seen:
            self.seen.add(launch)
            write(self.path / f"{name}_{len(self.seen)}")

    def judge(self) -> None:
        """Build and run all folders."""
        assert self.seen
        cases = pool.run(st.suite(st.find([self.path]), "", 300.0), 1)
        assert [c.outcome for c in cases] == ["exact"] * len(self.seen), [
            (c.name, c.outcome, [d.message for d in c.diagnostics]) for c in cases
        ]


@pytest.fixture
def exports(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    a_compiler: None,
) -> Exports:
    """Whatever a test launches is exported too, before it runs."""
    exports = Exports(tmp_path, every=request.config.getoption("agree") == "all")
    run, on_ranks = Kernel.run, pto.World.launch

    def kernel_run(self: Kernel[...], *args: Any, blocks: Any = 1, **named: Any) -> Any:
        def write(out: Path) -> None:
            self.export(*args, blocks=blocks, out=str(out), **named)

        exports.add(self.name, blocks, args, write)
        return run(self, *args, blocks=blocks, **named)

    def world_launch(self: pto.World, program: pto.Module, **launch: Any) -> Any:
        lists = launch["args"]

        def write(out: Path) -> None:
            with monkeypatch.context() as own:
                own.setattr(pto.World, "launch", on_ranks)  # the export makes a launch of its own
                folder.export([program] * len(self), lists, out, out.name, world=self)

        exports.add("ranks", 1, lists[0], write)
        return on_ranks(self, program, **launch)

    monkeypatch.setattr(Kernel, "run", kernel_run)
    monkeypatch.setattr(pto.World, "launch", world_launch)
    return exports


@pytest.mark.parametrize(("name", "profile"), [each for each in runs() if each[1] in CHIPS])
def test_an_exported_example_gives_the_bits_of_its_kernel(
    name: str, profile: str, exports: Exports
):
    example = importlib.import_module(f"examples.{name}")
    if name in WITHOUT_CPP:
        with pytest.raises(pto.PtoError) as error:
            example.example(profile)
        assert WITHOUT_CPP[name] in str(error.value)
    else:
        example.example(profile)
        exports.judge()


@pytest.mark.parametrize("profile", CHIPS)
@pytest.mark.parametrize("name", KERNELS)
def test_an_exported_kernel_of_the_gallery_gives_its_bits(
    name: str, profile: str, exports: Exports
):
    kernel, (_, arguments, sizes) = kernel_of(name, profile), KERNELS[name]
    for each in sizes if exports.every else sizes[:1]:
        grid, args, *_ = arguments(*each)
        kernel[grid](*args)
    exports.judge()


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("profile", CHIPS)
def test_the_exported_kernels_of_the_decoder_give_their_bits(
    profile: str, int8: bool, exports: Exports
):
    decoder.written(profile, int8=int8)
    exports.judge()
