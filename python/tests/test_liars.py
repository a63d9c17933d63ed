"""Exporters that lie, fail or are misused: each is refused in words, and what they own is theirs to free."""

import ctypes
import gc

import numpy as np
import pytest
from conftest import refused

import weft


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Kind(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int), ("dtype", Kind),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


class Exporter:
    """What DLPack wants of an exporter; a test says what is wrong with it."""

    def __init__(self, shape=(4,), strides=None, data=True, kind=(2, 32, 1), device=(1, 0), ndim=None, offset=0, version=None):
        self.memory = np.arange(64, dtype=np.float32)
        self.lists = [(ctypes.c_int64 * max(1, len(v)))(*v) if v is not None else None for v in (shape, strides)]
        self.freed = 0
        self.deleter = DELETER(self.free)
        address = self.memory.ctypes.data + data if data is not False else None
        tensor = DLTensor(address - (data is True) if address else None, Device(*device), len(shape) if ndim is None else ndim, Kind(*kind),
                          self.lists[0], self.lists[1], offset)
        if version is None:
            self.managed, self.name = Managed(tensor, None, self.deleter), b"dltensor"
        else:
            self.managed, self.name = Versioned(version, 0, None, self.deleter, 0, tensor), b"dltensor_versioned"

    def free(self, _):
        self.freed += 1

    def __dlpack__(self, **asked):
        self.asked = asked
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.managed), self.name, None)


class Old(Exporter):
    """An exporter before DLPack 1."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__()


@pytest.mark.parametrize("version", [None, 1])
def test_an_exporter_that_tells_the_truth(version):
    exporter = Exporter((2, 2), strides=(8, 1), offset=4, version=version)
    x = weft.from_dlpack(exporter)
    assert x.tolist() == [[1, 2], [9, 10]] and exporter.freed == 0
    y = x.numpy()
    del x
    gc.collect()
    assert exporter.freed == 0 and y[1, 1] == 10
    del y
    gc.collect()
    assert exporter.freed == 1


def test_who_is_asked_for_a_version_that_says_it_may_be_written_and_gives_another_is_only_read():
    exporter = Exporter()
    x = weft.from_dlpack(exporter)
    assert exporter.asked and not x.numpy().flags.writeable

    def change():
        nonlocal x
        x += 1

    refused(change)
    for writable in (weft.from_dlpack(Exporter().__dlpack__()), weft.from_dlpack(Exporter(version=1)), weft.from_dlpack(Old())):
        x = writable
        change()
        assert x.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize(
    "lie, words",
    [
        ({"shape": (-1,)}, "no shape"),
        ({"shape": (2**62, 4)}, "no shape"),
        ({"shape": (2**40, 2**40)}, "no shape"),
        ({"shape": (4, 4), "strides": (2**61, 1)}, "64 bits"),
        ({"shape": (4,), "strides": (-1,)}, "negative"),
        ({"shape": (1,) * 9}, "rank 9"),
        ({"ndim": -1}, "rank -1"),
        ({"ndim": 2**30}, "rank"),
        ({"data": False}, "no memory"),
        ({"data": 2}, "no multiple of 4"),
        ({"offset": 3}, "no multiple of 4"),
        ({"kind": (2, 32, 4)}, "lanes"),
        ({"kind": (9, 7, 1)}, "7 bits"),
        ({"device": (2, 0)}, "device"),
        ({"device": (99, 5)}, "device"),
    ],
)
def test_lies_are_refused_and_their_memory_is_left_alone(lie, words, version):
    exporter = Exporter(**lie, version=version)
    refused(lambda: weft.from_dlpack(exporter), words)
    gc.collect()
    assert exporter.freed == 0


def test_versions_and_capsules_that_are_none():
    refused(lambda: weft.from_dlpack(Exporter(version=7)), "DLPack 7")

    class Answers:
        def __init__(self, answer):
            self.answer = answer

        def __dlpack__(self, **_):
            if isinstance(self.answer, BaseException):
                raise self.answer
            return self.answer

    for answer in (None, 3, "capsule", weft.ones(1)):
        refused(lambda: weft.from_dlpack(Answers(answer)), "capsule")
    class FailsFirst:
        def __dlpack__(self, max_version=None):
            if max_version:
                raise KeyError("mine")
            return weft.ones(1).__dlpack__()

    with pytest.raises(KeyError, match="mine"):
        weft.from_dlpack(FailsFirst())
    for raised in (KeyError("mine"), KeyboardInterrupt(), TypeError("mine")):
        with pytest.raises(type(raised)):
            weft.from_dlpack(Answers(raised))


class Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_ssize_t)), ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


def test_buffers_whose_sizes_are_not_those_of_their_memory():
    memory = np.arange(4, dtype=np.float32)

    def exported(length, shape, strides=(4,)):
        lists = [(ctypes.c_ssize_t * 1)(*v) for v in (shape, strides)]
        view = Buffer(memory.ctypes.data, None, length, 4, 0, 1, b"f", *lists, None, None)
        make = ctypes.pythonapi.PyMemoryView_FromBuffer
        make.restype, make.argtypes = ctypes.py_object, (ctypes.POINTER(Buffer),)
        kept.append((lists, view))
        return make(ctypes.byref(view))

    kept = []
    assert weft.from_numpy(exported(16, (4,))).tolist() == [0, 1, 2, 3]
    for length, shape in ((16, (100,)), (400, (4,)), (16, (-4,)), (16, (2**62,))):
        for take in (weft.from_numpy, weft.tensor):
            refused(lambda: take(exported(length, shape)), "do not fit")


def test_buffers_that_are_released_or_fail():
    view = memoryview(np.ones(3, np.float32))
    view.release()
    for take in (weft.from_numpy, weft.tensor):
        with pytest.raises(ValueError, match="released"):
            take(view)
