"""`make demo`: a program checked and run, every element type, four layouts, and mistakes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rich.box import SIMPLE
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from pto.cli import console as terminal
from pto.cli.layout import report
from pto.cli.main import main as pto
from pto.core.dtypes import ALL, decode, dtype, encode
from pto.core.errors import PtoError
from pto.core.layout import layout
from pto.core.render import Sources
from pto.core.tile import Role, TileType
from pto.ir.parser import parse
from pto.target import PROFILES, check_tile, profile
from pto.verify import judge

NUMBER = 2.7182818
LAYOUTS = ("ND", "DN", "NZ", "ZN")
# From the first address to the last: dark violet, blue, green, yellow (256-colour palette).
RAMP = (17, 54, 55, 61, 67, 31, 37, 36, 35, 71, 107, 113, 149, 185, 220, 226)


ADD = Path(__file__).with_name("add.pto")
ARGUMENTS = ("a=range:40x64xf32", "b=ones:40x64xf32", "c=zeros:40x64xf32", "rows=40")


def program() -> None:
    """A kernel checked, run, and refused by one profile when its elements become bf16."""
    arguments = [word for given in ARGUMENTS for word in ("--arg", given)]
    for words in (
        ["check", "--all-profiles", str(ADD)],
        ["run", str(ADD), "--blocks", "3", *arguments],
    ):
        shown = " ".join(words).replace(str(ADD), "examples/add.pto")
        terminal.write([("dim", f"\n$ pto {shown}\n")])
        pto(words)
    terminal.write([("dim", "\n$ sed s/f32/bf16/g examples/add.pto > bf16.pto\n")])
    text = ADD.read_text("utf-8").replace("f32", "bf16")
    for name in ("a5", "a2a3"):
        terminal.write([("dim", f"$ pto check --profile {name} bf16.pto\n")])
        _, found = judge(parse(text, "bf16.pto"), profile=name)
        terminal.show(found, Sources({"bf16.pto": text}), stream=sys.stdout)
        terminal.write([("", "no findings\n" if not found else "")])


def types(out: Console) -> None:
    """Every element type, and what is left of one number in it."""
    out.print(f"\n[bold]{NUMBER} in every element type[/], rounded to nearest even")
    table = Table(box=SIMPLE, padding=0, pad_edge=False, collapse_padding=True)
    for head in ("type", "bytes", "lanes", "bits", "value", "off by", *PROFILES):
        table.add_column(head, justify="left" if head == "type" else "right", no_wrap=True)
    for t in ALL:
        items = encode(t, np.array([NUMBER, NUMBER]))  # two, as some types pack pairs
        value = float(decode(t, items)[0])
        bits = f"{int(items[0]):0{2 * t.itemsize}x}"
        allowed = ("yes" if profile(name).allows_type(t.name) else "-" for name in PROFILES)
        off = f"{abs(value / NUMBER - 1):.1e}"
        table.add_row(t.name, str(t.itemsize), str(t.lanes), bits, f"{value:g}", off, *allowed)
    out.print(table)


def layouts(out: Console) -> None:
    """The same tile in four layouts; the colour of an element is its address."""
    out.print(
        "[bold]A 32x32 f16 tile in four layouts[/]: 0 is the first sixteenth of its memory, f"
    )
    out.print("the last; a sign stands for 4x2 elements. NZ and ZN have boxes of 16x16.\n")
    grid = Table.grid(padding=(0, 4))
    grid.add_row(*(_heat_map(name) for name in LAYOUTS))
    out.print(grid)


def _heat_map(name: str) -> Group:
    offsets = layout(name).index_map(32, 32, itemsize=2)
    shades = (offsets * len(RAMP) // offsets.size)[::4, ::2]
    lines = [
        Text.assemble(*((f"{shade:x}", f"white on color({RAMP[shade]})") for shade in row))
        for row in shades.tolist()
    ]
    return Group(Text(name, style="bold"), *lines)


def one_layout() -> None:
    """What `pto layout` says about the NZ tile."""
    terminal.write([("dim", '\n$ pto layout "mat 32x32xf16 nz"\n')])
    terminal.write(report(TileType.of(Role.MAT, dtype("f16"), 32, 32, layout("NZ"))))


def mistakes() -> None:
    """What the machine refuses, and how it says so."""
    terminal.write([("dim", '\n$ pto layout "mat 20x32xf16 nz"\n')])
    try:
        TileType.of(Role.MAT, dtype("f16"), 20, 32, layout("NZ")).check()
    except PtoError as error:
        terminal.show(error.diagnostics, stream=sys.stdout)
    terminal.write([("dim", '\n$ pto layout "vec 16x32xf8e4m3" --profile a2a3\n')])
    refused = check_tile(profile("a2a3"), "vec", "ND", None, "f8e4m3")
    terminal.show(refused, stream=sys.stdout)
    terminal.write([("dim", "\nNext: pto --help, pto isa, pto explain, make test\n")])


def main() -> None:
    out = Console(highlight=False)
    program()
    types(out)
    layouts(out)
    one_layout()
    mistakes()


if __name__ == "__main__":
    main()
