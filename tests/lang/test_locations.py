"""Findings point into the user's files: never into this package, Python's library or NumPy."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.lang.call import place
from pto.lang.call.place import is_own, is_users

PACKAGE = Path(pto.__file__).parent
X = np.zeros((16, 64), np.float32)


def test_files_of_the_user():
    assert is_users(__file__)
    assert is_users("<stdin>") and is_users("/tmp/ipykernel_7/1.py")
    assert is_users(f"{PACKAGE}_kernels{os.sep}k.py"), "a folder beside the package"
    assert not is_own(f"{PACKAGE}_kernels{os.sep}k.py")


@pytest.mark.parametrize(
    "file",
    [
        pto.__file__,
        functools.__file__,
        json.__file__,
        np.__file__,
        np.linalg.__file__,
        "<frozen runpy>",
        "/usr/lib/python3/dist-packages/lib/x.py",
    ],
)
def test_files_of_others(file: str):
    assert not is_users(file)


SOURCE = """
import pto

@pto.kernel
def k(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
    t = pto.load(x, 16, 64)
    pto.store(y, t + "word")
"""


def executed(file: Path, text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), names)
    return names


def located(call: Any) -> Any:
    with pytest.raises(pto.PtoError) as caught:
        call()
    return caught.value.diagnostics[0].loc


def test_an_installed_package_of_kernels_is_the_user_s(tmp_path: Path):
    file = tmp_path / "site-packages" / "kernels" / "k.py"
    assert not is_users(str(file))
    k = executed(file, SOURCE)["k"]
    assert is_users(str(file)) and is_users(str(file.with_name("other.py")))
    assert not is_users(str(tmp_path / "site-packages" / "other" / "k.py"))
    found = located(lambda: k(X, X.copy()))
    assert (found.file, found.line) == (str(file), 7)


def test_frames_of_a_library_between_are_skipped(tmp_path: Path):
    library = tmp_path / "site-packages" / "lib" / "apply.py"
    apply = executed(library, "def apply(f, *args):\n    return f(*args)\n")["apply"]

    def k(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.load(x, 16, 64)
        apply(pto.store, y, "word")
        functools.reduce(pto.maximum, [t, "word"])

    found = located(lambda: pto.kernel(k)(X, X.copy()))
    assert (found.file, found.line) == (__file__, k.__code__.co_firstlineno + 2)


def test_an_annotation_is_shown_at_its_function():
    def same(a: pto.Global[pto.f32, "b"], b: pto.Global[pto.f32]) -> None: ...  # noqa: F821, UP037
    def no_size(a: pto.Global[pto.f32, "1b"]) -> None: ...  # noqa: F722
    def no_type(a: pto.Global[pto.f33]) -> None: ...  # pyright: ignore

    for function in (same, no_size, no_type):
        kernel = pto.kernel(function)
        found = located(lambda kernel=kernel: kernel(X, X.copy()))
        assert (found.file, found.line) == (__file__, function.__code__.co_firstlineno), function


def test_without_a_frame_of_the_user_there_is_no_location(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(place, "is_users", lambda file: False)
    assert located(lambda: pto.exp("word")) is None


def test_sizes_are_those_of_the_window():
    c = np.zeros((3, 2, 8, 64), np.float32)

    def k(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.load(x[:, :, 0:8, :], 16, 64))

    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(k)(c, X)
    words = "the tile takes 16 rows, and the window of x has 48 (3 x 2 x 8"
    assert words in caught.value.diagnostics[0].message


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_the_last_two_slices_are_rows_and_columns(profile: str, engine: str):
    c = np.random.default_rng(3).standard_normal((3, 2, 8, 64), np.float32)

    def loads(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.load(x.T[:, 0:8, 0, 1], 64, 8))

    def stores(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y[1, :, :, 5], pto.load(x[0, :, :, 9], 2, 8))

    read = np.zeros((64, 8), np.float32)
    pto.kernel(profile=profile)(loads).run(c, read, engine=engine)
    assert np.array_equal(read, c.T[:, 0:8, 0, 1])
    written = np.zeros_like(c)
    pto.kernel(profile=profile)(stores).run(c, written, engine=engine)
    wanted = np.zeros_like(c)
    wanted[1, :, :, 5] = c[0, :, :, 9]
    assert np.array_equal(written, wanted)


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_column_is_named_as_one(engine: str):
    """The instruction takes columns as rows: the finding says which rows of the kernel they are."""

    def k(a: pto.Global[pto.f32], c: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        i = pto.block_idx() * 64
        t = pto.load(a[i:, :], 64, 16)
        h = pto.zeros(64, 16, pto.f32)
        h *= t
        pto.store(y[i:, :], (h * pto.load(c, 1, 16)).sum(axis=1) + t.sum(axis=1))

    a, c, y = np.ones((77, 16), np.float32), np.ones((1, 16), np.float32), np.zeros((77, 1), "f4")
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(k).run(a, c, y, blocks=2, engine=engine)
    found = caught.value.diagnostics[0]
    assert found.code == "PTO-S021" and "pto.zeros_like(t)" in (found.help or "")
    assert [note.message for note in found.notes][-2:] == [
        "src1 is a column, of which 13 rows are valid, taken as a row",
        "dst is a column, of which 64 rows are valid, taken as a row",
    ]
