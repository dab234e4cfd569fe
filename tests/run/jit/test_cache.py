"""Compiled code on disk: what it is found by, what damage does, how much is kept."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.cli.main import main
from pto.core import disk_cache as cache
from pto.run.jit.llvm import native

TEXT = "define i32 @f(ptr %ctx, ptr %frame) {\n  store i32 41, ptr %frame\n  ret i32 0\n}\n"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "objects"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    monkeypatch.delenv("PTO_CXX_CACHE", raising=False)
    return tmp_path / "objects"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were really compiled."""
    found: list[str] = []
    original = native.object_of

    def note(text: str, machine: Any) -> bytes:
        found.append(text)
        return original(text, machine)

    monkeypatch.setattr(native, "object_of", note)
    return found


def run(text: str = TEXT) -> int:
    """In a target that has linked nothing yet."""
    code = native.Target("native").code(text, ["f"])
    frame = np.zeros(16, np.uint8)
    assert native.function(code.address("f"))(0, frame.ctypes.data) == 0
    return int(frame.view(np.int32)[0])


def files(home: Path) -> list[Path]:
    return sorted(home.iterdir())


def test_the_second_time_nothing_is_compiled(home: Path, compiled: list[str]) -> None:
    assert [run(), run()] == [41, 41]
    assert len(compiled) == 1
    assert [f.suffix for f in files(home)] == [".obj"]


def test_another_text_is_another_entry(home: Path, compiled: list[str]) -> None:
    assert [run(), run(TEXT.replace("41", "7"))] == [41, 7]
    assert len(compiled) == len(files(home)) == 2


@pytest.mark.parametrize("part", range(6))
def test_the_name_depends_on_every_part(part: int) -> None:
    parts = ["text", "cpu", "features", "triple", "version", "passes"]
    other = [p + "x" if n == part else p for n, p in enumerate(parts)]
    assert cache.key(*parts) != cache.key(*other)
    assert cache.key("ab", "c") != cache.key("a", "bc")


def test_cpu_features_and_version_are_parts_of_the_name(
    home: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("cpu", "x86-64"), ("features", "+sse2"), ("triple", "other")):
        target = native.Target("native")
        monkeypatch.setattr(target, name, value)
        target.code(TEXT, ["f"])
    monkeypatch.setattr("llvmlite.__version__", "0.0")
    native.Target("native").code(TEXT, ["f"])
    assert len(compiled) == len(files(home)) == 4


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign"])
def test_a_damaged_entry_is_made_anew(home: Path, compiled: list[str], damage: str) -> None:
    run()
    (entry,) = files(home)
    raw = entry.read_bytes()
    broken = {
        "truncated": raw[: len(raw) // 2],
        "flipped": raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:],
        "empty": b"",
        "foreign": b"\x7fELF" + raw,
    }
    entry.write_bytes(broken[damage])
    assert run() == 41
    assert len(compiled) == 2
    assert entry.read_bytes() == raw


def test_a_directory_that_cannot_be_written_is_no_error(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "file" / "objects"))
    assert [run(), run()] == [41, 41]
    assert len(compiled) == 2
    assert cache.OBJECTS.info().files == 0


def test_a_writer_that_fails_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    cache.store(cache.key("a"), b"data")
    assert files(home) == []


def test_the_entries_used_longest_ago_go_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SELDOM", 1)
    monkeypatch.setattr(cache, "LIMIT", 4096)
    a, b, c, d = (cache.key(name) for name in "abcd")
    for n, name in enumerate((a, b, c)):
        cache.store(name, bytes(1200))
        os.utime(home / f"{name}.obj", (n, n))
    assert cache.load(a) == bytes(1200)  # used now
    cache.store(d, bytes(1200))
    assert {f.stem for f in files(home)} == {a, c, d}
    assert cache.OBJECTS.info().nbytes <= 4096


