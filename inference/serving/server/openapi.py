"""What a service answers to, as OpenAPI 3.1: its own model's inputs, outputs, classes and limits.

Source: https://spec.openapis.org/oas/v3.1.1.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference.kit.contracts.schema import INTEGER, NUMBER, SHARE, TEXT, Schema, a_list, an_object
from inference.kit.model_io.engine import TensorInfo
from inference.kit.model_io.spec import CHAIN
from inference.kit.task_kinds import TASKS

if TYPE_CHECKING:
    from inference.serving.server.service import Service

Document = dict[str, Any]
PROBLEM = an_object(type=TEXT, status=INTEGER, code=TEXT, detail=TEXT)
OF_OPENAI = an_object(message=TEXT, type=TEXT, param={"type": ["string", "null"]}, code=TEXT)
REFUSALS = {  # status → when
    "400": "What was sent cannot be understood.",
    "401": "No token or key, or one that does not open this service.",
    "413": "The body or the answer is larger than the service allows.",
    "422": "The bytes are no picture that can be read.",
    "429": "Asked too often, or too many requests wait. Retry-After says when to ask again.",
    "503": "The service is starting. Retry-After says when to ask again.",
    "504": "The answer took longer than the service allows.",
}
REQUEST_FIELDS: dict[str, tuple[str, Any]] = {
    "score_threshold": ("Lowest score of an answer.", SHARE),
    "iou_threshold": ("Overlap from which one of two boxes of a class stays.", SHARE),
    "max_detections": ("Most objects of a picture.", {"type": "integer", "minimum": 1, "maximum": 10_000}),
    "top_k": ("Most classes that are named; 0 for all.", {"type": "integer", "minimum": 0, "maximum": 1000}),
    "neighbours": ("Nearest known pictures that are named.", {"type": "integer", "minimum": 0, "maximum": 1000}),
    "region": ("The part to look at: x1,y1,x2,y2 in pixels of the picture.", TEXT),
}
PICTURE = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}


def document(service: Service) -> Document:
    """Describe a service; addresses in it are relative to the document's own."""
    settings, spec = service.settings, service.spec
    paths: Document = {
        f"/v2/models/{settings.model_name}/infer": {"post": _infer(service)},
        f"/v2/models/{settings.model_name}": {
            "get": _op(
                "model", "Inputs, outputs and classes of the model.", {"type": "object"}, "Error", refusals=("401",)
            )
        },
        "/v2/health/ready": {
            "get": _op("ready", "Whether the model answers.", {"type": "object"}, "Error", refusals=("401", "503"))
        },
    }
    if spec.input is not None:
        paths = {"/predict": {"post": _predict(service)}, **paths}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": settings.model_name,
            "version": settings.model_version,
            "description": f"At most {settings.max_body_bytes >> 20} MiB in a body, {settings.request_batch_limit} "
            f"samples in a request, {settings.max_answer_bytes >> 20} MiB in an answer, {settings.deadline_s:g} s.",
        },
        "servers": [{"url": "."}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of the platform, or a key of this service.",
                }
            },
            "schemas": {
                "Error": {**PROBLEM, "properties": {**PROBLEM["properties"], "error": TEXT}},
                "PredictError": {**PROBLEM, "properties": {**PROBLEM["properties"], "error": OF_OPENAI}},
            },
        },
    }


def _predict(service: Service) -> Document:
    spec = service.spec
    answer = TASKS[spec.task].answer
    is_chain = spec.graph is not None and spec.graph.kind == CHAIN
    item: Document = dict(answer.item_of_chain if is_chain else answer.item)
    if "name" in item.get("properties", {}) and 0 < len(spec.classes) <= 1000:
        names = {"type": "string", "enum": list(dict.fromkeys(label.name for label in spec.classes))}
        item = {**item, "properties": {**item["properties"], "name": names}}
    response = an_object(
        model=TEXT,
        version=TEXT,
        task={"const": spec.task},
        image=an_object(width=INTEGER, height=INTEGER),
        predictions=a_list(item),
        batch=INTEGER,
        timing_ms={"type": "object", "additionalProperties": NUMBER},
    )
    operation = _op("predict", "What the model finds in a picture.", response, "PredictError")
    operation["parameters"] = [
        {"name": name, "in": "query", "description": REQUEST_FIELDS[name][0], "schema": REQUEST_FIELDS[name][1]}
        for name in answer.options
    ]
    form = {"type": "object", "properties": {"image": PICTURE["schema"]}, "required": ["image"]}
    kinds = ("image/jpeg", "image/png", "image/webp", "application/octet-stream")
    content = dict.fromkeys(kinds, PICTURE) | {"multipart/form-data": {"schema": form}}
    return operation | {"requestBody": {"required": True, "content": content}}


def _infer(service: Service) -> Document:
    inputs: list[Schema] = [_tensor(end) for end in service.engine.inputs]
    if service.spec.input is not None:
        pictures = an_object(
            name={"const": service.spec.input.name}, shape=a_list(INTEGER), datatype={"const": "BYTES"},
            data=a_list({"type": "string", "contentEncoding": "base64"}, "Pictures."),
        )  # fmt: skip
        inputs.append(pictures)
    body = an_object(inputs={"type": "array", "items": {"anyOf": inputs}})
    output = an_object(name=TEXT, shape=a_list(INTEGER), datatype=TEXT, data=a_list({}))
    response = an_object(model_name=TEXT, model_version=TEXT, outputs=a_list(output))
    operation = _op("infer", "The Open Inference Protocol v2: tensors or pictures.", response, "Error")
    return operation | {"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}}


def _tensor(end: TensorInfo) -> Schema:
    shape = a_list(INTEGER, f"{list(end.shape)}; -1 is any size.")
    return an_object(
        name={"const": end.name},
        shape=shape,
        datatype={"const": end.datatype},
        data=a_list({}, "All values in C order."),
    )


def _op(name: str, summary: str, schema: Any, error: str, *, refusals: tuple[str, ...] = tuple(REFUSALS)) -> Document:
    problem = {"application/problem+json": {"schema": {"$ref": f"#/components/schemas/{error}"}}}
    answers: Document = {"200": {"description": "The answer.", "content": {"application/json": {"schema": schema}}}}
    answers |= {status: {"description": REFUSALS[status], "content": problem} for status in refusals}
    return {"operationId": name, "summary": summary, "responses": answers}
