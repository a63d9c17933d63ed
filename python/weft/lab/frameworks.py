"""What a kernel's file may compute with: how operands become tensors of it, without a copy.

A framework is named by FRAMEWORK in a kernel's file. None is imported before one of its kernels is opened.
"""

import ctypes
import ctypes.util
import functools
import importlib.util
import math
import os
import pathlib
import sys
from typing import NamedTuple

CUDA, ROCM = 2, 10  # as DLPack numbers kinds of devices


class Place(NamedTuple):
    """A device whose memory operands lie in, and the stream that kernels are enqueued to."""

    name: str
    kind: int  # as DLPack has it
    number: int
    stream: int  # of the vendor's, its address


class Refused(NotImplementedError):
    """A call that a kernel does not take, in words that need no line of a file."""


class Framework:
    """NumPy; those on PyTorch's tensors are below."""

    modules = {"numpy": "NumPy is not installed: pip install numpy"}

    def missing(self):
        """Why it can't be used here; empty: it can. Imports nothing."""
        for module, reason in self.modules.items():
            if importlib.util.find_spec(module) is None:
                return reason
        return ""

    def load(self, threads=None, place=None):
        """Imports it, for kernels of this many threads; None: in a process that is not the lab's, whose settings stay as they are.
        `place` is where operands will lie; None: in the host's memory."""
        import numpy

        if place is not None:
            raise Refused(f"NumPy computes in the host's memory, and the operands lie in that of {place.name}")

        if threads is not None:
            numpy.seterr(all="ignore")  # cases of conformance overflow on purpose
        self.numpy = numpy
        self.version = f"numpy {numpy.__version__}"

    def tensor(self, operand):
        """The memory of an operand as an array."""
        dtype = self._dtype(operand.dtype)
        size = math.prod(operand.shape) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(operand.address)
        return self.numpy.frombuffer(memory, dtype).reshape(operand.shape)

    def of_weft(self, tensor):
        """The memory of a tensor of Weft's as an array."""
        self._dtype(tensor.dtype.name)
        return tensor.numpy()

    def example(self, dtype, shape):
        """An array of ones, or of zeros where these may be places in another one."""
        return self.numpy.full(shape, dtype[0] not in "iu" and dtype != "bool", self._dtype(dtype))

    def _dtype(self, name):
        known = {"f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool"}
        whole = {f"{letter}{bits}": f"{kind}{bits}" for letter, kind in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}
        if name not in known | whole:
            raise Refused(f"NumPy has no {name}")
        return self.numpy.dtype((known | whole)[name])

    def is_tensor(self, value):
        return isinstance(value, self.numpy.ndarray)

    def copy(self, to, result):
        self.numpy.copyto(to, result)


class Mkl(Framework):
    """Intel's MKL, on arrays of NumPy."""

    def missing(self):
        return super().missing() or ("" if mkl_file() else "MKL is not installed: pip install mkl")

    def load(self, threads=None, place=None):
        super().load(threads, place)
        mkl = mkl_library()
        if threads is not None:
            mkl.MKL_Set_Num_Threads(threads)
        text = ctypes.create_string_buffer(198)
        mkl.MKL_Get_Version_String(text, len(text))
        self.version = f"{text.value.decode().strip()}, {self.version}"


def mkl_file():
    """The library that takes the processor's kernels of MKL: of PyPI's package, or the system's; empty: there is none."""
    of_package = sorted((pathlib.Path(sys.prefix) / "lib").glob("libmkl_rt.so*"))
    return str(of_package[-1]) if of_package else ctypes.util.find_library("mkl_rt") or ""


@functools.cache
def mkl_library():
    return ctypes.CDLL(mkl_file())


class Torch(Framework):
    """PyTorch."""

    modules = {"torch": "PyTorch is not installed: pip install torch"}

    def load(self, threads=None, place=None):
        import torch

        self.torch, self.device = torch, "cpu"
        if threads is not None:
            torch.set_num_threads(threads)
            torch.set_grad_enabled(False)
        self.version = f"torch {torch.__version__}"
        if place is None:
            return
        if place.kind not in (CUDA, ROCM) or not torch.cuda.is_available():
            raise Refused(f"this PyTorch ({torch.__version__}) reaches no memory of {place.name}")
        self.device = f"cuda:{place.number}"
        torch.cuda.set_stream(torch.cuda.ExternalStream(place.stream, self.device))

    def tensor(self, operand):
        return self.torch.from_dlpack(operand)

    def of_weft(self, tensor):
        return self.torch.from_dlpack(tensor)

    def example(self, dtype, shape):
        names = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "bool": "bool", "u8": "uint8"}
        names |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
        if dtype not in names:
            raise Refused(f"weft.lab makes no {dtype} of PyTorch's")
        full = self.torch.zeros if dtype[0] in "iu" or dtype == "bool" else self.torch.ones
        return full(shape, dtype=getattr(self.torch, names[dtype]), device=self.device)

    def is_tensor(self, value):
        return isinstance(value, self.torch.Tensor)

    def copy(self, to, result):
        to.copy_(result)


class OnGpu(Torch):
    """A language for kernels of GPUs, on PyTorch's tensors."""

    def __init__(self, module, label, interpreter=None):
        self.module, self.label, self.interpreter = module, label, interpreter
        self.modules = Torch.modules | {module: f"{label} is not installed: pip install {module}"}

    def _interpreted(self):
        return self.interpreter is not None and os.environ.get(self.interpreter) == "1"

    def missing(self):
        return super().missing() or ("" if self._interpreted() or gpus() else f"{self.label} needs an NVIDIA GPU; there is none here")

    def load(self, threads=None, place=None):
        if place is None and not self._interpreted():
            raise Refused(f"{self.label}'s kernels run on a GPU, and the operands lie in the host's memory")
        super().load(threads, place)
        version = getattr(__import__(self.module), "__version__", "of no version")
        self.version = f"{self.version}, {self.module} {version}"


def gpus():
    """How many GPUs the CUDA driver has; 0 without one. No library of CUDA's is wanted."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


FRAMEWORKS = {
    "numpy": Framework(),
    "mkl": Mkl(),
    "torch": Torch(),
    "triton": OnGpu("triton", "Triton", "TRITON_INTERPRET"),
    "tilelang": OnGpu("tilelang", "TileLang"),
}
