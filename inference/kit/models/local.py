"""The Open Inference Protocol of one loaded model without a server: edge devices answer by it at their local port."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io.refusals import AnswerTooLarge, BadRequest, ModelFailed, UnknownModel
from inference.kit.model_io.requested import Requested
from inference.kit.models import oip, tensors
from inference.kit.models.standalone import Model
from inference.kit.models.tensors import PREDICTIONS

MAX_SAMPLES = 64  # of a request
MAX_RESPONSE_BYTES = 64 << 20
ROOT = "/v2"


class Protocol:
    """Responses of a loaded package below /v2; its name and version are in its about.json."""

    def __init__(self, model: Model, package: Path) -> None:
        description = json.loads((package / "about.json").read_bytes())
        self.model, self.name, self.version = model, str(description["model"]), str(description["version"])
        self._inputs = {end.name: end for end in model.engine.inputs}
        self._outputs = {end.name: end for end in model.engine.outputs}

    def get(self, path: str) -> dict[str, Any]:
        """Answer a GET of a path without its query.

        Raises:
            UnknownModel: another model, or no such path.
        """
        if path == ROOT:
            return {"name": "aip-edge", "version": "1", "extensions": ["binary_tensor_data"]}
        action = self._action(path)
        if action == "ready":
            return {"ready": True}
        if action == "":
            max_batch = MAX_SAMPLES if self.model.engine.batches else 1
            return tensors.described(self.name, self.version, self.model.spec, self.model.engine, max_batch=max_batch)
        raise UnknownModel(f"There is no {path[:100]} here. Send tensors to {ROOT}/models/{self.name}/infer.")

    def infer(self, path: str, body: bytes, header_length: str | None) -> tuple[bytes, int | None]:
        """The answer to a POST: its body and, where tensors follow in binary, the length of the JSON before them.

        Raises:
            Refusal: another model, no such path, not the protocol, or more than is answered at once.
            BadImage, BadBox: a picture cannot be read.
        """
        if self._action(path) != "infer":
            raise UnknownModel(f"Send tensors to {ROOT}/models/{self.name}/infer.")
        sent = oip.parse(body, header_length)
        wanted = tensors.wanted(self.model.spec, self._outputs, sent)
        outputs = self._predict_images(sent, wanted) if sent.pictures else self._of_tensors(sent, list(wanted))
        head: dict[str, Any] = {"model_name": self.name, "model_version": self.version}
        if sent.id:
            head["id"] = sent.id
        size = sum(
            value.nbytes if isinstance(value, np.ndarray) else sum(map(len, value)) for value in outputs.values()
        )
        answer = oip.answer(head, outputs, wanted) if size <= MAX_RESPONSE_BYTES else (b"", None)
        if not answer[0] or len(answer[0]) > MAX_RESPONSE_BYTES:
            raise AnswerTooLarge(
                f"At most {MAX_RESPONSE_BYTES >> 20} MiB are sent. Ask for fewer outputs, or for binary data."
            )
        return answer

    def _action(self, path: str) -> str:
        """Return the part of a path after the model's name; "" where there is none."""
        segments = [unquote(segment) for segment in path.removeprefix(f"{ROOT}/models/").split("/")]
        if not path.startswith(f"{ROOT}/models/") or segments[0] != self.name:
            raise UnknownModel(f"This device has the model {self.name!r}, not {segments[0][:100]!r}.")
        if segments[1:2] == ["versions"]:
            if segments[2:3] != [self.version]:
                raise UnknownModel(f"This device has version {self.version} of the model.")
            segments = [self.name, *segments[3:]]
        return "/".join(segments[1:])

    def _predict_images(self, sent: oip.InferRequest, wanted: dict[str, bool]) -> dict[str, Sequence[bytes]]:
        if list(wanted) != [PREDICTIONS]:
            raise BadRequest(f"Of pictures this port answers {PREDICTIONS!r} alone; send tensors for other outputs.")
        requested = Requested.from_values(sent.parameters)
        predictions = [
            self.model.predict(data, requested)["predictions"]
            for data in tensors.pictures(self.model.spec, sent, limit=MAX_SAMPLES)
        ]
        return {PREDICTIONS: [json.dumps(prediction, separators=(",", ":")).encode() for prediction in predictions]}

    def _of_tensors(self, sent: oip.InferRequest, wanted: list[str]) -> dict[str, NDArray[np.generic]]:
        feeds = tensors.feeds(self.model.spec, self.model.engine, self._inputs, sent.tensors, limit=MAX_SAMPLES)
        try:
            return self.model.engine.run(feeds, wanted)
        except Exception as exc:  # runtimes raise whatever they happen to meet
            raise ModelFailed(f"The model failed on these tensors: {exc}"[:500]) from exc
