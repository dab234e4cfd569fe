"""Builds on disk: `pto cache` counts and forgets them, old ones go, nothing else does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pto.cli.main import main
from pto.core.errors import PtoError
from pto.cxx import kept

DAY = 24 * 3600


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTO_CXX_CACHE", str(tmp_path / "cxx"))
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "jit"))
    return tmp_path / "cxx"


def built(home: Path, name: str, days: int) -> Path:
    """A folder as `compiler` leaves it, last asked for so many days ago."""
    folder = home / name
    (folder / "include" / "pto" / "machine").mkdir(parents=True)
    (folder / "kernel-both-0.so").write_bytes(bytes(1 << 20))
    os.utime(folder, (time.time() - days * DAY,) * 2)
    return folder


def test_the_command_counts_and_forgets_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = [built(home, f"{profile}-{'0' * 20}", 0) for profile in ("cpu", "a2a3")]
    theirs = [home / "notes.txt", home / f"a5-{'1' * 20}"]  # not of our making
    theirs[0].write_text("of the user")
    theirs[1].mkdir()
    assert main(["cache", "info"]) == 0
    said = capsys.readouterr().out
    assert f"{home}  (PTO_CXX_CACHE" in said and "2 files, 2.0 MB" in said
    assert main(["cache", "clear"]) == 0
    assert "removed 2 files" in capsys.readouterr().out
    assert not any(each.exists() for each in ours) and all(each.exists() for each in theirs)


def test_a_new_folder_takes_the_place_of_those_a_month_old(home: Path) -> None:
    old, used, new = (built(home, f"a5-{n:020x}", days) for n, days in enumerate((31, 31, 0)))
    kept.note_use(used, is_new=False)
    assert old.exists()
    kept.note_use(new, is_new=True)
    assert [each.exists() for each in (old, used, new)] == [False, True, True]


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PTO_CXX_CACHE", "PTO_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(PtoError, match="the user has no home"):
        kept.folder()
    assert kept.BUILDS.info()[1:3] == (0, 0)


def test_a_folder_that_others_may_write_to_is_not_used(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    assert kept.folder() == home
    home.chmod(0o777)
    other = kept.folder()
    assert other != home and other.stat().st_mode & 0o777 == 0o700
    assert kept.folder() == other, "one for the whole process"
    assert main(["cache", "info"]) == 0
    assert "others may write to it: C++ is built anew" in capsys.readouterr().out


def test_files_and_folders_of_others_are_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = built(home, f"a5-{'0' * 20}", 0)
    file = folder / "kernel-both-0.so"
    file.chmod(0o700)
    assert kept.is_ready(file) and kept.BUILDS.info().files == 1
    link = folder / "link.so"
    link.symlink_to(file)
    assert not kept.is_ready(link) and not link.is_symlink() and file.exists()
    file.chmod(0o770)
    assert not kept.is_ready(file) and not file.exists()
    file.write_bytes(b"")
    file.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not kept.is_ready(file) and not file.exists()
    assert kept.folder() != home
    assert kept.BUILDS.info()[1:3] == (0, 0)


def test_a_folder_of_others_is_removed_or_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = built(home, f"a5-{'0' * 20}", 0)
    kept.require_own(folder)
    assert folder.exists()
    folder.chmod(0o777)
    kept.require_own(folder)
    assert not folder.exists()
    built(home, folder.name, 0).chmod(0o777)
    monkeypatch.setattr("shutil.rmtree", lambda *words, **named: None)
    with pytest.raises(PtoError, match="PTO-U011"):
        kept.require_own(folder)


def test_what_is_published_only_the_user_may_write_to(home: Path) -> None:
    home.mkdir()
    made = home / "made"
    made.touch(mode=0o666)
    made.chmod(0o666)
    kept.publish(made, home / "target.so")
    assert kept.is_ready(home / "target.so")
