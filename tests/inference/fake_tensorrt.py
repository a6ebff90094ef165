"""TensorRT and a card that are not there: engines hold the ONNX file, and ONNX Runtime computes in their place.

The card's memory is the host's, so whatever reads or writes past what was allocated is found by its own check.
"""

from __future__ import annotations

import json
import sys
from enum import IntEnum
from types import ModuleType, SimpleNamespace

import numpy as np
import onnxruntime as ort

from inference.kit.model_io import cuda

NUMPY = {"FLOAT": np.float32, "HALF": np.float16, "INT64": np.int64, "BOOL": np.bool_}
OF_ORT = {"tensor(float)": "FLOAT", "tensor(float16)": "HALF", "tensor(int64)": "INT64", "tensor(bool)": "BOOL"}
MEMORY: dict[int, bytearray] = {}  # emptied by `installed`


class Card:
    """A card of that name."""

    name, capability, stream = "NVIDIA Test-Card 80GB", (9, 0), 7

    def __init__(self) -> None:
        if not cuda.granted():
            raise cuda.NoCard("No card was granted. Ask for one.")

    def enter(self) -> None: ...

    def synchronize(self) -> None: ...

    def allocate(self, size: int) -> int:
        address = 4096 * (1 + len(MEMORY) + sum(map(len, MEMORY.values())))
        MEMORY[address] = bytearray(size)
        return address

    def free(self, address: int) -> None:
        MEMORY.pop(address, None)

    def upload(self, address: int, values: np.ndarray) -> None:
        assert values.nbytes <= len(MEMORY[address])
        MEMORY[address][: values.nbytes] = values.tobytes()

    def download(self, address: int, values: np.ndarray) -> None:
        values[...] = np.frombuffer(MEMORY[address], values.dtype, values.size).reshape(values.shape)


class Mode(IntEnum):
    INPUT, OUTPUT = 1, 2


class Location(IntEnum):
    DEVICE, HOST = 0, 1


class Network:
    def __init__(self) -> None:
        self.inputs: list[SimpleNamespace] = []
        self.model = b""

    @property
    def num_inputs(self) -> int:
        return len(self.inputs)

    def get_input(self, index: int) -> SimpleNamespace:
        return self.inputs[index]


class Parser:
    num_errors = 1

    def __init__(self, network: Network, _logger: object) -> None:
        self.network = network

    def parse(self, model: bytes) -> bool:
        try:
            session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        except Exception:  # whatever is no model
            return False
        self.network.model = model
        self.network.inputs = [
            SimpleNamespace(name=tensor.name, shape=_shape(tensor)) for tensor in session.get_inputs()
        ]
        return True

    def get_error(self, _place: int) -> SimpleNamespace:
        return SimpleNamespace(desc=lambda: "Unsupported node")


class Profile(dict):
    def set_shape(self, name: str, least: tuple, usual: tuple, greatest: tuple) -> None:
        assert all(a <= b <= c for a, b, c in zip(least, usual, greatest, strict=True))
        self[name] = [least, usual, greatest]


class Config:
    profiling_verbosity = None
    profile: Profile | None = None

    def set_memory_pool_limit(self, _pool: object, _size: int) -> None: ...

    def add_optimization_profile(self, profile: Profile) -> None:
        self.profile = profile

    def create_timing_cache(self, data: bytes) -> SimpleNamespace:
        return SimpleNamespace(serialize=lambda: data + b"t")

    def set_timing_cache(self, cache: SimpleNamespace, _mismatch: bool) -> None:
        self.cache = cache

    def get_timing_cache(self) -> SimpleNamespace:
        return self.cache


class Builder:
    def __init__(self, _logger: object) -> None: ...

    def create_network(self, flags: int) -> Network:
        assert flags == 2  # strongly typed
        return Network()

    def create_builder_config(self) -> Config:
        return Config()

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: Config) -> bytes:
        detailed = config.profiling_verbosity == "detailed"
        free = {tensor.name for tensor in network.inputs if -1 in tensor.shape}
        assert free == set(config.profile or {})  # as TensorRT demands
        return json.dumps({"profile": config.profile or {}, "detailed": detailed}).encode() + b"\n" + network.model


