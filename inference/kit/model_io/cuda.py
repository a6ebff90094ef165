"""The card of a process through the driver's own library, which is wherever a card is: its name, memory, a stream.

Source: https://docs.nvidia.com/cuda/cuda-driver-api/
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class NoCard(Exception):
    """No card can be used here; says why."""


class CudaError(RuntimeError):
    """The driver refused a call."""


def granted() -> bool:
    """Whether this process was given a card."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "") not in ("", "-1")


class Card:
    """The first GPU that this process can use. Other threads call `enter` before they use it.

    Raises:
        NoCard: none was granted, or the driver finds none.
    """

    def __init__(self) -> None:
        if not granted():
            raise NoCard("No card was granted. Ask for one.")
        try:
            self._driver = ctypes.CDLL(LIBRARY)
        except OSError:
            raise NoCard(f"{LIBRARY} is not on this machine. Install NVIDIA's driver.") from None
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(256)
        self._context, self._stream = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            self._call("cuInit", ctypes.c_uint(0))
            self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
            self._call("cuDeviceGetName", name, ctypes.c_int(len(name)), device)
            self._call("cuDeviceGetAttribute", ctypes.byref(major), ctypes.c_int(_MAJOR), device)
            self._call("cuDeviceGetAttribute", ctypes.byref(minor), ctypes.c_int(_MINOR), device)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
            self.enter()
            self._call("cuStreamCreate", ctypes.byref(self._stream), ctypes.c_uint(0))
        except CudaError as refused:
            raise NoCard(f"The card does not answer: {refused}.") from None
        self.name = name.value.decode("utf-8", "replace")
        self.capability = (major.value, minor.value)

    @property
    def stream(self) -> int:
        """The handle of the stream on which all is done in turn."""
        return self._stream.value or 0

    def enter(self) -> None:
        """Make it the card of the calling thread."""
        self._call("cuCtxSetCurrent", self._context)

    def allocate(self, size: int) -> int:
        """The address of `size` bytes of the card's memory."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def upload(self, address: int, values: NDArray[np.generic]) -> None:
        """Copy a contiguous array to the GPU."""
        size = ctypes.c_size_t(values.nbytes)
        source = ctypes.c_void_p(values.ctypes.data)
        self._call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), source, size, self._stream)

    def download(self, address: int, values: NDArray[np.generic]) -> None:
        """Copy from the GPU into a contiguous array; the values are valid after `synchronize`."""
        size = ctypes.c_size_t(values.nbytes)
        target = ctypes.c_void_p(values.ctypes.data)
        self._call("cuMemcpyDtoHAsync_v2", target, ctypes.c_uint64(address), size, self._stream)

    def synchronize(self) -> None:
        """Wait until all operations of the stream are done."""
        self._call("cuStreamSynchronize", self._stream)

    def _call(self, name: str, *args: Any) -> None:
        if code := getattr(self._driver, name)(*args):
            raise CudaError(f"{name} failed with CUDA error {code}")
