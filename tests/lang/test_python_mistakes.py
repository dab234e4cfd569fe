"""Mistakes with Python's control flow in kernels: each is a finding at the line marked `# here`,
never a traceback and never a program that does something else."""

# ruff: noqa: E501  (a kernel is easier to read on one line)
from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import pto

# The body of a kernel of two arrays, x and y of 16 x 64 f32, and a number n that the run knows.
MISTAKES: dict[str, tuple[str, str]] = {
    "one branch binds": (
        "PTO-U217",
        "if n > 0:\n    a = 1.0\npto.store(y, pto.load(x, 16, 64) * a)  # here",
    ),
    "an elif without else": (
        "PTO-U217",
        "if n > 0:\n    a = 1\nelif n < 0:\n    a = 2\npto.store(y[a:, :], pto.load(x, 16, 64))  # here",
    ),
    "a number or a text": (
        "PTO-U217",
        "a = 1\nif n > 0:\n    a = 'one'\nprint(a)  # here",
    ),
    "a number or nothing": (
        "PTO-U217",
        "a = None\nif n > 0:\n    a = n\nassert a is not None  # here",
    ),
    "a tile or a number": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nif n > 0:\n    a = 1.0\npto.store(y, a)  # here",
    ),
    "tiles of two shapes": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nif n > 0:\n    a = pto.load(x[0:8, :], 8, 64)\npto.store(y, a)  # here",
    ),
    "tiles of two types": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nif n > 0:\n    a = a.to(pto.f16)\npto.store(y, a)  # here",
    ),
    "integer or float": (
        "PTO-U217",
        "a = n\nif n > 0:\n    a = 0.5\nprint(a)  # here",
    ),
    "truth or number": (
        "PTO-U217",
        "a = n\nif n > 0:\n    a = True\nprint(a)  # here",
    ),
    "one of two windows": (
        "PTO-U217",
        "w = x[0:8, :] if n > 0 else x[8:16, :]  # here\npto.store(y, pto.load(w, 8, 64))",
    ),
    "one of two windows on a tile": (
        "PTO-U217",
        "t = pto.load(x, 16, 64)\nw = t[0:8, :] if n > 0 else t[8:16, :]  # here\npto.store(y, w)",
    ),
    "one of two accumulators": (
        "PTO-U217",
        "a, b = (pto.tile(16, 16, pto.f32, role='acc') for _ in range(2))\n"
        "c = a if n > 0 else b  # here\npto.store(y, c)",
    ),
    "one of two lists": (
        "PTO-U217",
        "a = [1, 2]\nif n > 0:\n    a = [1, 2, 3]\nprint(a[0])  # here",
    ),
    "one of two functions": (
        "PTO-U217",
        "f = pto.exp if n > 0 else pto.log  # here\npto.store(y, f(pto.load(x, 16, 64)))",
    ),
    "one of two comparisons": (
        "PTO-U217",
        "t = pto.load(x, 16, 64)\nc = t > 0.0 if n > 0 else t < 0.0  # here\n"
        "pto.store(y, pto.where(c, t, t))",
    ),
    "a loop that may not run": (
        "PTO-U217",
        "for i in pto.range(n):\n    a = i\npto.store(y[a:, :], pto.load(x, 16, 64))  # here",
    ),
    "a counter after its loop": (
        "PTO-U217",
        "for i in pto.range(n):\n    pass\nprint(i)  # here",
    ),
    "nothing at first": (
        "PTO-U217",
        "a = None\nfor i in pto.range(n):  # here\n    if a is None:\n        a = i\nprint(1)",
    ),
    "a text that grows": (
        "PTO-U217",
        "a = ''\nfor i in pto.range(n):  # here\n    a = a + 'x'\nprint(a)",
    ),
    "a list that is replaced": (
        "PTO-U217",
        "a = [1]\nfor i in pto.range(n):  # here\n    a = a + [2]\nprint(a[0])",
    ),
    "a shape that changes": (
        "PTO-U217",
        "t = pto.load(x, 16, 64)\nfor i in pto.range(n):  # here\n    t = t[0:8, :]\npto.store(y, t)",
    ),
    "a type that changes": (
        "PTO-U217",
        "t = pto.load(x, 16, 64)\nwhile n > 0:  # here\n    t = t.to(pto.f16)\npto.store(y, t)",
    ),
    "a float after an integer": (
        "PTO-U217",
        "a = n\nfor i in pto.range(4):  # here\n    a = 0.5\nprint(a)",
    ),
    "an index that becomes a float": (
        "PTO-U217",
        "a = 0\nfor i in pto.range(4):  # here\n    print(a + i)\n    a = 0.5\nprint(a)",
    ),
    "a window that moves": (
        "PTO-U217",
        "w = x[0:8, :]\nfor i in pto.range(n):  # here\n    w = x[i : i + 8, :]\npto.store(y, pto.load(w, 8, 64))",
    ),
    "read before it is bound": (
        "PTO-U217",
        "for i in pto.range(n):\n    if i > 0:\n        print(a)  # here\n    a = i",
    ),
    "a name that is not there": ("PTO-U217", "if n > 0:\n    print(nn)  # here"),
    "one kind of result, or none": (
        "PTO-U217",
        "def f(k):\n    if k > 0:  # here\n        return k\nprint(f(n))",
    ),
    "two kinds of result": (
        "PTO-U217",
        "def f(k):\n    if k > 0:\n        return 'many'\n    return k  # here\nprint(f(n))",
    ),
    "buffers swapped in a list": (
        "PTO-U217",
        "b = [pto.load(x, 16, 64), pto.zeros(16, 64, pto.f32)]\nfor i in pto.range(n):  # here\n    b[0], b[1] = b[1], b[0]\npto.store(y, b[0])",
    ),
    "counted in a dictionary": (
        "PTO-U217",
        "d = {'k': 0}\nfor i in pto.range(n):  # here\n    d['k'] += 1\nprint(d['k'])",
    ),
    "counted in an object": (
        "PTO-U217",
        "class Count:\n    k = 0\nc = Count()\nc.k = 1\nif n > 0:  # here\n    c.k = 2\nprint(c.k)",
    ),
    "appended in a branch": (
        "PTO-U217",
        "a = []\nif n > 0:  # here\n    a.append(1)\nprint(len(a))",
    ),
    "a value in a list": (
        "PTO-U217",
        "kept = []\nfor i in pto.range(4):  # here\n    kept.append(pto.load(x, 16, 64))\npto.store(y, kept[0])",
    ),
    "how many values are in a list": (
        "PTO-U217",
        "kept = []\nfor i in pto.range(n):  # here\n    kept.append(i)\npto.store(y[len(kept):, :], pto.load(x, 16, 64))",
    ),
    "a value in a dictionary": (
        "PTO-U217",
        "kept = {}\nif n > 0:  # here\n    kept['t'] = pto.load(x, 16, 64)\npto.store(y, kept['t'])",
    ),
    "a dictionary with another key": (
        "PTO-U217",
        "kept = {'a': 1}\nif n > 0:  # here\n    kept['b'] = kept.pop('a')\nprint(kept['b'])",
    ),
    "a value in an attribute that is read before": (
        "PTO-U217",
        "class Box:\n    pass\nb = Box()\nb.t = pto.load(x, 16, 64)\nfor i in pto.range(n):  # here\n    pto.store(y, b.t)\n    b.t = b.t * 2.0",
    ),
    "a value in an attribute": (
        "PTO-U216",
        "class Box:\n    pass\nb = Box()\nfor i in pto.range(n):\n    b.t = pto.load(x, 16, 64)\npto.store(y, b.t)  # here",
    ),
    "an attribute of a function": (
        "PTO-U217",
        "def f():\n    f.calls += 1\nf.calls = 0\nfor i in pto.range(n):  # here\n    f()\nprint(f.calls)",
    ),
    "a register after its scope": (
        "PTO-U216",
        "t = pto.load(x, 16, 64)\nwith pto.vecscope():\n    v = isa.vlds(t, 0)\n"
        "with pto.vecscope():\n    isa.vsts(v, t, 0)  # here",
    ),
    "one of two tiles changed in place": (
        "PTO-U217",
        "a, b = pto.load(x, 16, 64), pto.zeros(16, 64, pto.f32)\nu = a if n > 0 else b\nu += 1.0  # here\npto.store(y, u + a)",
    ),
    "a tile changed by its other name": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a\nif n > 0:\n    a = a + 1.0\nb += 2.0  # here\npto.store(y, a + b)",
    ),
    "a tile of nested branches changed by its other name": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a\nif n > 0:\n    if n > 1:\n        a = a + 1.0\n    b[:] = b * 1.0\n"
        "b += 2.0  # any\npto.store(y, a + b)",
    ),
    "a window of a tile that a variable may be": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a\nfor i in pto.range(n):\n    if i > 1:\n        a = a + 1.0\n"
        "    b[0:8, :] += 2.0  # any\npto.store(y, a + b)",
    ),
    "a tile that a loop changes and binds": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a\nfor i in pto.range(n):\n    a += 1.0  # here\n    a = a * 2.0\npto.store(y, a + b)",
    ),
    "a tile that a loop changes by its other name": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a\nfor i in pto.range(n):\n    b += 1.0  # here\n    a = a * 2.0\npto.store(y, a + b)",
    ),
    "a tile that the next iteration changes by its other name": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a * 0.0\nfor i in pto.range(3):\n    a += 1.0  # here\n    a = a + b\n    b = a\npto.store(y, b)",
    ),
    "a tile that a later iteration of a while changes": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb, c, k = a * 0.0, a * 2.0, n\nwhile k > 0:\n    c[0:8, :] += 1.0  # here\n"
        "    pto.store(y, a)\n    a, b, c = b, c, b\n    k = k - 1",
    ),
    "a tile of an inner loop that an outer one changes": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a * 0.0\nfor i in pto.range(n):\n    a += 1.0  # here\n"
        "    for j in pto.range(n):\n        a = b + 1.0\n        b = a\npto.store(y, a + b)",
    ),
    "a tile that a function changes by its other name": (
        "PTO-U217",
        "def f(t):\n    t += 1.0  # here\n    return t\na = pto.load(x, 16, 64)\nb = a * 0.0\n"
        "for i in pto.range(n):\n    a = f(a) * 2.0\n    b = a if n > 1 else b\npto.store(y, a + b)",
    ),
    "a tile that a register is stored to by its other name": (
        "PTO-U217",
        "a = pto.load(x, 16, 64)\nb = a\nfor i in pto.range(n):\n    with pto.vecscope():\n"
        "        v = isa.vlds(a, 0)\n        isa.vsts(v + v, a, 0)  # here\n    b = b + 1.0\npto.store(y, a + b)",
    ),
    "raise in a branch": ("PTO-U206", "if n > 0:\n    raise ValueError('n')  # here"),
    "raise in a loop": ("PTO-U206", "for i in pto.range(n):\n    raise ValueError('n')  # here"),
    "raise in a helper": (
        "PTO-U206",
        "def f(k):\n    if k > 0:\n        raise ValueError(k)  # here\n    return k\nprint(f(n))",
    ),
    "an exception that is caught": (
        "PTO-U206",
        "try:\n    if n > 0:  # here\n        {}['key']\nexcept KeyError:\n    pass\npto.store(y, pto.load(x, 16, 64))",
    ),
    "a tile as a condition": (
        "PTO-T206",
        "t = pto.load(x, 16, 64)\nif t:  # here\n    pto.store(y, t)",
    ),
    "a tile in a while": (
        "PTO-T206",
        "t = pto.load(x, 16, 64)\nwhile t:  # here\n    pto.store(y, t)",
    ),
    "not of a tile": (
        "PTO-T206",
        "t = pto.load(x, 16, 64)\nif not t:  # here\n    pto.store(y, t)",
    ),
    "an array as a condition": ("PTO-T206", "if x:  # here\n    pto.store(y, pto.load(x, 16, 64))"),
    "a comparison of tiles": (
        "PTO-U202",
        "t = pto.load(x, 16, 64)\nif t > 0.0:  # here\n    pto.store(y, t)",
    ),
    "tiles in a chain": (
        "PTO-U202",
        "t = pto.load(x, 16, 64)\npto.store(y, pto.where(0.0 < t < 1.0, t, t))  # here",
    ),
    "and of tiles": (
        "PTO-U202",
        "t = pto.load(x, 16, 64)\npto.store(y, pto.where(t > 0.0 and t < 1.0, t, t))  # here",
    ),
    "a comprehension's condition": ("PTO-U202", "print([k for k in (1, 2) if n > k][0])  # here"),
    "match": (
        "PTO-U202",
        "match n:  # here\n    case int():\n        pto.store(y, pto.load(x, 16, 64))",
    ),
    "sorted": ("PTO-U202", "print(sorted([n, n + 1])[0])  # here"),
    "a key of a dictionary": ("PTO-U203", "print({2: 1}.get(n))  # here"),
    "a key of a set": ("PTO-U203", "print(len({n, n + 1}))  # here"),
    "a number or None by or": ("PTO-U217", "print(n == 1 or None)  # here"),
    "a generator": (
        "PTO-U202",
        "def f(k):\n    if k > 0:  # here\n        yield k\nprint(*f(n))",
    ),
    "range of the program's number": ("PTO-U203", "for i in range(n):  # here\n    print(i)"),
    "a size of the program": ("PTO-U203", "pto.store(y, pto.zeros(n, 64, pto.f32))  # here"),
    "a size that a loop changes": (
        "PTO-U203",
        "rows = 8\nfor i in pto.range(2):\n    pto.store(y, pto.zeros(rows, 64, pto.f32))  # here\n    rows = rows * 2",
    ),
    "an index of a list": ("PTO-U203", "print([1, 2, 3][n])  # here"),
    "counting down": ("PTO-U220", "for i in pto.range(9, 0, -1):  # here\n    print(i)"),
    "enumerate of the program's loop": (
        "PTO-U224",
        "for k, i in enumerate(pto.range(4)):  # here\n    print(i)",
    ),
    "a list of the program's numbers": (
        "PTO-U224",
        "print(sum([i for i in pto.range(4)]))  # here",
    ),
    "a bound that is a tile": (
        "PTO-T202",
        "for i in pto.range(pto.load(x, 16, 64)):  # here\n    print(i)",
    ),
    "a bound that is a float": ("PTO-T202", "for i in pto.range(0.5):  # here\n    print(i)"),
    "a loop without end": ("PTO-U218", "k = 0\nwhile k < 1:  # here\n    k = k - 1"),
    "recursion by the program's number": (
        "PTO-U218",
        "def f(k):\n    return 0 if k < 1 else f(k - 1)  # here\nprint(f(n))",
    ),
    "an assertion that fails": ("PTO-S135", "size = 3\nassert size == 4, 'size'  # here"),
    "print without its end": ("PTO-U205", "print(n, end='')  # here"),
    "the first product in a while": (
        "PTO-U086",
        "a = pto.load(x[0:16, 0:16], 16, 16)\nacc = pto.zeros(16, 16, pto.f32, role='acc')\nk = n\n"
        "while k > 0:\n    acc = pto.dot(a, a, acc=acc)  # here\n    k = k - 1\npto.store(y[:, 0:16], acc)",
    ),
    "a kernel that returns": ("PTO-U211", "if n > 0:\n    return n\nreturn n + 1  # any"),
    "a nonlocal that is passed on": (
        "PTO-U217",
        "a = 0\ndef f():\n    nonlocal a\n    a = a + n\ndef g(h):\n    for i in pto.range(n):\n        h()\ng(f)  # here\nprint(a)",
    ),
    "a global that counts": (
        "PTO-U217",
        "global COUNT\nCOUNT = 0\nfor i in pto.range(n):\n    COUNT = COUNT + 1  # here\nprint(COUNT)",
    ),
    "a global dictionary": (
        "PTO-U217",
        "for i in pto.range(n):  # here\n    SEEN['n'] = SEEN['n'] + 1\nprint(SEEN['n'])",
    ),
    "an attribute of a class": (
        "PTO-U217",
        "class State:\n    count = 0\nif n > 0:  # here\n    State.count += 1\nprint(State.count)",
    ),
    "an element that no iteration adds": (
        "PTO-U217",
        "l = [pto.load(x, 16, 64)]\nfor i in pto.range(3):  # here\n    l.append(l[-1] + 1.0)\npto.store(y, l[2])",
    ),
    "counted in a nested list": (
        "PTO-U217",
        "a = [[0]]\nfor i in pto.range(n):  # here\n    a[0][0] = a[0][0] + 1\nprint(a[0][0])",
    ),
    "appended to a list in a dictionary": (
        "PTO-U217",
        "a = {'k': [0]}\nif n > 1:  # here\n    a['k'].append(1)\nprint(len(a['k']))",
    ),
    "appended to a list in a tuple": (
        "PTO-U217",
        "a = ([],)\nfor i in pto.range(n):  # here\n    a[0].append(1)\nprint(len(a[0]))",
    ),
    "appended by a function inside": (
        "PTO-U217",
        "a = []\ndef f():\n    a.append(1)\nfor i in pto.range(n):  # here\n    f()\nprint(len(a))",
    ),
    "appended by a global function": (
        "PTO-U217",
        "for i in pto.range(n):  # here\n    remember(1)\nprint(1)",
    ),
    "appended by a method": (
        "PTO-U217",
        "a = []\nadd = a.append\nfor i in pto.range(n):  # here\n    add(1)\nprint(len(a))",
    ),
    "appended in a conditional expression": (
        "PTO-U217",
        "a = []\nv = a.append(1) if n > 1 else None  # here\nprint(len(a))",
    ),
    "a default that grows": (
        "PTO-U217",
        "def f(a=[]):\n    a.append(1)\n    return len(a)\nfor i in pto.range(n):  # here\n    f()\nprint(f())",
    ),
    "counted in an object with slots": (
        "PTO-U217",
        "class Count:\n    __slots__ = ('v',)\nc = Count()\nc.v = 0\nfor i in pto.range(n):  # here\n    c.v = c.v + 1\nprint(c.v)",
    ),
    "a list of a class": (
        "PTO-U217",
        "class Seen:\n    items = []\nc = Seen()\nfor i in pto.range(n):  # here\n    c.items.append(1)\nprint(len(c.items))",
    ),
    "a deque": (
        "PTO-U217",
        "from collections import deque\na = deque([0])\nfor i in pto.range(n):  # here\n    a.append(1)\nprint(len(a))",
    ),
    "bytes that change": (
        "PTO-U217",
        "a = bytearray(1)\nfor i in pto.range(n):  # here\n    a[0] = 5\nprint(a[0])",
    ),
    "an array of NumPy that changes": (
        "PTO-U217",
        "import numpy as np\na = np.zeros(1)\nfor i in pto.range(n):  # here\n    a[0] += 1\nprint(float(a[0]))",
    ),
    "the next element": (
        "PTO-U217",
        "it = iter([1, 2, 3])\nfor i in pto.range(n):  # here\n    print(next(it))",
    ),
    "the rest of an iterator": (
        "PTO-U217",
        "it = iter([1, 2, 3])\nfor i in pto.range(n):  # here\n    for k in it:\n        print(k)",
    ),
    "the next number": (
        "PTO-U217",
        "import itertools\nc = itertools.count()\nif n > 1:  # here\n    print(next(c))\nprint(1)",
    ),
    "a variable that each iteration deletes": (
        "PTO-U217",
        "a = n\nfor i in pto.range(n):  # here\n    del a\nprint(1)",
    ),
    "one of two definitions": (
        "PTO-U217",
        "if n > 1:\n    def f():\n        return 1\nelse:\n    def f():\n        return 2\nprint(f())  # here",
    ),
    "the end of the process": (
        "PTO-U206",
        "import sys\nfor i in pto.range(n):\n    if i == 1:\n        sys.exit(3)  # here",
    ),
    "a number of Python that is converted": (
        "PTO-U081",
        "k = 1\npto.store(y, pto.load(x, 16, 64) * k.to(pto.f32))  # here",
    ),
    "a loop over a tile": (
        "PTO-U081",
        "t = pto.load(x, 16, 64)\nfor row in t:  # here\n    print(row)",
    ),
    "the sum of a tile": ("PTO-U081", "print(sum(pto.load(x, 16, 64)))  # here"),
    "a tile with two parts": ("PTO-U081", "a, b = pto.load(x, 16, 64)  # here\npto.store(y, a)"),
    "a number within a tile": (
        "PTO-U081",
        "t = pto.load(x, 16, 64)\nif 0.0 in t:  # here\n    pto.store(y, t)",
    ),
    "a power of the program": ("PTO-T202", "print(n**n)  # here"),
    "a power below one": ("PTO-T202", "print(n**-1)  # here"),
    "a step of the program": ("PTO-S201", "pto.store(y, pto.load(x[::n, :], 8, 64))  # here"),
    "the end of a tile with an edge": (
        "PTO-S200",
        "t = pto.load(x[4:, :], 16, 64)\npto.store(y, t[-8:, :])  # here",
    ),
    "a generator that loops in the program": (
        "PTO-U224",
        "def f():\n    for i in pto.range(n):  # here\n        yield i\nprint(list(f())[0])",
    ),
    "a generator that gets values": (
        "PTO-U224",
        "def f():\n    for i in pto.range(n):  # here\n        k = yield i\nfor i in f():\n    print(i)",
    ),
    "a generator that handles exceptions of its loop": (
        "PTO-U224",
        "def f():\n    try:\n        for i in pto.range(n):  # here\n            yield i\n"
        "    except KeyError:\n        pass\nfor i in f():\n    print(i)",
    ),
    "a context around a loop": (
        "PTO-U224",
        "import contextlib\n@contextlib.contextmanager\ndef f():\n    for i in pto.range(n):  # here\n"
        "        yield i\nwith f() as i:\n    print(i)",
    ),
    "an iterator of a loop": (
        "PTO-U224",
        "class Steps:\n    def __iter__(self):\n        return iter(pto.range(n))  # here\n"
        "for i in Steps():\n    print(i)",
    ),
    "a loop that is mapped": (
        "PTO-U224",
        "for i in map(lambda i: i, pto.range(n)):  # here\n    print(i)",
    ),
    "a fold of a loop": (
        "PTO-U224",
        "import functools\nprint(functools.reduce(lambda a, i: a + i, pto.range(n), 0))  # here",
    ),
    "the first number of a generator": (
        "PTO-U224",
        "def f():\n    for i in pto.range(n):  # here\n        yield i\nprint(next(f()))",
    ),
    "a generator that goes on after break": (
        "PTO-U224",
        "def f():\n    for i in pto.range(n):\n        yield i\ng = f()\nfor i in g:\n    if i > 1:\n"
        "        break\nfor i in g:  # here\n    print(i)",
    ),
    "a generator of one iteration": (
        "PTO-U217",
        "def f():\n    for i in range(2):\n        yield i\ng = f()\nfor j in pto.range(n):  # here\n"
        "    for i in g:\n        print(i)",
    ),
    "an operand of the matrix unit after its loop": (
        "PTO-U217",
        "for i in pto.range(2):\n    t = pto.load(x, 16, 64, role='mat')\n"
        "pto.store(y, pto.dot(t, pto.zeros(64, 64, pto.f32)))  # here",
    ),
    "a pair with such an operand after its loop": (
        "PTO-U217",
        "for i in pto.range(n):\n    t = (i, pto.load(x, 16, 64, role='mat'))\n"
        "pto.store(y, pto.dot(t[1], pto.zeros(64, 64, pto.f32)))  # here",
    ),
    "a window after its loop": (
        "PTO-U217",
        "for i in pto.range(2):\n    t = pto.load(x, 16, 64)[0:8, :]\npto.store(y[0:8, :], t)  # here",
    ),
    "a number of a generator that may not yield": (
        "PTO-U217",
        "def f():\n    for i in pto.range(n):\n        yield i\nfor i in f():\n    k = i\nprint(k)  # here",
    ),
    "a number of a generator that returns before it yields": (
        "PTO-U217",
        "def f():\n    if n > 3:\n        return\n    yield n\nfor i in f():\n    k = i\nprint(k)  # here",
    ),
    "a list filled by the body of a generator's loop": (
        "PTO-U217",
        "def f():\n    for i in pto.range(n):  # here\n        yield i\nkept = []\nfor i in f():\n"
        "    kept.append(1)\nprint(len(kept))",
    ),
    "an attribute that a generator counts": (
        "PTO-U217",
        "class Count:\n    k = 0\nc = Count()\nc.k = 0\ndef f():\n    for i in pto.range(n):  # here\n"
        "        c.k += 1\n        yield i\nfor i in f():\n    pass\nprint(c.k)",
    ),
    "a kernel that is launched while another is traced": (
        "PTO-U212",
        "OTHER[1](ARRAY)  # here",
    ),
    "the shape of a tile that is assigned": (
        "PTO-U081",
        "t = pto.load(x, 16, 64)\nt.shape = (8, 128)  # here\npto.store(y, t)",
    ),
    "an element type that is called": ("PTO-U081", "print(pto.f32(n))  # here"),
    "no bound": ("PTO-U205", "pto.store(y, pto.clamp(pto.load(x, 16, 64)))  # here"),
    "is a number": ("PTO-U202", "if n is 5:  # here\n    print(1)"),
    "a binding behind and": (
        "PTO-U202",
        "if n > 0 and (q := n + 1) > 3:  # here\n    pass\nprint(q)",
    ),
    "a binding in a conditional expression": (
        "PTO-U202",
        "v = (q := n) if n > 0 else 3  # here\nprint(v, q)",
    ),
    "a finding that is caught": (
        "PTO-U203",
        "try:\n    print(int(n))  # here\nexcept Exception:\n    print(0)",
    ),
    "a loop backwards": ("PTO-U224", "for i in reversed(pto.range(n)):  # here\n    print(i)"),
    "the length of a loop": ("PTO-U224", "print(len(pto.range(n)))  # here"),
    "a number in a loop": ("PTO-U224", "print(1 if n in pto.range(4) else 0)  # here"),
    "a quotient of integers": ("PTO-T202", "print(n / 2)  # here"),
    "a shift by less than nothing": ("PTO-T202", "print(n << -1)  # here"),
    "a remainder of zero": ("PTO-S132", "print(n % 0)  # here"),
    "blocks of nothing": ("PTO-S132", "print(pto.cdiv(n, 0))  # here"),
    "a tile in a format": (
        "PTO-U205",
        "t = pto.load(x, 16, 64)\nprint(f'{t:.2f}')  # here",
    ),
    "a number as text": ("PTO-U203", "print('{}'.format(n))  # here"),
    "a number in a text": ("PTO-U203", "print('%s' % n)  # here"),
    "numbers joined": ("PTO-U081", "print(','.join([str(n)]))  # here"),
    "a tile as text": ("PTO-U081", "t = pto.load(x, 16, 64)\nprint('{}'.format(t))  # here"),
}


