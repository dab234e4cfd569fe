"""Tokens to graph. Custom syntax comes from the rows, the generic form is MLIR's own.

A wrong operation is reported and skipped, so one run finds more than the first mistake. Nesting,
size and the number of findings are bounded: a hostile file costs time linear in its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pto.core.errors import Diagnostic, PtoError
from pto.ir.canonical import canonical
from pto.ir.graph import Block, Module, Operation, Region, Source, Value, no_collection
from pto.ir.infer import FROM_NUMBERS, INFERRED
from pto.ir.text import lexer as lx
from pto.ir.text import structured
from pto.ir.text.affine import is_affine, read_affine
from pto.ir.text.branches import BRANCHES, BlockBranch, places, read_branch
from pto.ir.text.cursor import POISON, Cursor, Draft, ParseFailed
from pto.ir.text.format import compile_format
from pto.ir.text.generic import SIZES, read_generic
from pto.ir.text.lifted import lift
from pto.ir.text.repeats import ParserCache
from pto.ir.text.types import parse_type
from pto.isa.row.attributes import Attribute
from pto.isa.row.types import Type
from pto.isa.scalar.structure import MODULE
from pto.isa.table import lookup, suggest


def parse(text: str, file: str = "<text>") -> Module:
    """The program in `text`. Raises PtoError with every finding when it is not well formed."""
    with no_collection():
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
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise PtoError(Diagnostic("PTO-P004", f"cannot read {where}: {reason}")) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{where} is not UTF-8: byte 0x{data[error.start]:02x} on line {line}"
        raise PtoError(Diagnostic("PTO-P005", message)) from None


class Parser(Cursor):
    """Operations and regions."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.repeats = ParserCache()
        self.ends: dict[Block, BlockBranch] = {}  # branches that end blocks of the current region
        self.steps: list[Operation] = []  # operations to insert before the current one
        self.counted = False  # a type of the current operation depends on values of constants

    def program(self) -> Module:
        """A module, or a list of operations that we wrap in one."""
        top = Operation.of(MODULE)
        region = top.new_region()
        block = Block(region)
        region.blocks.append(block)
        self.operations(block, lx.END)
        if self.kind == lx.LABEL:
            self.note("PTO-P024", "branches between blocks are not part of PTO; use scf", self.i)
        ops = block.ops
        if len(ops) == 1 and ops[0].row is MODULE and not self.findings:
            ops[0].parent = None
            return Module(ops[0], self.source)
        return Module(top, self.source)

    def operations(self, block: Block, end: int | str) -> None:
        """Operations up to the closing brace (or the end of the file)."""
        while self.text != end and self.kind not in (lx.END, lx.LABEL):
            if self.kind in (lx.TYPE, lx.ATTR) and self.texts[self.i + 1] == "=":
                self._alias()
                continue
            if end == lx.END and self.at("}"):  # it closes nothing
                self.note("PTO-P020", f"expected an operation, got {self.shown()}", self.i)
                self.i += 1
                continue
            start, scopes = self.i, len(self.scopes)
            try:
                if self.text.strip('"') in BRANCHES:
                    self.ends[block] = read_branch(self)
                    return
                op = self.operation()
            except ParseFailed as failed:
                del self.scopes[scopes:]
                self.record(failed.diagnostics[0])
                self._skip(start)
                continue
            for step in (*self.steps, op):
                block.append(step)
            self.steps.clear()

    def _alias(self) -> None:
        name = self.take()
        self.expect("=")
        text = self.take()
        self.aliases[name] = self.aliases.get(text, text)
        self.repeats.forget()

    def _skip(self, start: int) -> None:
        """Continue at the next line outside the braces that the failed operation opened."""
        names = self._result_names(start)
        for name, _, count in names:
            for n in range(count):
                key = name if count == 1 else f"{name}#{n}"
                self.scopes[-1].setdefault(key, Value(POISON, key))
        failed_at = self.i
        self.i = start
        depth = 0
        while self.kind != lx.END:
            if self.kind == lx.PUNCT:
                if depth == 0 and self.text == "}":  # it closes the region around the operation
                    return
                depth += (self.text in "{([") - (depth > 0 and self.text in "})]")
            self.i += 1
            blank = self.tokens.ends[self.i - 1], self.tokens.start(self.i)
            fresh = "\n" in self.source.text[slice(*blank)]
            if depth == 0 and fresh and self.i > failed_at and self._may_start():
                return

    def _may_start(self) -> bool:
        if self.kind == lx.VALUE:
            return self.texts[self.i + 1] in ("=", ",", ":")
        if self.kind == lx.WORD:
            return "." in self.text or self.text in structured.SHORT_NAMES
        return self.at("}")

    def _result_names(self, start: int) -> list[tuple[str, int, int]]:
        """`%a, %b:2 =` as (name, token, count); leaves the cursor after the `=`."""
        self.i = start
        names: list[tuple[str, int, int]] = []
        while self.kind == lx.VALUE:
            at = self.i
            name, count = self.take()[1:], 1
            if self.text == ":" and self.kinds[self.i + 1] == lx.NUMBER:
                self.i += 1
                if not self.text.isdecimal():
                    self.fail("PTO-P020", f"expected how many results, got {self.shown()}")
                count = min(int(self.take()), 64)
            names.append((name, at, count))
            if not self.accept(","):
                break
        if names and not self.accept("="):
            return []
        return names

    def operation(self) -> Operation:
        repeated = self.repeats.read(self)
        if repeated is not None:
            return repeated
        outer, self.uses = self.uses, []
        try:
            return self._operation()
        finally:
            self.uses = outer

    def _operation(self) -> Operation:
        start = self.i
        wrong = len(self.findings)
        self.counted = False
        names = self._result_names(start)
        if not names and self.kinds[start] == lx.VALUE:
            self.i = start + 1
            self.fail("PTO-P010", f"expected `=`, got {self.shown()}")
        at = self.i
        if self.kind == lx.STRING:
            op = read_generic(self, start)
        elif self.kind == lx.WORD:
            op = self.custom(start)
        else:
            self.fail("PTO-P020", f"expected an operation, got {self.shown()}")
        self.skip_location()
        self._bind_results(op, names, at)
        if len(self.findings) == wrong and not (self.counted or any(n > 1 for _, _, n in names)):
            self.repeats.remember(self, op, start, at, [token for _, token, _ in names])
        values = {here: value for _, here, value in self.uses}
        op.operands = [values.get(v, v) for v in op.operands]
        return op

    def custom(self, start: int) -> Operation:
        at = self.i
        name = structured.SHORT_NAMES.get(self.text, self.text)
        row = lookup(name)
        if row is None and is_affine(name):
            return read_affine(self, start)
        if row is None:
            self.fail("PTO-P021", f"unknown operation `{name}`", help=suggest(name))
        self.i += 1
        op = Operation.of(row)
        draft = Draft(row, op)
        if row.text.startswith("="):
            structured.SYNTAX[row.text][0](self, draft)
        else:
            for step in compile_format(row):
                step.read(self, draft)
        self.assemble(draft, at)
        op.where = self.span(start, at)
        return op

    def assemble(self, draft: Draft, at: int) -> None:
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
        if any(v.type is POISON for v in op.operands):
            return POISON
        self.counted = type in FROM_NUMBERS
        inferred = INFERRED[type](op)
        if inferred is None:
            message = f"the result type of '{op.name}' op cannot be inferred from its operands"
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
        if len(self.scopes) > lx.MAX_DEPTH:
            self.fail("PTO-P023", f"regions are nested more than {lx.MAX_DEPTH} deep")
        self.expect("{")
        block = Block(region)
        region.blocks.append(block)
        self.scopes.append({})
        for name, at, value in args:
            value.owner = block
            block.args.append(value)
            self.define(name, value, at)
        outer, self.ends = self.ends, {}
        labels: dict[str, Block] = {}
        if self.kind == lx.LABEL:
            self._label(block, labels)
        self.operations(block, "}")
        if self.kind == lx.LABEL:
            self._blocks(region, labels)
        self.expect("}")
        if len(region.blocks) > 1 or self.ends:
            lift(self, region, labels, self.ends)
        self.ends = outer
        self.scopes.pop()

    def _blocks(self, region: Region, labels: dict[str, Block]) -> None:
        """Blocks behind the first one, in an order in which values are made before their uses."""
        starts, end = places(self, self.ends.get(region.block))
        for self.i in starts:
            region.blocks.append(Block(region))
            self._label(region.blocks[-1], labels)
            self.operations(region.blocks[-1], "}")
            if self.i != end and self.kind != lx.LABEL:
                self.fail("PTO-P020", f"expected a block, got {self.shown()}")
        self.i = end

    def _label(self, block: Block, labels: dict[str, Block]) -> None:
        if labels.setdefault(self.text, block) is not block:
            self.note("PTO-P015", f"block {self.text} is defined twice", self.i)
        self.i += 1
        for _ in self.items("(", ")") if self.at("(") else ():
            at, name = self.i, self.take()[1:]
            self.expect(":")
            value = Value(self.type(), name, block)
            block.args.append(value)
            self.define(name, value, at)
        self.expect(":")

    def optional_dict(self, draft: Draft) -> None:
        if self.at("{"):
            self.attr_dict(draft)

    def attr_dict(self, draft: Draft) -> None:
        """An attribute dictionary of the custom form."""
        items = self.attr_items("{", "}")
        # segment sizes are a tool's own: the text shows which operands are present
        self.set_attributes(draft, [item for item in items if item[0] != SIZES])

    def set_attributes(self, draft: Draft, items: Sequence[tuple[str, Attribute]]) -> None:
        for key, value in items:
            spec = draft.row.attr(key)
            if spec is None:
                draft.op.attrs[key] = value
            else:
                draft.op.attrs[spec.name] = canonical(self, spec, value)

    def skip_location(self) -> None:
        """`loc("file":1:2)`: the place in another tool's source; ours is the text itself."""
        if not self.accept("loc"):
            return
        self.expect("(")
        depth = 1
        while depth and self.kind != lx.END:
            depth += (self.text == "(") - (self.text == ")")
            self.i += 1