def test_two_processes_at_once(home: Path) -> None:
    program = (
        "import numpy as np\nfrom tests.run.jit.test_cache import run, TEXT\n"
        "for n in range(40):\n"
        "    assert run(TEXT.replace('41', str(n))) == n\n"
        "print('fine')"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [p.communicate(timeout=200)[0] for p in both] == [b"fine\n"] * 2
    assert [f.suffix for f in files(home)] == [".obj"] * 40


def test_info_and_clear(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert str(home) in shown and "files      0" in shown
    run()
    main(["cache", "info"])
    shown = capsys.readouterr().out
    assert "files      1" in shown and "of at most 256 MB" in shown
    assert main(["cache", "clear"]) == 0
    assert "removed 1 file\n" in capsys.readouterr().out
    assert files(home) == []
    assert run() == 41


def test_code_goes_with_the_kernels_that_have_it(home: Path, compiled: list[str]) -> None:
    target = native.Target("native")
    first = weakref.ref(target.code(TEXT, ["f"]))
    kept = target.code(TEXT.replace("41", "1"), ["f"])
    for n in range(2, 2 + native._KEPT):
        target.code(TEXT.replace("41", str(n)), ["f"])
    gc.collect()
    assert first() is None and len(target._linked) == native._KEPT + 1
    assert target.code(TEXT.replace("41", "1"), ["f"]) is kept


# ---- only the user's own code is executed


def test_an_object_without_the_key_of_the_user_is_made_anew(
    home: Path, compiled: list[str], tmp_path: Path
) -> None:
    run()
    (entry,) = files(home)
    (tmp_path / "own" / "pto" / "key").unlink()  # as on another machine, or of another user
    assert run() == 41 and len(compiled) == 2
    data = entry.read_bytes()[40:]
    entry.write_bytes(b"PTOOBJ2\n" + hashlib.sha256(data).digest() + data)  # planted
    assert run() == 41 and len(compiled) == 3


def test_an_object_of_another_program_is_made_anew(home: Path, compiled: list[str]) -> None:
    run()
    (one,) = files(home)
    run(TEXT.replace("41", "7"))
    (other,) = [f for f in files(home) if f != one]
    other.write_bytes(one.read_bytes())
    assert run(TEXT.replace("41", "7")) == 7 and len(compiled) == 3


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720])
def test_a_directory_that_others_can_write_to_is_not_used(
    home: Path, compiled: list[str], mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    home.chmod(mode)
    assert run() == 41 and len(compiled) == 2
    main(["cache", "info"])
    assert "not used   others may write to it" in capsys.readouterr().out


def test_a_file_that_others_can_write_to_is_not_used(home: Path, compiled: list[str]) -> None:
    run()
    (entry,) = files(home)
    entry.chmod(0o666)
    assert run() == 41 and len(compiled) == 2


def test_a_link_is_not_followed(home: Path, compiled: list[str], tmp_path: Path) -> None:
    run()
    (entry,) = files(home)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert run() == 41 and len(compiled) == 2


def test_a_directory_of_another_user_is_not_used(
    home: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert run() == 41 and len(compiled) == 2
    assert cache.OBJECTS.info().refused == "it belongs to another user"
    assert cache.OBJECTS.clear() == 0


def test_clear_and_eviction_leave_files_of_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    for name in ("main.obj", "a" * 64 + ".obj", "notes.part"):
        (home / name).write_bytes(b"mine")
    monkeypatch.setattr(cache, "SELDOM", 1)
    monkeypatch.setattr(cache, "LIMIT", 0)
    run(TEXT.replace("41", "7"))  # evicts
    cache.OBJECTS.clear()
    assert sorted(f.name for f in files(home)) == sorted(
        ["main.obj", "a" * 64 + ".obj", "notes.part"]
    )


def test_an_object_that_cannot_be_linked_is_made_anew(
    home: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "load", lambda name: b"\x7fELF no object")
    assert run() == 41 and len(compiled) == 1


def test_a_user_without_a_home(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PTO_CACHE_DIR", "PTO_CXX_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert [run(), run()] == [41, 41] and len(compiled) == 2
    assert main(["cache", "info"]) == main(["cache", "clear"]) == 0
