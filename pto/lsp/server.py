"""The language server: `pto lsp` on standard input and output, with pygls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from pto import __version__
from pto.core.errors import Diagnostic, Loc, PtoError
from pto.ir.text.comments import formatted
from pto.lsp import features
from pto.lsp.actions import QuickFix, fixes
from pto.lsp.document import Document, TextSpan
from pto.lsp.features import Completion
from pto.lsp.places import Places
from pto.lsp.python import Examined, PythonFile, Remark, examined

PAUSE = 0.1  # seconds without a change before the text is parsed again
_KINDS = {
    "instruction": lsp.CompletionItemKind.Function,
    "value": lsp.CompletionItemKind.Variable,
    "type": lsp.CompletionItemKind.Class,
    "attribute": lsp.CompletionItemKind.Property,
    "word": lsp.CompletionItemKind.EnumMember,
    "function": lsp.CompletionItemKind.Module,
}
_LEGEND = lsp.SemanticTokensLegend([*features.TOKEN_TYPES], ["definition"])
_SEVERITY = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "information": lsp.DiagnosticSeverity.Information,
}


@dataclass
class Open:
    """An open document: its current text, parsed, with its lines."""

    uri: str
    text: str
    document: Document | PythonFile
    places: Places

    def offset(self, at: lsp.Position) -> int:
        return self.places.offset(at.line, at.character)

    def range(self, span: TextSpan) -> lsp.Range:
        ends = (self.places.position(offset) for offset in span)
        return lsp.Range(*(lsp.Position(*offset) for offset in ends))

    def location(self, span: TextSpan) -> lsp.Location:
        return lsp.Location(self.uri, self.range(span))

    def edit(self, changes: Iterable[tuple[TextSpan, str]]) -> lsp.WorkspaceEdit:
        return lsp.WorkspaceEdit({self.uri: [lsp.TextEdit(self.range(s), t) for s, t in changes]})

    def diagnostic(self, finding: Diagnostic) -> lsp.Diagnostic:
        help = f"\nhelp: {finding.help}" if finding.help else ""
        notes = [
            lsp.DiagnosticRelatedInformation(self.place(n.loc), n.message)
            for n in finding.notes
            if n.loc
        ]
        return lsp.Diagnostic(
            self.range(self.places.span(finding.loc)),
            finding.message + help,
            severity=_SEVERITY[finding.severity],
            code=finding.code,
            source="pto",
            related_information=notes,
        )

    def remark(self, remark: Remark) -> lsp.Diagnostic:
        range_, severity = self.range(self.places.span(remark.loc)), _SEVERITY[remark.severity]
        return lsp.Diagnostic(range_, remark.message, severity=severity, source="pto")

    def place(self, loc: Loc) -> lsp.Location:
        """A location in this file, or in another."""
        if loc.file == self.document.file:
            return self.location(self.places.span(loc))
        return elsewhere(loc.file, loc.line, loc.col, loc.end or loc.col)

    @property
    def program(self) -> Document | None:
        """The document, if it is .pto text."""
        return self.document if isinstance(self.document, Document) else None

    @property
    def kernels(self) -> PythonFile | None:
        """The document, if it is Python."""
        return self.document if isinstance(self.document, PythonFile) else None


def elsewhere(file: str, line: int, col: int = 1, end: int = 1) -> lsp.Location:
    """A location in a file that may not be open."""
    ends = (lsp.Position(line - 1, column - 1) for column in (col, end))
    return lsp.Location(from_fs_path(file) or file, lsp.Range(*ends))


class Server(LanguageServer):
    """Open documents, each as last parsed."""

    def __init__(
        self, profile: str | None = None, device: str | None = None, python: bool = False
    ) -> None:
        super().__init__("pto", __version__)
        self.options = {"profile": profile, "device": device}
        self.python = python  # Python files may be executed
        self.opened: dict[str, Open] = {}
        self.examining: dict[str, int] = {}  # number of requests to examine each file
        self.turn = asyncio.Lock()  # one process at a time
        self.is_shut_down = False  # the client requested it

    def open(self, of: lsp.TextDocumentIdentifier | lsp.VersionedTextDocumentIdentifier) -> Open:
        """The current document: parsed again if it has changed."""
        text = self.text_of(of.uri)
        opened = self.opened.get(of.uri)
        if opened is None or opened.text != text:
            document = opened.document if opened else self._new(to_fs_path(of.uri) or of.uri)
            document.update(text)
            places = Places(text, _encoding(self))
            opened = self.opened[of.uri] = Open(of.uri, text, document, places)
        return opened

    def _new(self, file: str) -> Document | PythonFile:
        return (
            PythonFile(file, self.python)
            if file.endswith(".py")
            else Document(file, **self.options)
        )

    async def examine(self, of: lsp.TextDocumentIdentifier) -> None:
        """Execute a saved Python file, if that is allowed, and publish the findings."""
        kernels = self.open(of).kernels
        if kernels is None or not self.python or not kernels.has_kernels:
            return
        self.examining[of.uri] = number = self.examining.get(of.uri, 0) + 1
        async with self.turn:
            if self.examining.get(of.uri) != number:
                return  # it was saved again, or closed
            roots = [p for f in self.workspace.folders.values() if (p := to_fs_path(f.uri))]
            learned: Examined = await asyncio.to_thread(examined, kernels.file, self.options, roots)
        if of.uri in self.opened:
            kernels.learn(learned)
            self.publish(of)
            about = self.client_capabilities.workspace
            if about and about.inlay_hint and about.inlay_hint.refresh_support:
                await self.workspace_inlay_hint_refresh_async(None)

    def text_of(self, uri: str) -> str:
        return self.workspace.get_text_document(uri).source

    def version_of(self, uri: str) -> int | None:
        return self.workspace.get_text_document(uri).version

    def publish(self, of: lsp.TextDocumentIdentifier | lsp.VersionedTextDocumentIdentifier) -> None:
        opened = self.open(of)
        diagnostics = [opened.diagnostic(entry) for entry in opened.document.findings]
        diagnostics += [
            opened.remark(entry) for entry in (opened.kernels.remarks if opened.kernels else ())
        ]
        version = self.version_of(of.uri)
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(of.uri, diagnostics, version=version)
        )


def _encoding(server: Server) -> str:
    encoding = server.workspace.position_encoding
    return (
        encoding.value
        if isinstance(encoding, lsp.PositionEncodingKind)
        else str(encoding or "utf-16")
    )


def start(profile: str | None = None, device: str | None = None, python: bool = False) -> Server:
    """A server with every feature; `start().start_io()` serves."""
    server = Server(profile, device, python)

    @server.feature(lsp.SHUTDOWN)
    def shut_down(*_: object) -> None:  # pyright: ignore[reportUnusedFunction]
        server.is_shut_down = True

    _documents(server)
    _positions(server)
    _whole_documents(server)
    _changes(server)
    return server


class _Question(Protocol):
    """Parameters that name a position in a document."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