REMEMBERED: list[int] = []


def remember(value: int) -> None:
    """A function of a kernel that changes a global list."""
    REMEMBERED.append(value)


def other(x: pto.Global[pto.f32]) -> None:
    """A kernel that another one calls."""
    pto.store(x, pto.load(x, 16, 64))


def kernel_of(body: str, file: str) -> tuple[Any, list[str]]:
    """A kernel with this body, from a file that only Python's line cache has."""
    body = body.replace("\n", "\n    ")
    text = f"def k(x: F32, y: F32, n: Number):\n    {body}\n"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {
        "pto": pto,
        "isa": pto.isa,
        "__name__": "kernels",
        "F32": pto.Global[pto.f32],
        "Number": pto.Scalar[pto.i32],
        "SEEN": {"n": 0},
        "remember": remember,
        "OTHER": pto.kernel(other),
        "ARRAY": np.zeros((16, 64), np.float32),
    }
    exec(compile(text, file, "exec"), names)
    return pto.kernel(names["k"]), text.splitlines()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_finding_at_its_line(name: str):
    code, body = MISTAKES[name]
    kernel, lines = kernel_of(body, f"<{name}>")
    with pytest.raises(pto.PtoError) as caught:
        kernel(np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32), 2)
    found = caught.value.diagnostics[0]
    assert found.code == code, str(caught.value)
    marked = [n for n, line in enumerate(lines, 1) if "# here" in line]
    if marked:
        assert found.loc is not None
        assert (found.loc.file, found.loc.line) == (f"<{name}>", marked[0]), str(caught.value)


def test_equal_functions_of_two_files_have_their_own_places():
    body = "def f():\n    for i in pto.range(n):\n        yield i\nprint(list(f()))"
    for file in ("<first>", "<second>"):
        kernel, _ = kernel_of(body, file)
        with pytest.raises(pto.PtoError) as caught:
            kernel(np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32), 2)
        found = caught.value.diagnostics[0].loc
        assert found is not None and found.file == file


def test_there_are_sixty():
    assert len(MISTAKES) >= 60
