"""A service describes itself as OpenAPI, and answers as it says."""

import base64
import http.client
import json

import jsonschema
import numpy as np
import pytest

from inference.kit.model_io.decode import Placement
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import InputSpec, ModelClass, ModelSpec
from inference.kit.task_kinds import TASKS
from tests.inference import pictures, tiny

CLASSES = tuple(ModelClass(number, name) for number, name in enumerate(("one", "two"), 1))
SEEN = InputSpec("images", 8, 8, 3, (0.0,) * 3, (255.0,) * 3, "stretch")
SOME = np.random.default_rng(0)
#: By task: outputs for one picture, by role.
OUTPUTS = {
    "detection": {"boxes": [[[1, 1, 5, 5]]], "scores": [[[0.9, 0.1]]]},
    "classification": {"logits": [[1, 2]]},
    "segmentation": {"logits": SOME.normal(size=(1, 3, 8, 8))},
    "keypoints": {"points": [[[1, 1, 0.9], [2, 2, 0.8]]], "classes": [[0.9, 0.1]]},
    "embedding": {"vector": [[0.6, 0.8]], "similarity": [[0.9, 0.2]]},
    "anomaly": {"score": [0.7], "map": SOME.random((1, 8, 8))},
    "instances": {
        "boxes": [[[1, 1, 5, 5]]],
        "scores": [[[0.9, 0.1]]],
        "coefficients": [[[1.0]]],
        "prototypes": np.ones((1, 1, 8, 8)),
    },
    "tagging": {"logits": [[1, -2]]},
}


def send_request(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def schema_of(document, path, status="200"):
    contents = document["paths"][path]["post"]["responses"][status]["content"]
    (content,) = contents.values()
    return {**content["schema"], "components": document["components"]}


@pytest.mark.parametrize("task", TASKS)
def test_predictions_of_every_task_are_as_described(task):
    answer = TASKS[task].answer
    outputs = {role: np.asarray(value, np.float32) for role, value in OUTPUTS[task].items()}
    raw = {"gallery": {"classes": [0, 1], "images": ["a", "b"]}}
    spec = ModelSpec(task, classes=CLASSES, input=SEEN, outputs={role: role for role in outputs}, raw=raw)

    (predictions,) = answer.read(spec, outputs, [Placement(8, 8, 1.0, 1.0)], Requested())

    assert predictions
    for prediction in predictions:
        jsonschema.validate(prediction, {**answer.item, "additionalProperties": False})


@pytest.mark.sockets("a model server of its own")
@pytest.mark.parametrize("make", [tiny.classifier, tiny.detector], ids=["classifier", "detector"])
def test_service_answers_and_refuses_as_its_description_says(serve, tmp_path, make):
    port = serve(make(tmp_path))
    status, document = send_request(port, "GET", "/openapi.json")

    assert status == 200
    assert document["openapi"].startswith("3.1")
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for answer in operation["responses"].values():
                for content in answer["content"].values():
                    jsonschema.Draft202012Validator.check_schema(content["schema"])
            assert path in {"/predict", "/v2/health/ready"} or "/v2/models/tiny" in path
    status, answer = send_request(port, "POST", "/predict", pictures.plain())
    assert status == 200
    jsonschema.validate(answer, schema_of(document, "/predict"))
    status, answer = send_request(port, "POST", "/predict", b"no picture")
    assert status == 422
    jsonschema.validate(answer, schema_of(document, "/predict", "422"))
    infer = "/v2/models/tiny/infer"
    request = {
        "inputs": [
            {"name": "images", "shape": [1], "datatype": "BYTES", "data": [base64.b64encode(pictures.plain()).decode()]}
        ]
    }
    jsonschema.validate(
        request, document["paths"][infer]["post"]["requestBody"]["content"]["application/json"]["schema"]
    )
    status, answer = send_request(port, "POST", infer, json.dumps(request))
    assert status == 200
    jsonschema.validate(answer, schema_of(document, infer))
    status, answer = send_request(port, "POST", infer, b"{}")
    assert status == 400
    jsonschema.validate(answer, schema_of(document, infer, "400"))
    names = document["paths"]["/predict"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    item = names["properties"]["predictions"]["items"]
    assert item["properties"]["name"]["enum"] == list(tiny.COLOURS)


@pytest.mark.sockets("a model server of its own")
def test_server_keeps_the_limits_it_was_given(serve, tmp_path):
    limits = {"AIP_SERVE_REQUEST_BATCH": "2", "AIP_SERVE_MAX_BODY_MIB": "1", "AIP_SERVE_MAX_ANSWER_MIB": "1"}
    port = serve(tiny.classifier(tmp_path), **limits)
    _status, document = send_request(port, "GET", "/openapi.json")
    assert "At most 1 MiB in a body, 2 samples in a request, 1 MiB in an answer" in document["info"]["description"]

    three = {"name": "images", "shape": [3, 3, 8, 8], "datatype": "FP32", "data": [0.0] * 576}
    assert send_request(port, "POST", "/v2/models/tiny/infer", json.dumps({"inputs": [three]}))[0] == 400
    status, answer = send_request(port, "POST", "/predict", b"x" * (1 << 20) + b"x")
    assert (status, answer["code"], answer["error"]["type"]) == (413, "body_too_large", "invalid_request_error")
