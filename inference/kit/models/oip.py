"""Open Inference Protocol v2: bytes of a request → tensors, tensors → bytes of an answer. Pure."""

from __future__ import annotations

import binascii
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io.engine import TensorInfo
from inference.kit.model_io.refusals import BadRequest

DTYPES: Mapping[str, np.dtype[np.generic]] = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
HEADER = "inference-header-content-length"


@dataclass(frozen=True)
class WantedOutput:
    name: str
    binary: bool


@dataclass(frozen=True)
class InferRequest:
    """A parsed request. A BYTES input is a list of byte strings (images), any other an array."""

    id: str
    tensors: Mapping[str, NDArray[np.generic]]
    pictures: Mapping[str, Sequence[bytes]]
    outputs: tuple[WantedOutput, ...]  # empty: all of them
    binary: bool  # for outputs that do not say it themselves
    parameters: Mapping[str, Any]


def parse(body: bytes, header_length: str | None) -> InferRequest:
    """Read a request body; `header_length` is the value of Inference-Header-Content-Length, if sent.

    Raises:
        BadRequest: not the protocol, or sizes that contradict each other.
    """
    size = len(body)
    if header_length is not None:
        if not header_length.isascii() or not header_length.isdigit() or int(header_length) > len(body):
            raise BadRequest("Inference-Header-Content-Length does not fit the body.")
        size = int(header_length)
    try:
        content = json.loads(body[:size])
    except (ValueError, RecursionError) as exc:
        raise BadRequest(f"The request is not JSON: {exc}") from None
    if not isinstance(content, dict) or not isinstance(content.get("inputs"), list) or not content["inputs"]:
        raise BadRequest('The request needs "inputs", a list of tensors.')
    tensors: dict[str, NDArray[np.generic]] = {}
    images: dict[str, Sequence[bytes]] = {}
    rest = memoryview(body)[size:]
    for entry in content["inputs"]:
        name, datatype, shape = _head(entry)
        if name in tensors or name in images:
            raise BadRequest(f"Input {name!r} is sent twice.")
        length = _parameters(entry).get("binary_data_size")
        chunk = None
        if length is not None:
            if not isinstance(length, int) or not 0 <= length <= len(rest):
                raise BadRequest(f"binary_data_size of {name!r} is larger than the body.")
            chunk, rest = rest[:length], rest[length:]
        if datatype == "BYTES":
            images[name] = _strings(name, shape, chunk, entry)
        else:
            tensors[name] = _array(name, datatype, shape, chunk, entry)
    if rest:
        raise BadRequest(f"The body has {len(rest)} bytes more than its tensors.")
    parameters = _parameters(content)
    everything_binary = parameters.get("binary_data_output") is True
    return InferRequest(
        id=str(content.get("id", ""))[:200],
        tensors=tensors,
        pictures=images,
        outputs=_wanted(content.get("outputs", []), everything_binary),
        binary=everything_binary,
        parameters=parameters,
    )


def _head(entry: object) -> tuple[str, str, tuple[int, ...]]:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise BadRequest("Each input needs a name.")
    name, datatype, shape = entry["name"], entry.get("datatype"), entry.get("shape")
    if datatype != "BYTES" and datatype not in DTYPES:
        raise BadRequest(f"Input {name!r} has the unknown datatype {datatype!r}.")
    if not isinstance(shape, list) or len(shape) > 16:
        raise BadRequest(f"Input {name!r} needs a shape.")
    if not all(isinstance(n, int) and 0 <= n < 2**31 for n in shape):
        raise BadRequest(f"Input {name!r} needs a shape of whole numbers.")
    return name, str(datatype), tuple(shape)


