"""Tokens to graph. Custom syntax comes from the rows, the generic form is MLIR's own.

A wrong operation is reported and skipped, so one run finds more than the first mistake. Nesting,
size and the number of findings are bounded: a hostile file costs time linear in its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pto.core.errors import Diagnostic, PtoError, nearest
from pto.ir import attribute_text, structured
from pto.ir import lexer as lx
from pto.ir.format import Draft, Step, canonical, compile_format, distribute
from pto.ir.graph import Block, Module, Operation, Region, Source, Span, Value
from pto.ir.infer import INFERRED
from pto.ir.types import is_scalar_word, parse_type, type_text
from pto.isa.attributes import Attribute, Ints, Unit
from pto.isa.table import lookup, suggest
from pto.isa.types import Function, Opaque, Type

MAX_DEPTH = 128
MAX_FINDINGS = 50
_POISON = Opaque("<error>")  # the type of a value whose definition failed; it agrees with anything
_ELIDED = {"pointer": "!pto.ptr", "tile": "!pto.tile_buf", "vreg": "!pto.vreg", "mask": "!pto.mask"}


class ParseFailed(PtoError):
    """One operation could not be read; the parser goes on after it."""


def parse(text: str, file: str = "<text>") -> Module:
    """The program in `text`. Raises PtoError with every finding when it is not well formed."""
    parser = Parser(Source(file, text))
    module = parser.program()
    if parser.findings:
        raise PtoError(*parser.findings)
    return module


def parse_file(path: str | Path) -> Module:
    """Like `parse`, for a file; encoding and reading problems are diagnostics too."""
    return parse(read_source(path), str(path))


def read_source(path: str | Path) -> str:
    """The text of a program file."""
    where = Path(path)
    try:
        data = where.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise PtoError(Diagnostic("PTO-P004", f"cannot read {where}: {reason}")) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{where} is not UTF-8: byte 0x{data[error.start]:02x} on line {line}"
        raise PtoError(Diagnostic("PTO-P005", message)) from None


class Parser:
    """A cursor over tokens, the scopes of SSA names, and the findings so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        tokens = lx.Tokens(source.file, source.text)
        self.kinds, self.texts = tokens.kinds, tokens.texts
        self.starts, self.ends = tokens.starts, tokens.ends
        self.i = 0
        self.scopes: list[dict[str, Value]] = [{}]
        self.findings: list[Diagnostic] = []
        self.aliases: dict[str, str] = {}

    # ---- cursor

    @property
    def kind(self) -> int:
        return self.kinds[self.i]

    @property
    def text(self) -> str:
        return self.texts[self.i]

    def at(self, text: str) -> bool:
        """Is the cursor at this punctuation or word?"""
        return self.texts[self.i] == text and self.kinds[self.i] != lx.STRING

    def take(self) -> str:
        self.i += 1
        return self.texts[self.i - 1]

    def accept(self, text: str) -> bool:
        found = self.at(text)
        self.i += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail("PTO-P010", f"expected `{text}`, got {self.shown()}")

    def ahead(self, test: Callable[[Parser], bool]) -> bool:
        """Does `test` hold one token further on?"""
        self.i += 1
        holds = test(self)
        self.i -= 1
        return holds

    def shown(self) -> str:
        """The current token as messages name it."""
        text = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        return text if self.kind == lx.END else f"`{text}`"

    def fail(
        self, code: str, message: str, *, help: str | None = None, at: int | None = None
    ) -> NoReturn:
        i = self.i if at is None else at
        loc = self.source.loc(self.starts[i], self.ends[i])
        raise ParseFailed(Diagnostic(code, message, loc, help=help))

    def note(self, code: str, message: str, at: int) -> None:
        """A finding that does not stop the operation."""
        loc = self.source.loc(self.starts[at], self.ends[at])
        self._record(Diagnostic(code, message, loc))

    def _record(self, finding: Diagnostic) -> None:
        self.findings.append(finding)
        if len(self.findings) >= MAX_FINDINGS:
            raise PtoError(*self.findings)

    # ---- SSA names

    def named(self) -> Value | None:
        """The value that the name at the cursor stands for, if it is defined."""
        name = self.text[1:]
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def use(self) -> Value:
        if self.kind != lx.VALUE:
            self.fail("PTO-P020", f"expected an operand, got {self.shown()}")
        value, name = self.named(), self.take()[1:]
        if value is not None:
            return value
        known = [n for scope in self.scopes for n in scope]
        at = self.i - 1
        self.fail("PTO-P011", f"%{name} is not defined here", help=nearest(name, known), at=at)

    def define(self, name: str, value: Value, at: int) -> None:
        scope = self.scopes[-1]
        if any(name in s for s in self.scopes):
            self.note("PTO-P015", f"%{name} is defined twice", at)
        scope[name] = value

    # ---- types

    def type(self, like: Type | None = None, kind: str = "") -> Type:
        """A type; `<f32, ub>` without its head takes the head of `like` or of the kind."""
        at = self.i
        try:
            if self.kind in (lx.TYPE, lx.WORD):
                text = self.take()
                return parse_type(self.aliases.get(text, text))
            if self.text == "<":
                return self._elided(like, kind)
            if self.text == "(":
                return self.function_type()
        except PtoError as error:
            if isinstance(error, ParseFailed):
                raise
            found = error.diagnostics[0]
            self.fail(found.code, found.message, help=found.help, at=at)
        self.fail("PTO-P016", f"expected a type, got {self.shown()}")

    def _elided(self, like: Type | None, kind: str) -> Type:
        start, depth = self.starts[self.i], 0
        while True:
            depth += (self.text == "<") - (self.text == ">")
            if self.kind == lx.END:
                self.fail("PTO-P010", "expected `>`, got the end of the file")
            self.i += 1
            if depth == 0:
                break
        head = _ELIDED.get(kind, "!pto.tile_buf")
        if like is not None and like is not _POISON:
            head = type_text(like).partition("<")[0]
        return parse_type(head + self.source.text[start : self.ends[self.i - 1]])

    def function_type(self) -> Function:
        inputs = self.type_list()
        self.expect("->")
        results = self.type_list() if self.text == "(" else [self.type()]
        return Function(tuple(inputs), tuple(results))

    def type_list(self) -> list[Type]:
        """`(T, T)`, possibly empty."""
        self.expect("(")
        types: list[Type] = []
        while not self.accept(")"):
            types.append(self.type())
            if self.text != ")":
                self.expect(",")
        return types

    def signature(self, draft: Draft) -> None:
        """`(T, T) -> T`: types of the pending operands, and of the results."""
        at = self.i
        type = self.function_type()
        if len(type.inputs) != len(draft.pending):
            wanted = len(draft.pending)
            message = f"{wanted} operands need {wanted} types, got {len(type.inputs)}"
            self.fail("PTO-P017", message, at=at)
        for value, written in zip(draft.pending, type.inputs, strict=True):
            self._agree(value, written, at)
        draft.pending.clear()
        draft.result_types = list(type.results)

    def types_of(self, draft: Draft) -> None:
        """One type for each pending operand; it must be the type the operand has."""
        for n, value in enumerate(draft.pending):
            if n:
                if self.text != ",":
                    count = len(draft.pending)
                    self.fail(
                        "PTO-P017", f"{count} operands need {count} types, got {n}", at=self.i - 1
                    )
                self.i += 1
            while self.kind == lx.WORD and not is_scalar_word(self.text):
                self.i += 1  # a label: `loop i64, i64`
            at = self.i
            self._agree(value, self.type(value.type), at)
        draft.pending.clear()

    def shared_type(self, draft: Draft) -> None:
        at = self.i
        written = self.type(draft.pending[0].type if draft.pending else None)
        for value in draft.pending:
            self._agree(value, written, at)
        if not draft.pending:
            draft.result_types.append(written)
        draft.pending.clear()

    def _agree(self, value: Value, written: Type, at: int) -> None:
        if value.type == written or value.type is _POISON:
            return
        actual = type_text(value.type)
        message = f"%{value.name} is {actual}, but its type is written {type_text(written)}"
        self.note("PTO-T040", message, at)

    def result_types(self, draft: Draft) -> None:
        results = draft.row.results
        parenthesised = self.accept("(")
        while not (parenthesised and self.text == ")"):
            nth = len(draft.result_types)
            kind = results[nth].kind if nth < len(results) else ""
            draft.result_types.append(self.type(kind=kind))
            if not self.accept(","):
                break
        if parenthesised:
            self.expect(")")

    # ---- attributes

    def attribute(self) -> Attribute:
        return attribute_text.read(self)

    def attr_dict(self, draft: Draft) -> None:
        for key, value in self.attr_items("{", "}"):
            spec = draft.row.attr(key)
            draft.op.attrs[key] = value if spec is None else canonical(self, spec, value)

    def attr_items(self, opener: str, closer: str) -> list[tuple[str, Attribute]]:
        """`{key = value, unit, "quoted" = 1}`."""
        self.expect(opener)
        items: list[tuple[str, Attribute]] = []
        seen: set[str] = set()
        while not self.accept(closer):
            if self.kind not in (lx.WORD, lx.STRING):
                self.fail("PTO-P018", f"expected an attribute name, got {self.shown()}")
            key = self.take().strip('"')
            if key in seen:
                self.note("PTO-P019", f"attribute {key} is given twice", self.i - 1)
            seen.add(key)
            items.append((key, self.attribute() if self.accept("=") else Unit()))
            if self.text != closer:
                self.expect(",")
        return items

    # ---- operations

    def program(self) -> Module:
        """A module, or a list of operations that we wrap in one."""
        top = Operation("builtin.module", lookup("builtin.module"))
        region = Region(top)
        top.regions.append(region)
        block = Block(region)
        region.blocks.append(block)
        self.operations(block, lx.END)
        ops = block.ops
        if len(ops) == 1 and ops[0].name == "builtin.module" and not self.findings:
            ops[0].parent = None
            return Module(ops[0], self.source)
        return Module(top, self.source)

    def operations(self, block: Block, end: int | str) -> None:
        """Operations up to the closing brace (or the end of the file)."""
        while self.text != end and self.kind != lx.END:
            if self.kind in (lx.TYPE, lx.ATTR) and self.texts[self.i + 1] == "=":
                self._alias()
                continue
            start, scopes = self.i, len(self.scopes)
            try:
                op = self.operation()
            except ParseFailed as failed:
                del self.scopes[scopes:]
                self._record(failed.diagnostics[0])
                self._skip(start)
                continue
            op.parent = block
            block.ops.append(op)

    def _alias(self) -> None:
        name = self.take()
        self.expect("=")
        self.aliases[name] = self.aliases.get(self.text, self.text)
        self.i += 1

    def _skip(self, start: int) -> None:
        """Go on at the next line that starts outside the braces the failed operation opened."""
        names = self._result_names(start)
        for name, at, count in names:
            for n in range(count):
                key = name if count == 1 else f"{name}#{n}"
                self.scopes[-1].setdefault(key, Value(_POISON, key))
            del at
        failed_at, self.i, depth = self.i, start, 0
        while self.kind != lx.END:
            depth += (self.text in "{([") - (self.text in "})]") if self.kind == lx.PUNCT else 0
            if depth < 0:
                return
            self.i += 1
            fresh = "\n" in self.source.text[self.ends[self.i - 1] : self.starts[self.i]]
            if depth == 0 and fresh and self.i > failed_at and self._may_start():
                return

    def _may_start(self) -> bool:
        if self.kind == lx.VALUE:
            return self.texts[self.i + 1] in ("=", ",", ":")
        return self.text == "}" or (self.kind == lx.WORD and "." in self.text)

    def _result_names(self, start: int) -> list[tuple[str, int, int]]:
        """`%a, %b:2 =` as (name, token, count); leaves the cursor after the `=`."""
        self.i = start
        names: list[tuple[str, int, int]] = []
        while self.kind == lx.VALUE:
            at = self.i
            name, count = self.take()[1:], 1
            if self.text == ":" and self.kinds[self.i + 1] == lx.NUMBER:
                self.i += 1
                count = min(int(self.take(), 0), 64)
            names.append((name, at, count))
            if not self.accept(","):
                break
        if names and not self.accept("="):
            return []
        return names

    def operation(self) -> Operation:
        start = self.i
        names = self._result_names(start)
        if not names and self.kinds[start] == lx.VALUE:
            self.i = start + 1
            self.fail("PTO-P010", f"expected `=`, got {self.shown()}")
        at = self.i
        if self.kind == lx.STRING:
            op = self.generic(start)
        elif self.kind == lx.WORD:
            op = self.custom(start)
        else:
            self.fail("PTO-P020", f"expected an operation, got {self.shown()}")
        if self.kind == lx.WORD and self.text == "loc":
            self._skip_location()
        self._bind_results(op, names, at)
        return op

    def custom(self, start: int) -> Operation:
        at = self.i
        name = structured.SHORT_NAMES.get(self.text, self.text)
        row = lookup(name)
        if row is None:
            self.fail("PTO-P021", f"unknown operation `{name}`", help=suggest(name))
        self.i += 1
        op = Operation(row.name, row)
        draft = Draft(row, op)
        if row.text.startswith("="):
            structured.READERS[row.text](self, draft)
        else:
            self._steps(compile_format(row), draft)
        self._assemble(draft, at)
        op.where = Span(self.source, self.starts[start], self.ends[at])
        return op

    def _steps(self, steps: Sequence[Step], draft: Draft) -> None:
        for step in steps:
            step.read(self, draft)

    def _assemble(self, draft: Draft, at: int) -> None:
        """Operands in the row's order, results with their types."""
        row, op = draft.row, draft.op
        if draft.bound:
            sizes: list[int] = []
            for operand in row.operands:
                values = draft.bound.get(operand.name, [])
                if not values and not (operand.optional or operand.variadic):
                    self.fail("PTO-P012", f"'{row.name}' op needs operand {operand.name}", at=at)
                sizes.append(len(values))
                op.operands += values
            if not row.fixed_operands:
                op.segments = tuple(sizes)
        types = draft.result_types
        if not types:
            types = [self._implied(op, r.type, at) for r in row.results if r.type]
        op.results = [Value(type, "", op) for type in types]

    def _implied(self, op: Operation, type: str, at: int) -> Type:
        if type not in INFERRED:
            return parse_type(type)
        if any(v.type is _POISON for v in op.operands):
            return _POISON
        inferred = INFERRED[type](op)
        if inferred is None:
            message = f"the result type of '{op.name}' op cannot be told from its operands"
            self.fail("PTO-P070", message, help="write it after `->`", at=at)
        return inferred

    def _bind_results(self, op: Operation, names: list[tuple[str, int, int]], at: int) -> None:
        count = sum(n for _, _, n in names)
        if names and count != len(op.results):
            message = f"'{op.name}' op has {len(op.results)} results, {count} are named"
            self.fail("PTO-P022", message, at=at)
        if not names:
            for n, value in enumerate(op.results):
                value.name = f"unused{n}"
        results = iter(op.results)
        for name, token, n in names:
            for k in range(n):
                value = next(results)
                value.name = name if n == 1 else f"{name}_{k}"
                self.define(name if n == 1 else f"{name}#{k}", value, token)
            if n > 1:
                self.scopes[-1][name] = op.results[0]

    # ---- regions

    def region(self, region: Region, args: Sequence[tuple[str, int, Value]] = ()) -> None:
        """`{ ... }` with arguments already named, or named by a block label inside."""
        if len(self.scopes) > MAX_DEPTH:
            self.fail("PTO-P023", f"regions are nested more than {MAX_DEPTH} deep")
        self.expect("{")
        block = Block(region)
        region.blocks.append(block)
        self.scopes.append({})
        for name, at, value in args:
            value.owner = block
            block.args.append(value)
            self.define(name, value, at)
        if self.kind == lx.LABEL:
            self._label(block)
        self.operations(block, "}")
        if self.kind == lx.LABEL:
            self.fail("PTO-P024", "branches between blocks are not part of PTO; use scf")
        self.expect("}")
        self.scopes.pop()

    def _label(self, block: Block) -> None:
        self.i += 1
        if self.accept("("):
            while not self.accept(")"):
                at, name = self.i, self.take()[1:]
                self.expect(":")
                value = Value(self.type(), name, block)
                block.args.append(value)
                self.define(name, value, at)
                if self.text != ")":
                    self.expect(",")
        self.expect(":")

    # ---- MLIR's generic form

    def generic(self, start: int) -> Operation:
        at = self.i
        name = self.take()[1:-1]
        row = lookup(name)
        if row is None:
            self.fail("PTO-P021", f"unknown operation `{name}`", help=suggest(name), at=at)
        op = Operation(row.name, row)
        draft = Draft(row, op)
        operands = self._generic_operands()
        if self.accept("<"):
            self._generic_attrs(draft, self.attr_items("{", "}"))
            self.expect(">")
        self._generic_regions(op)
        if self.text == "{":
            self._generic_attrs(draft, self.attr_items("{", "}"))
        self.expect(":")
        draft.pending = list(operands)
        self.signature(draft)
        self._generic_segments(draft, operands)
        op.results = [Value(t, "", op) for t in draft.result_types]
        op.where = Span(self.source, self.starts[start], self.ends[at])
        return op

    def _generic_operands(self) -> list[Value]:
        self.expect("(")
        operands: list[Value] = []
        while not self.accept(")"):
            if self.kind != lx.VALUE:
                self.fail("PTO-P020", f"expected an operand, got {self.shown()}")
            operands.append(self.use())
            if self.text != ")":
                self.expect(",")
        return operands

    def _generic_regions(self, op: Operation) -> None:
        if not (self.text == "(" and self.texts[self.i + 1] == "{"):
            return
        self.i += 1
        while True:
            region = Region(op)
            op.regions.append(region)
            if self.at("{") and self.texts[self.i + 1] == "}":
                self.i += 2  # a declaration has no body
            else:
                self.region(region)
            if not self.accept(","):
                break
        self.expect(")")

    def _generic_attrs(self, draft: Draft, items: list[tuple[str, Attribute]]) -> None:
        for key, value in items:
            spec = draft.row.attr(key)
            draft.op.attrs[key] = value if spec is None else canonical(self, spec, value)

    def _generic_segments(self, draft: Draft, operands: list[Value]) -> None:
        row, op = draft.row, draft.op
        op.operands = operands
        sizes = op.attrs.pop("operandSegmentSizes", None)
        if row.fixed_operands:
            if len(operands) != len(row.operands):
                wanted = len(row.operands)
                self.fail(
                    "PTO-P012", f"'{row.name}' op expects {wanted} operands, got {len(operands)}"
                )
        elif isinstance(sizes, Ints) and len(sizes.values) == len(row.operands):
            op.segments = sizes.values
        else:
            chunks = distribute(self, row, row.operands, operands)
            op.segments = tuple(len(values) for _, values in chunks)

    def _skip_location(self) -> None:
        """`loc("file":1:2)`: the place in another tool's source; ours is the text itself."""
        self.i += 1
        self.expect("(")
        depth = 1
        while depth and self.kind != lx.END:
            depth += (self.text == "(") - (self.text == ")")
            self.i += 1
