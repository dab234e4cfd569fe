"""`make pictures`: docs/pictures, drawn by `pto layout`, `pto plan` and the timing model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs.make import gallery, machine, timeline
from pto.cli.main import main as pto

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"

# file -> the command that draws it
PICTURES = {
    "nd.png": ["layout", "vec 16x64xf32"],
    "dn.png": ["layout", "vec 16x32xf32 dn"],
    "nz.png": ["layout", "mat 32x64xf16 nz"],
    "zn.png": ["layout", "right 32x64xf32 zn"],
    "zz.png": ["layout", "left 64x32xf16 zz"],
    "acc.png": ["layout", "acc 32x48xf32 nz fractal=1024"],
    "scale.png": ["layout", "scale_left 64x8xe8m0 zz fractal=32"],
    "edge.png": ["layout", "vec 16x16xf16 valid=5x9"],
    "edge_boxes.png": ["layout", "mat 32x64xf16 nz valid=20x41"],
    "plan.png": ["plan", str(ROOT / "examples" / "add.pto")],
}
# file -> the function that draws it
DRAWN: dict[str, Callable[[Path], None]] = {
    "machine.png": machine.draw,
    "timeline.png": timeline.draw,
    "optimize_before.png": partial(timeline.draw_optimized, after=False),
    "optimize_after.png": partial(timeline.draw_optimized, after=True),
    **{name: partial(gallery.draw, file) for name, file in gallery.pictures()},
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, words in PICTURES.items():
        code = pto([*words, "--png", str(FOLDER / name)])
        if code:
            raise SystemExit(code)
        shrink(FOLDER / name)
    for name, draw in DRAWN.items():
        draw(FOLDER / name)
        shrink(FOLDER / name)


def shrink(file: Path) -> None:
    """A palette and two thirds of the size: a repository keeps every version of a picture."""
    from PIL import Image  # comes with matplotlib

    with Image.open(file) as drawn:
        size = (drawn.width * 2 // 3, drawn.height * 2 // 3)
        small = drawn.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main()
