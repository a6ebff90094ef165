"""Tensors at the port of an edge device, by the Open Inference Protocol, as the platform's own server answers them."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import sys
import time
from pathlib import Path

import pytest

from inference.delivery.edge import agent_download
from inference.delivery.edge.device.front import Front
from inference.kit.model_io.engine import Engine
from inference.kit.models import model_json, oip
from inference.registry import packages
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("the port of a device")]
NAME = "/v2/models/net%201"


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path, name="net 1", task="classification")


@pytest.fixture
def request_port(alice, version, tmp_path, monkeypatch):
    """ask(path, body) → status, answer; of a device's port with the package of `version` behind it."""
    package = tmp_path / "package"
    for name, *source in packages.entries(version, by=alice):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source[0] if len(source) == 1 else Path(source[0], source[1]).read_bytes())
    agent = tmp_path / agent_download.NAME
    agent.write_bytes(agent_download.agent())
    monkeypatch.setattr(sys, "argv", [str(agent)])  # what the front starts the model with
    front = Front(0)
    nothing_yet = _send_request(front.port, NAME)
    assert nothing_yet == (503, {"error": "no model is installed yet"})
    assert front.start(package) == ""
    yield lambda path, body=None: _send_request(front.port, path, body)
    assert front.counters()["errors"] == 0
    front.server.shutdown()
    front.server.server_close()
    assert front.child is not None
    front.child.stdin.close()
    front.child.wait(30)
    for pipe in (front.child.stdout, front.child.stderr):
        pipe.close()


def _send_request(port, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def sent(shape, value=1.0, **more):
    count = 1
    for size in shape:
        count *= size
    tensor = {"name": "images", "datatype": "FP32", "shape": list(shape), "data": [value] * count}
    return {"inputs": [tensor | more]}


def served(version, body):
    """What the platform's server answers to the same."""
    service = Service(Settings(version.path), model_json.load(version.path), Engine(version.path / "model.onnx"))

    async def answered():
        service.start()
        try:
            with service.on_its_way() as arrived:
                parsed = oip.parse(json.dumps(body).encode(), None)
                return (await service.infer(parsed, Call(time.monotonic() + 60), arrived))[0]
        finally:
            await service.stop()

    return json.loads(asyncio.run(answered()))


def test_port_of_a_device_answers_the_protocol_as_the_platform_does_and_refuses_in_words(request_port, version):
    body = sent((2, 3, 8, 8), 0.25)
    picture = base64.b64encode((Path(__file__).parent / "cameras.py").read_bytes()).decode()
    no_picture = {"inputs": [{"name": "images", "datatype": "BYTES", "shape": [1], "data": [picture]}]}

    status, content = request_port(f"{NAME}/infer", body)
    refused = [
        request_port(path, wrong)
        for path, wrong in (
            ("/v2/models/other/infer", body),
            (f"{NAME}/versions/7/infer", body),
            (f"{NAME}/infer", {"inputs": []}),
            (f"{NAME}/infer", sent((2, 3, 9, 9))),
            (f"{NAME}/infer", sent((65, 3, 8, 8))),
            (f"{NAME}/infer", sent((1, 3, 8, 8), datatype="INT64", value=1)),
            (f"{NAME}/infer", body | {"outputs": [{"name": "none"}]}),
            (f"{NAME}/infer", no_picture),
        )
    ]

    assert status == 200
    assert (content["model_name"], content["model_version"]) == ("net 1", "1")
    assert content["outputs"] == served(version, body)["outputs"]
    assert [code for code, _said in refused] == [404, 404, 400, 400, 400, 400, 400, 422]
    assert "this device has the model 'net 1'" in refused[0][1]["error"].lower()
    assert "1 to 64 samples, not 65" in refused[4][1]["error"]
    assert request_port(f"{NAME}/versions/1/ready") == (200, {"ready": True})
    assert request_port("/v2/health/live") == (200, {"live": True})
    assert request_port("/v2/health/ready")[1]["ready"] is True
    metadata = request_port(NAME)[1]
    assert (metadata["inputs"][0]["name"], metadata["inputs"][0]["shape"]) == ("images", [-1, 3, 8, 8])
    assert [end["name"] for end in metadata["outputs"]] == ["logits", "predictions"]
    assert request_port("/v2")[1]["name"] == "aip-edge"
    assert request_port(f"{NAME}/nothing")[0] == 404
