"""From a Python function to a program: its parameters, its sizes, the grid it is launched on.

A size with a name (`pto.Global[pto.f32, "m", "n"]`) is a parameter of the program, so one program
serves all shapes; any other size is a number of the specialisation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from pto.core.dtypes import DType
from pto.core.errors import Diagnostic, Loc
from pto.ir.builder import INDEX, new_function, new_module, scalar_type
from pto.ir.graph import Module
from pto.isa.row.attributes import Attribute, Enum, OfType, Str, Unit
from pto.isa.row.types import Function, Type
from pto.lang.call.misused import misused
from pto.lang.call.place import endless, mistake
from pto.lang.front.convert import rewritten
from pto.lang.parameter import Parameter
from pto.lang.trace import GRID, Trace
from pto.lang.values.views import contiguous, pointer_type, view_of
from pto.run.launch.call import Blocks, extents_of, prepare
from pto.run.launch.prepared import PreparedKernel as Ready
from pto.run.machine.device import Device
from pto.target.profile import profile
from pto.transform.cores import state_core
from pto.transform.scratch import complete
from pto.verify.functions import first_order

Shape = tuple[tuple[int | str, ...], DType]  # a size by its number, or by its name


@dataclass(slots=True)
class Specialised:
    """The program for one set of shapes and constants."""

    module: Module
    tracing: Tracing  # the inputs of its trace
    has_grid: bool = False  # it uses the position of a block in the grid
    speaks: bool = False  # it prints, and lines are shown as they come
    limits: Mapping[str, int] = field(default_factory=dict[str, int])  # of sizes with names
    ready: dict[Hashable, Ready] = field(default_factory=dict[Hashable, Ready])
    cut: Sequence[Diagnostic] = ()  # stores of tiles that are larger than their arrays
    seen: set[Hashable] = field(default_factory=set[Hashable])  # calls with a checked result

    def ready_on(self, device: Device) -> Ready:
        """The program checked, planned and compiled for a device; cached, except when watched."""
        if device.tap is not None:
            return device.kernel(self.module)
        prepared, profile = self.ready.get(device.engine), device.profile
        if prepared is None or (prepared.profile is not profile and prepared.profile != profile):
            prepared = prepare(self.module, None, profile, engine=device.engine)
            self.ready[device.engine] = prepared
        return prepared

    def numbers(self, kernel: str, sizes: Mapping[str, int], blocks: Blocks) -> list[int]:
        """Additional arguments of the program: named sizes, and the grid if it is used."""
        for name, most in self.limits.items():
            if sizes[name] > most:
                raise mistake(
                    "PTO-U080",
                    f"{kernel}: a tile takes {most} along {name}, which is {sizes[name]}: the rest"
                    " would be left out",
                    help=f"slice it from a loop counter, x[..., j:] with j of pto.range(0, n,"
                    f" {most}); or use a larger tile",
                )
        grid = (*extents_of(blocks), 1, 1)[: len(GRID)] if self.has_grid else ()
        return [*sizes.values(), *grid]


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """The function of a kernel, or of one side of it."""

    function: Callable[..., object]
    name: str
    kind: str | None


@dataclass(frozen=True, slots=True)
class Tracing:
    """The inputs of a trace: functions, parameters, constants and shapes."""

    profile: str
    debug: bool
    sources: Sequence[TracedFunction]
    parameters: Sequence[Parameter]
    values: Sequence[object]  # of parameters that are constants; None for the others
    shapes: Sequence[Shape]  # of parameters that are arrays
    of_any_size: bool = False  # for a proof: sizes have names that are numbers at a launch

    @property
    def sizes(self) -> list[str]:
        """Named sizes, each once, in the order of the parameters."""
        symbols = (n for shape, _ in self.shapes for n in shape if isinstance(n, str))
        return list(dict.fromkeys(symbols))

    def program(self) -> Specialised:
        """Trace the functions into one module."""
        file = self.sources[0].function.__code__.co_filename
        module = new_module({"pto.target_arch": Str(self.profile)}, file)
        traces = [self._function(module, source) for source in self.sources]
        has_grid = any(trace.has_grid for trace in traces)
        for trace in traces:
            if has_grid:
                trace.grid()
            _sign(trace)
        limits: dict[str, int] = {}
        for trace in traces:
            for name, most in trace.limits.items():
                limits[name] = min(most, limits.get(name, most))
        speaks, cut = any(trace.speaks for trace in traces), [d for t in traces for d in t.cut]
        complete(module, profile(self.profile))
        for trace in traces:
            if first_order([trace.builder.function]) is not None:
                state_core(trace.builder.function)
        return Specialised(module, self, has_grid, speaks, limits, cut=cut)

    def _function(self, module: Module, source: TracedFunction) -> Trace:
        function, name = source.function, source.name
        loc = Loc(function.__code__.co_filename, function.__code__.co_firstlineno)
        # PTOAS makes a kernel of a function that is marked; sides of a pair are called by one
        kind: Attribute = Enum("kernel_kind", source.kind) if source.kind else Unit()
        attrs = {"pto.kernel_kind" if source.kind else "pto.entry": kind}
        operation = new_function(module, name, self._types(), loc, attrs)
        how: dict[str, bool] = {"debug": self.debug, "of_any_size": self.of_any_size}
        with Trace(name, self.profile, module, operation, **how) as trace:
            try:
                result = rewritten(function)(*self._arguments(trace))
            except RecursionError as error:
                raise endless(name, error) from None
            except Exception as error:
                advice = misused(error, trace.unbound)
                if advice is None:
                    raise
                raise advice from advice.__cause__
            if result is not None:
                raise mistake(
                    "PTO-U211",
                    f"kernel {name} returns {result!r}; results go to arrays",
                    help="add a parameter for the result and pto.store to it",
                )
            trace.finish()
        if trace.has_asked:
            raise mistake("PTO-U203", f"kernel {name} asks for the type of a size")
        return trace

    def _types(self) -> list[tuple[str, Type]]:
        """The parameters of the program: those of the function, then the sizes with names."""
        arrays = iter(self.shapes)
        params: list[tuple[str, Type]] = []
        for param in self.parameters:
            if param.kind == "array":
                params.append((param.name, pointer_type(next(arrays)[1])))
            elif param.kind == "scalar" and param.dtype is not None:
                params.append((param.name, scalar_type(param.dtype)))
        return [*params, *((name, INDEX) for name in self.sizes)]

    def _arguments(self, trace: Trace) -> list[object]:
        args = trace.builder.block.args
        count = len(args) - len(self.sizes)
        named = {arg.name: trace.scalar(arg) for arg in args[count:]}
        block, arrays = iter(args), iter(self.shapes)
        arguments: list[object] = []
        for param, value in zip(self.parameters, self.values, strict=True):
            if param.kind == "array":
                written, kind = next(arrays)
                shape = tuple(named[n] if isinstance(n, str) else n for n in written)
                arguments.append(view_of(next(block), kind, shape, contiguous(shape)))
            elif param.kind == "scalar":
                arguments.append(trace.scalar(next(block)))
            else:
                arguments.append(value)
        return arguments


def _sign(trace: Trace) -> None:
    """Update the type of the function with the parameters added during tracing."""
    function = trace.builder.function
    types = tuple(arg.type for arg in function.regions[0].block.args)
    function.attrs["function_type"] = OfType(Function(types, ()))


def sizes_of(
    kernel: str, parameters: Sequence[Parameter], shapes: Sequence[tuple[tuple[int, ...], DType]]
) -> tuple[list[Shape], dict[str, int]]:
    """Shapes with named sizes replaced by their names, and the values of the names in this call."""
    arrays = [p for p in parameters if p.kind == "array"]
    sizes: dict[str, int] = {}
    first: dict[str, str] = {}  # the parameter that has the name first
    named_shapes: list[Shape] = []
    for param, (shape, kind) in zip(arrays, shapes, strict=True):
        if param.sizes is None:
            named_shapes.append((shape, kind))
            continue
        if len(param.sizes) != len(shape):
            raise mistake(
                "PTO-U219",
                f"{kernel}: {param.name} has {len(param.sizes)} dimensions, the array {len(shape)}",
                help=f"the annotation is {param}",
            )
        named: list[int | str] = []
        for name, size in zip(param.sizes, shape, strict=True):
            if isinstance(name, int) and name != size:
                raise _other(kernel, param.name, str(name), size, "the annotation")
            if isinstance(name, str) and sizes.setdefault(name, size) != size:
                raise _other(kernel, param.name, f"{name} = {sizes[name]}", size, first[name])
            if isinstance(name, str):
                first.setdefault(name, param.name)
            named.append(name if isinstance(name, str) else size)
        named_shapes.append((tuple(named), kind))
    return named_shapes, sizes


def _other(kernel: str, param: str, wanted: str, size: int, where: str) -> Exception:
    return mistake(
        "PTO-U219",
        f"{kernel}: a dimension of {param} is {size}, and {where} has {wanted}",
        help="sizes of one name are equal; give different ones different names",
    )