def _asked(server: Server, params: _Question) -> tuple[Open, int]:
    """The document of a request, and the offset in it."""
    opened = server.open(params.text_document)
    return opened, opened.offset(params.position)


def _documents(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        settings = options if isinstance(options, dict) else vars(options or object)
        for name in server.options:
            server.options[name] = settings.get(name) or server.options[name]
        server.python = server.python or settings.get("python") is True

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        of = lsp.TextDocumentIdentifier(params.text_document.uri)
        server.publish(of)
        await server.examine(of)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        await server.examine(params.text_document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        await asyncio.sleep(PAUSE)
        of = params.text_document
        if of.uri in server.opened and server.version_of(of.uri) == of.version:
            server.publish(of)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.opened.pop(params.text_document.uri, None)
        server.examining.pop(params.text_document.uri, None)


def _positions(server: Server) -> None:
    """Requests about a position in a document."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        opened, at = _asked(server, params)
        document = opened.document
        is_python = isinstance(document, PythonFile)
        page = document.hover(at) if is_python else features.hover(document, at)
        if page is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, page.markdown)
        return lsp.Hover(content, opened.range(page.span))

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[".", "%", "!", "#", "@", "<"]),
    )
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        opened, offset = _asked(server, params)
        items = features.completions(opened.program, offset) if opened.program else []
        range_ = opened.range(features.word_before(opened.text, offset))
        return lsp.CompletionList(False, [_item(completion, range_) for completion in items])

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        opened, at = _asked(server, params)
        if isinstance(opened.document, PythonFile):
            home = opened.document.definition(at)
            return None if home is None else elsewhere(*home)
        span, _ = features.occurrences(opened.document, at)
        if span is not None:
            return opened.location(span)
        home = features.instruction_home(opened.document, at)
        return None if home is None else elsewhere(*home)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        opened, at = _asked(server, params)
        home, spans = features.occurrences(opened.program, at) if opened.program else (None, [])
        wanted = params.context.include_declaration
        return [opened.location(span) for span in spans if wanted or span != home]


def _whole_documents(server: Server) -> None:
    """Requests about a document or a range of its lines."""

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        opened = server.open(params.text_document)
        lines = range(params.range.start.line + 1, params.range.end.line + 2)
        hints_found = opened.kernels.hints() if opened.kernels else ()
        return [
            lsp.InlayHint(lsp.Position(*opened.places.position(at)), text, tooltip=tip)
            for at, line, text, tip in hints_found
            if line in lines
        ]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        opened = server.open(params.text_document)
        kind = lsp.SymbolKind.Function
        return [
            lsp.DocumentSymbol(name, kind, opened.range(full_span), opened.range(name_span))
            for name, full_span, name_span in (
                features.functions(opened.text) if opened.program else ()
            )
        ]

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _LEGEND)
    def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        opened = server.open(params.text_document)
        return _tokens(opened, TextSpan(0, len(opened.text)))

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _LEGEND)
    def some_tokens(params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
        opened = server.open(params.text_document)
        return _tokens(
            opened, TextSpan(*map(opened.offset, (params.range.start, params.range.end)))
        )


def _changes(server: Server) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    )
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        opened = server.open(params.text_document)
        lines = range(params.range.start.line + 1, params.range.end.line + 2)
        here = [d for d in opened.document.findings if d.loc and d.loc.line in lines]
        return [
            _action(opened, finding, edit, params.context) for finding, edit in _fixes(opened, here)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        (opened, offset), name = _asked(server, params), params.new_name.removeprefix("%")
        if opened.program is None:
            return None
        spans, reason = features.renamed(opened.program, offset, name)
        if reason:
            raise JsonRpcInvalidParams(reason)
        return opened.edit((span, name) for span in spans)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def format(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        opened = server.open(params.text_document)
        if opened.program is None:
            return []
        try:
            text = formatted(opened.text)
        except PtoError:  # not well formed; the findings report it
            return []
        range_ = opened.range(TextSpan(0, len(opened.text)))
        return [] if text == opened.text else [lsp.TextEdit(range_, text)]


def _fixes(opened: Open, findings: Iterable[Diagnostic]) -> Iterable[tuple[Diagnostic, QuickFix]]:
    for finding in findings:
        for edit in fixes(finding, opened.text, opened.places.span(finding.loc)):
            yield finding, edit


def _action(
    opened: Open, finding: Diagnostic, edit: QuickFix, context: lsp.CodeActionContext
) -> lsp.CodeAction:
    answered = [d for d in context.diagnostics if d.code == finding.code]
    change = opened.edit(edit.changes)
    kind = lsp.CodeActionKind.QuickFix
    return lsp.CodeAction(edit.title, kind, diagnostics=answered, edit=change)


def _item(item: Completion, range_: lsp.Range) -> lsp.CompletionItem:
    about = f"```pto\n{item.documentation}\n```" if item.documentation else ""
    return lsp.CompletionItem(
        item.label,
        kind=_KINDS[item.kind],
        detail=item.detail or None,
        documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, about) if about else None,
        text_edit=lsp.TextEdit(range_, item.label),
    )


def _tokens(opened: Open, span: TextSpan) -> lsp.SemanticTokens:
    """Five numbers per word: lines and columns from the previous word, length, kind, modifiers."""
    numbers: list[int] = []
    line = column = 0
    tokens = features.tokens(opened.program, *span) if opened.program else ()
    for token_span, kind, defines in tokens:
        (row, start), (last, end) = map(opened.places.position, token_span)
        if row == last:
            moved = row - line
            numbers += (moved, start if moved else start - column, end - start, kind, int(defines))
            line, column = row, start
    return lsp.SemanticTokens(numbers)
