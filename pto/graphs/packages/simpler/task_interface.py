"""Types of arguments and callables, provided by the PTO machine."""

from pto.graphs.chips import CommBufferSpec, TaskArgs, TensorArgType
from pto.graphs.chips import TaskArgs as ChipStorageTaskArgs
from pto.graphs.chips import View as ChipTensor
from pto.graphs.chips import View as Tensor
from pto.graphs.device import CallConfig, ChipCallable, CoreCallable
from pto.graphs.scene_names import ArgDirection, DataType, scalar_to_uint64

__all__ = [
    "ArgDirection",
    "CallConfig",
    "ChipCallable",
    "ChipStorageTaskArgs",
    "ChipTensor",
    "CommBufferSpec",
    "CoreCallable",
    "DataType",
    "TaskArgs",
    "Tensor",
    "TensorArgType",
    "scalar_to_uint64",
]
