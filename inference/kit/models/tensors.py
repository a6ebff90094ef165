"""What a request of the Open Inference Protocol means to a loaded model: its feeds, the outputs to send, its ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io.engine import Loaded, TensorInfo
from inference.kit.model_io.refusals import BadRequest
from inference.kit.model_io.spec import ModelSpec
from inference.kit.models import oip

PREDICTIONS = "predictions"  # an extra output: one JSON text per picture of a BYTES input
Arrays = Mapping[str, NDArray[np.generic]]


def wanted(spec: ModelSpec, outputs: Mapping[str, TensorInfo], sent: oip.InferRequest) -> dict[str, bool]:
    """Name → binary of the outputs to send.

    Raises:
        BadRequest: one of them is not there.
    """
    if not sent.outputs:
        names = [PREDICTIONS] if sent.pictures else list(outputs)
        return dict.fromkeys(names, sent.binary)
    for output in sent.outputs:
        exists = output.name in outputs or (output.name == PREDICTIONS and spec.input)
        if not exists:
            raise BadRequest(f"The model has no output {output.name!r}.")
        if output.name == PREDICTIONS and not sent.pictures:
            raise BadRequest(f"{PREDICTIONS!r} needs pictures: send the input as BYTES.")
    return {output.name: output.binary for output in sent.outputs}


def pictures(spec: ModelSpec, sent: oip.InferRequest, *, limit: int) -> Sequence[bytes]:
    """Return the images of a request, at most `limit`.

    Raises:
        BadRequest: the model takes tensors only, or the images are not in its input.
    """
    if spec.input is None:
        raise BadRequest("This model came without model.json; send tensors instead of pictures.")
    if sent.tensors or list(sent.pictures) != [spec.input.name]:
        raise BadRequest(f"Pictures belong into the one input {spec.input.name!r}.")
    images = sent.pictures[spec.input.name]
    check_count(len(images), limit)
    return images


def feeds(spec: ModelSpec, engine: Loaded, inputs: Mapping[str, TensorInfo], tensors: Arrays, *, limit: int) -> Arrays:
    """Return the tensors of a request, checked against the declared inputs; at most `limit` samples.

    Raises:
        BadRequest.
    """
    if spec.graph is not None:
        raise BadRequest("This model is composed of others, which have the tensors: send pictures, as BYTES.")
    for name in inputs:
        if name not in tensors:
            raise BadRequest(f"Input {name!r} is missing.")
    for name, array in tensors.items():
        if name not in inputs:
            raise BadRequest(f"The model has no input {name!r}.")
        oip.check(inputs[name], array)
    if engine.batches:
        sizes = {array.shape[0] for array in tensors.values()}
        if len(sizes) != 1:
            raise BadRequest("All inputs need the same first size, the batch.")
        check_count(sizes.pop(), limit)
    return tensors


def check_count(count: int, limit: int) -> None:
    """Refuse a request without samples or with too many."""
    if not 1 <= count <= limit:
        raise BadRequest(f"One request may hold 1 to {limit} samples, not {count}.")


def described(name: str, version: str, spec: ModelSpec, engine: Loaded, *, max_batch: int) -> dict[str, Any]:
    """The model metadata of the protocol."""
    inputs, outputs = (
        [{"name": end.name, "datatype": end.datatype, "shape": list(end.shape)} for end in ends]
        for ends in (engine.inputs, engine.outputs)
    )
    if spec.graph and spec.input:
        inputs = [{"name": spec.input.name, "datatype": "BYTES", "shape": [-1]}]
    if spec.input:
        outputs.append({"name": PREDICTIONS, "datatype": "BYTES", "shape": [-1]})
    return {
        "name": name,
        "versions": [version],
        "platform": "onnxruntime_onnx",
        "inputs": inputs,
        "outputs": outputs,
        "parameters": {
            "task": spec.task,
            "classes": [{"id": c.id, "name": c.name} for c in spec.classes],
            "provider": engine.provider,
            "max_batch": max_batch,
        },
    }
