"""Inputs of a test without their values: large tensors have a shape and no memory.

The test's own Python makes its inputs under a mode of torch that computes small tensors and only
follows the shapes of large ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

_LARGE = 1 << 20  # bytes


def shapes_only() -> Any:
    """A context in which tensors of more than a MiB have no values."""
    torch: Any = import_module("torch")
    base: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode
    tree: Any = import_module("torch.utils._pytree")

    def is_tensor(value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def is_large(value: Any) -> bool:
        return is_tensor(value) and value.numel() * value.element_size() > _LARGE

    def without_values(value: Any) -> Any:
        return value.to("meta") if is_tensor(value) else value

    class Shapes(base):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled here, and asking dynamo imports it: 4 s

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            options = dict(kwargs or {})
            tensors = [v for v in tree.tree_leaves((args, options)) if is_tensor(v)]
            if any(v.is_meta for v in tensors):
                return self._followed(func, args, options, tensors)
            if not tensors or not func.is_view:
                try:
                    outline = self._followed(func, args, dict(options), tensors)
                except (RuntimeError, NotImplementedError):
                    outline = None  # its shape depends on values
                if any(map(is_large, tree.tree_leaves(outline))):
                    return outline
            return func(*args, **options)

        def _followed(self, func: Any, args: Any, options: dict[str, Any], tensors: Any) -> Any:
            """The result's shape alone; a tensor that is changed in place stays as it is."""
            name = str(func)
            if "_local_scalar_dense" in name or name.startswith("aten.equal"):
                return 0  # a value of a tensor that has none
            if func._schema.is_mutable and tensors and args and is_tensor(args[0]):
                return args[0]
            if "generator" in options:
                options["generator"] = None
            if not tensors or "device" in options:
                options["device"] = "meta"
            plain = [None if isinstance(a, torch.Generator) else a for a in args]
            with torch.device("meta"):
                return func(
                    *tree.tree_map(without_values, plain), **tree.tree_map(without_values, options)
                )

    return Shapes()