class Engine:
    def __init__(self, data: bytes) -> None:
        head, _newline, model = data.partition(b"\n")
        self.about = json.loads(head)
        self.session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        self.given = {tensor.name: tensor for tensor in self.session.get_inputs()}
        self.ends = self.given | {tensor.name: tensor for tensor in self.session.get_outputs()}
        self.num_io_tensors = len(self.ends)

    def get_tensor_name(self, index: int) -> str:
        return list(self.ends)[index]

    def get_tensor_mode(self, name: str) -> Mode:
        return Mode.INPUT if name in self.given else Mode.OUTPUT

    def get_tensor_location(self, _name: str) -> Location:
        return Location.DEVICE

    def get_tensor_dtype(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=OF_ORT[self.ends[name].type])

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return _shape(self.ends[name])

    def get_tensor_profile_shape(self, name: str, _profile: int) -> list[tuple[int, ...]]:
        return self.about["profile"][name]

    def create_execution_context(self) -> Context:
        return Context(self)

    def create_engine_inspector(self) -> SimpleNamespace:
        output = {"Name": "logits", "Format/Datatype": "Row major linear FP16"}
        layers = [{"Name": "pool", "LayerType": "Reduce", "Outputs": [output]}] if self.about["detailed"] else ["pool"]
        return SimpleNamespace(get_engine_information=lambda _form: json.dumps({"Layers": [*layers, "n" * 999]}))


class Context:
    def __init__(self, engine: Engine) -> None:
        self.engine, self.shapes, self.addresses = engine, {}, {}

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        least, _usual, greatest = self.engine.about["profile"].get(name) or [_shape(self.engine.ends[name])] * 3
        self.shapes[name] = shape
        return len(least) == len(shape) and all(a <= b <= c for a, b, c in zip(least, shape, greatest, strict=True))

    def set_tensor_address(self, name: str, address: int) -> None:
        self.addresses[name] = address

    def _computed(self) -> dict[str, np.ndarray]:
        feeds = {}
        for name, shape in self.shapes.items():
            kind = NUMPY[OF_ORT[self.engine.ends[name].type]]
            memory = MEMORY.get(self.addresses[name], b"")
            feeds[name] = np.frombuffer(memory, kind, int(np.prod(shape))).reshape(shape)
        names = [name for name in self.engine.ends if name not in self.engine.given]
        return dict(zip(names, self.engine.session.run(names, feeds), strict=True))

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return self._computed()[name].shape

    def execute_async_v3(self, stream: int) -> bool:
        assert stream == Card.stream
        for name, values in self._computed().items():
            MEMORY[self.addresses[name]][: values.nbytes] = values.tobytes()
        return True


class Runtime:
    def __init__(self, _logger: object) -> None: ...

    def deserialize_cuda_engine(self, data: bytes) -> Engine | None:
        return Engine(data) if data.startswith(b"{") else None


class Logger:
    ERROR = 1

    def __init__(self, _least: int) -> None: ...


def _shape(end: ort.NodeArg) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else -1 for size in end.shape)


def installed(monkeypatch) -> None:
    """Put both in their places, with a card granted."""
    MEMORY.clear()
    module = ModuleType("tensorrt")
    module.__dict__.update(
        __version__="11.4.0.106",
        Logger=Logger, Builder=Builder, OnnxParser=Parser, Runtime=Runtime, TensorIOMode=Mode, TensorLocation=Location,
        NetworkDefinitionCreationFlag=SimpleNamespace(STRONGLY_TYPED=1),
        MemoryPoolType=SimpleNamespace(WORKSPACE="workspace"),
        ProfilingVerbosity=SimpleNamespace(DETAILED="detailed"),
        LayerInformationFormat=SimpleNamespace(JSON="json"),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    monkeypatch.setattr(cuda, "Card", Card)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