def _parameters(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    value = entry.get("parameters") or {}
    if not isinstance(value, dict):
        raise BadRequest('"parameters" must be an object.')
    return value


def _array(
    name: str, datatype: str, shape: tuple[int, ...], chunk: memoryview | None, entry: Mapping[str, Any]
) -> NDArray[np.generic]:
    dtype, count = DTYPES[datatype], math.prod(shape)
    if chunk is not None:
        if len(chunk) != count * dtype.itemsize:
            raise BadRequest(f"Input {name!r} has {len(chunk)} bytes; its shape needs {count * dtype.itemsize}.")
        return np.frombuffer(chunk, dtype).reshape(shape)
    data = entry.get("data")
    if not isinstance(data, list):
        raise BadRequest(f"Input {name!r} has no data.")
    try:
        array = np.asarray(data, dtype=dtype)
    except (ValueError, TypeError, OverflowError):
        raise BadRequest(f"The data of input {name!r} is not {datatype}.") from None
    if array.size != count:
        raise BadRequest(f"Input {name!r} has {array.size} values; its shape needs {count}.")
    return array.reshape(shape)


def _strings(name: str, shape: tuple[int, ...], chunk: memoryview | None, entry: Mapping[str, Any]) -> list[bytes]:
    strings: list[bytes] = []
    if chunk is not None:
        while chunk:
            size = struct.unpack_from("<I", chunk)[0] if len(chunk) >= 4 else 2**32
            if size > len(chunk) - 4:
                raise BadRequest(f"The elements of input {name!r} are longer than its bytes.")
            strings.append(bytes(chunk[4 : 4 + size]))
            chunk = chunk[4 + size :]
    else:
        data = entry.get("data")
        if not isinstance(data, list) or not all(isinstance(text, str) for text in data):
            raise BadRequest(f"Input {name!r} needs a list of base64 texts, or binary data.")
        strings = [_from_base64(name, text) for text in data]
    if len(strings) != math.prod(shape):
        raise BadRequest(f"Input {name!r} has {len(strings)} elements; its shape needs {math.prod(shape)}.")
    return strings


def _from_base64(name: str, text: str) -> bytes:
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        raise BadRequest(f"Input {name!r} is not base64; send pictures as base64 or as binary data.") from None


def _wanted(entries: object, everything_binary: bool) -> tuple[WantedOutput, ...]:
    if not isinstance(entries, list):
        raise BadRequest('"outputs" must be a list.')
    wanted = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise BadRequest("Each output needs a name.")
        binary = _parameters(entry).get("binary_data", everything_binary)
        wanted.append(WantedOutput(entry["name"], bool(binary)))
    return tuple(wanted)


def check(info: TensorInfo, array: NDArray[np.generic]) -> None:
    """Compare a sent tensor with what the model declares.

    Raises:
        BadRequest: datatype, rank or a size differs, or a number is not finite.
    """
    if array.dtype != info.dtype:
        raise BadRequest(f"Input {info.name!r} must be {info.datatype}, not {NAMES[array.dtype]}.")
    fits = len(array.shape) == len(info.shape) and all(
        want in (-1, have) for want, have in zip(info.shape, array.shape, strict=False)
    )
    if not fits:
        raise BadRequest(f"Input {info.name!r} must have the shape {list(info.shape)}, not {list(array.shape)}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadRequest(f"Input {info.name!r} holds numbers that are not finite.")


def answer(
    head: Mapping[str, Any],
    outputs: Mapping[str, NDArray[np.generic] | Sequence[bytes]],
    binary: Mapping[str, bool],
) -> tuple[bytes, int | None]:
    """Write a response: its body and, where tensors follow in binary, the length of the JSON before them."""
    described: list[dict[str, Any]] = []
    chunks: list[bytes] = []
    for name, value in outputs.items():
        entry: dict[str, Any] = {"name": name}
        if isinstance(value, np.ndarray):
            entry |= {"datatype": NAMES[value.dtype], "shape": list(value.shape)}
            chunk = np.ascontiguousarray(value).tobytes() if binary[name] else None
            data = [] if binary[name] else value.ravel().tolist()
        else:
            entry |= {"datatype": "BYTES", "shape": [len(value)]}
            chunk = b"".join(struct.pack("<I", len(v)) + v for v in value) if binary[name] else None
            data = [] if binary[name] else [v.decode() for v in value]
        if chunk is not None:
            entry["parameters"] = {"binary_data_size": len(chunk)}
            chunks.append(chunk)
        else:
            entry["data"] = data
        described.append(entry)
    text = json.dumps({**head, "outputs": described}, separators=(",", ":")).encode()
    return b"".join([text, *chunks]), (len(text) if chunks else None)
