"""Confines this process for good: no network, no processes, no files but those named.

On Linux the kernel enforces it (Landlock for files, seccomp for system calls; no privileges are
needed). Elsewhere limits of memory and time remain, and an audit hook of Python.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None

_NO_NEW_PRIVILEGES = 38  # of prctl
_SECCOMP = 22  # of prctl
_DEATH_SIGNAL = 1  # of prctl
_CREATE_RULESET = 444  # system calls, on every processor
_ADD_RULE = 445  # system calls, on every processor
_RESTRICT = 446  # system calls, on every processor
_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, list a folder
_FILE_ACCESS = (1 << 13) - 1  # all rights of the first version: read, write, make, remove

# System calls that are refused: their numbers on x86_64 and aarch64.
_REFUSED = {
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "bind": (49, 200),
    "listen": (50, 201), "socketpair": (53, 199), "accept4": (288, 242),
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "io_uring_setup": (425, 425), "truncate": (76, 45),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "mount": (165, 40), "umount2": (166, 39), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "reboot": (169, 142), "init_module": (175, 105),
    "finit_module": (313, 273), "bpf": (321, 280), "add_key": (248, 217), "keyctl": (250, 219),
    "request_key": (249, 218), "perf_event_open": (298, 241), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "prlimit64": (302, 261),
    "setrlimit": (160, 164), "sched_setaffinity": (203, 122), "setpriority": (141, 140),
    "userfaultfd": (323, 282), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "sethostname": (170, 161), "setsid": (112, 157), "setpgid": (109, 154),
}  # fmt: skip
_MACHINES = {"x86_64": (0, 0xC000003E, 56), "aarch64": (1, 0xC00000B7, 220)}  # column, id, clone
_CLONE3, _OTHER_ABI = 435, 0x40000000  # numbers from there on are those of x32
_THREAD = 0x00010000  # CLONE_THREAD
_ALLOW = 0x7FFF0000
_EPERM = 0x00050001
_ENOSYS = 0x00050026
_LOAD = 0x20
_EQUAL = 0x15
_LEAST = 0x35
_ANY_BIT = 0x45
_RETURN = 0x06


def limit(seconds: float, megabytes: int) -> None:
    """Limit memory, processor time and files of this process, and end it with its parent."""
    if resource is None:
        return
    for resource_kind, most in (
        (resource.RLIMIT_AS, megabytes << 20),
        (resource.RLIMIT_CPU, int(2 * seconds) + 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # a lower limit stays
            resource.setrlimit(resource_kind, (most, most))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def confine(readable: Iterable[str | Path]) -> bool:
    """Leave this process only reads below `readable`. False if the system cannot enforce it."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    files = _confine_files(libc, readable)
    return _confine_calls(libc) and files


def _confine_files(libc: ctypes.CDLL, readable: Iterable[str | Path]) -> bool:
    handled = struct.pack("=Q", _FILE_ACCESS)
    rules = libc.syscall(_CREATE_RULESET, ctypes.c_char_p(handled), len(handled), 0)
    if rules < 0:
        return False
    for path in readable:
        with suppress(OSError):
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = _READ if Path(path).is_dir() else _READ & ~(1 << 3)
            libc.syscall(
                _ADD_RULE, rules, 1, ctypes.c_char_p(struct.pack("=Qi", allowed, folder)), 0
            )
            os.close(folder)
    done = libc.syscall(_RESTRICT, rules, 0)
    os.close(rules)
    return done == 0


def _confine_calls(libc: ctypes.CDLL) -> bool:
    """A filter of system calls: no sockets, processes, signals to others, or traces."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    column, architecture, clone = machine
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _EPERM)]
    code += [(_LOAD, 0, 0, 0), (_LEAST, 0, 1, _OTHER_ABI), (_RETURN, 0, 0, _EPERM)]
    for number in (numbers[column] for numbers in _REFUSED.values()):
        if number is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    code += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ENOSYS)]  # libraries then use clone
    code += [(_EQUAL, 0, 3, clone), (_LOAD, 0, 0, 16), (_ANY_BIT, 1, 0, _THREAD)]
    code += [(_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    buffer = ctypes.create_string_buffer(packed)
    program = struct.pack("@HP", len(code), ctypes.addressof(buffer))
    return libc.prctl(_SECCOMP, 2, ctypes.c_char_p(program), 0, 0) == 0


_FORBIDDEN = {
    "socket.": "opens a network connection",
    "subprocess.": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.spawn": "starts a process",
    "os.fork": "starts a process",
    "pty.": "starts a process",
    "os.kill": "sends a signal to a process",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.mkdir": "makes a folder",
    "os.rmdir": "removes a folder",
    "os.symlink": "makes a link",
    "os.link": "makes a link",
    "os.truncate": "changes a file",
    "os.putenv": "changes the environment",
    "os.listdir": "lists a folder",
    "os.scandir": "lists a folder",
    "ctypes.": "uses ctypes",
    "sys._current_frames": "looks at other stack frames",
    "gc.get_objects": "looks at objects of the judge",
    "gc.get_referrers": "looks at objects of the judge",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def refuse_actions(readable: Iterable[str | Path], refused: Callable[[str], None]) -> None:
    """Call `refused` with words for the first action of Python code that is not allowed.

    The hook names the action; `confine` is what prevents it.
    """
    roots = tuple(f"{Path(p).resolve()}{os.sep}" for p in readable)
    files = {str(Path(p).resolve()) for p in readable}

    def may_be_read(path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return True  # a file that is open already
        full = os.path.realpath(os.fsdecode(path))
        return full.startswith(roots) or full in files

    def seen(event: str, args: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & _WRITES and not isinstance(path, int):
                refused(f"opens {path!r} for writing")
            elif not may_be_read(path):
                refused(f"opens {path!r}")
            return
        for start, words in _FORBIDDEN.items():
            if event.startswith(start) and not (words == "lists a folder" and may_be_read(args[0])):
                refused(f"{words} ({event})")

    sys.addaudithook(seen)
