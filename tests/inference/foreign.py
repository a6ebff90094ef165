"""ONNX files as other programs write them: outputs of any shape, no model.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from inference.registry import imports

PETS = ("cat", "dog")
LOGITS = np.array([[0.0, 2.0]])
Arrays = Mapping[str, np.ndarray]


def net(
    path: Path,
    outputs: Arrays,
    *,
    size: int | None = 64,
    channels: int = 3,
    kind: int = TensorProto.FLOAT,
    last: str = "Identity",
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """A network that answers every picture with the same `outputs`; a size of None leaves height and width free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nodes, constants, ends = [], [], []
    for name, value in outputs.items():
        constants.append(numpy_helper.from_array(value.astype(np.float32), f"{name}_value"))
        nodes.append(helper.make_node(last, [f"{name}_value"], [name]))
        ends.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(value.shape)))
    images = helper.make_tensor_value_info("pixels", kind, [1, channels, size or "height", size or "width"])
    graph = helper.make_graph(nodes, "foreign", [images], ends, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    if metadata:
        helper.set_model_props(model, dict(metadata))
    save(model, str(path))
    return path


def import_file(user, path: Path, **declared: object):
    """Import a file as an upload."""
    declaration = imports.Declared(**declared)
    return imports.import_model(
        user=user, brought=imports.from_upload(path, path.name, declaration), declared=declaration, name=path.stem
    )


def unopenable(path: Path, opset: int = 26) -> Path:
    """A file that is sound but no runtime opens: from opset 18 on ReduceMean has no attribute `axes`."""
    ends = [
        helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 32, 32]),
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3]),
    ]
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("Mul", ["m", "k"], ["logits"]),
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [helper.make_tensor("k", TensorProto.FLOAT, [], [10.0])])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    path.write_bytes(made.SerializeToString())
    return path
