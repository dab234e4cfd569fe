"""Tensors of torch as arguments, provided by the PTO machine."""

from pto.graphs.device import make_chip_tensor_arg, make_tensor_arg, torch_dtype_to_datatype

__all__ = ["make_chip_tensor_arg", "make_tensor_arg", "torch_dtype_to_datatype"]
