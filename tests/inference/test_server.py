"""A real server process, asked by the protocol's own client and by plain HTTP."""

import base64
import http.client
import json
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tritonclient.http as triton

from tests.inference import pictures, tiny
from tests.inference.launching import ROOT

pytestmark = pytest.mark.sockets("a model server of its own")


@pytest.fixture(scope="module")
def classifier(serve, tmp_path_factory):
    return serve(tiny.classifier(tmp_path_factory.mktemp("classifier")))


@pytest.fixture(scope="module")
def detector(serve, tmp_path_factory):
    return serve(tiny.detector(tmp_path_factory.mktemp("detector")), AIP_SERVICE_KEY="secret")


@pytest.fixture
def client(classifier):
    client = triton.InferenceServerClient(f"127.0.0.1:{classifier}", concurrency=4)
    yield client
    client.close()


def send_request(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_model_server_answers_health_and_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("tiny")
    assert client.is_model_ready("tiny", "1")
    assert client.get_server_metadata()["name"] == "aiplatform"
    metadata = client.get_model_metadata("tiny")
    assert metadata["inputs"] == [{"name": "images", "datatype": "FP32", "shape": [-1, 3, 8, 8]}]
    assert [c["name"] for c in metadata["parameters"]["classes"]] == list(tiny.COLOURS)
    assert client.get_model_repository_index()[0]["state"] == "READY"


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_model_server_sends_tensors_both_ways_in_both_forms(client, binary_in, binary_out):
    x = np.random.default_rng(0).random((2, 3, 8, 8), np.float32)
    sent = triton.InferInput("images", x.shape, "FP32")
    sent.set_data_from_numpy(x, binary_data=binary_in)
    wanted = triton.InferRequestedOutput("logits", binary_data=binary_out)

    answer = client.infer("tiny", [sent], outputs=[wanted], request_id="7")

    assert answer.get_response()["id"] == "7"
    assert answer.as_numpy("logits") == pytest.approx(10 * x.mean((2, 3)), rel=1e-5)


def test_model_server_answers_eight_requests_at_once(client):
    x = np.ones((1, 3, 8, 8), np.float32)
    sent = triton.InferInput("images", x.shape, "FP32")
    sent.set_data_from_numpy(x)

    asks = [client.async_infer("tiny", [sent]) for _ in range(8)]

    assert all(request.get_result().as_numpy("logits").shape == (1, 3) for request in asks)


@pytest.mark.parametrize("binary", [True, False])
def test_model_server_takes_images_as_bytes(client, binary):
    data = [pictures.plain("green"), pictures.plain("blue", format="JPEG")]
    if not binary:
        data = [base64.b64encode(item) for item in data]
    sent = triton.InferInput("images", [2], "BYTES")
    sent.set_data_from_numpy(np.array(data, dtype=object), binary_data=binary)

    answer = client.infer("tiny", [sent])
    rows = [json.loads(text) for text in answer.as_numpy("predictions")]

    assert [item[0]["name"] for item in rows] == ["green", "blue"]


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((1, 3, 9, 9), np.float32, "shape"),
        ((1, 3, 8, 8), np.float64, "must be FP32"),
        ((100, 3, 8, 8), np.float32, "1 to 64 samples"),
        ((0, 3, 8, 8), np.float32, "1 to 64 samples"),
    ],
)
def test_model_server_refuses_wrong_tensors(client, shape, dtype, message):
    sent = triton.InferInput("images", shape, {np.float32: "FP32", np.float64: "FP64"}[dtype])
    sent.set_data_from_numpy(np.zeros(shape, dtype))

    with pytest.raises(triton.InferenceServerException, match=message):
        client.infer("tiny", [sent])


def test_model_server_refuses_numbers_that_are_not_finite(client):
    sent = triton.InferInput("images", (1, 3, 8, 8), "FP32")
    sent.set_data_from_numpy(np.full((1, 3, 8, 8), np.nan, np.float32))

    with pytest.raises(triton.InferenceServerException, match="not finite"):
        client.infer("tiny", [sent])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{" * 100_000,
        b'{"inputs":[{"name":"images","datatype":"FP32","shape":[1,3,8,8]}]}',
        b'{"inputs":[{"name":"images","datatype":"FP32","shape":[1],"data":["x"]}]}',
        b'{"inputs":[{"name":"images","datatype":"WORD","shape":[1],"data":[1]}]}',
        b'{"inputs":[{"name":"images","datatype":"BYTES","shape":[1],"data":["%%%"]}]}',
        b'{"inputs":[{"name":"images","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":9}}]}',
    ],
)
def test_model_server_refuses_broken_requests(classifier, body):
    status, answer, _ = send_request(classifier, "POST", "/v2/models/tiny/infer", body)

    assert status == 400
    assert json.loads(answer)["error"]


def test_model_server_knows_no_other_models(classifier):
    assert send_request(classifier, "GET", "/v2/models/other")[0] == 404
    assert send_request(classifier, "GET", "/v2/models/tiny/versions/9/ready")[0] == 404


def test_model_server_classifies_an_image_as_body(classifier):
    status, answer, _ = send_request(classifier, "POST", "/predict?top_k=2", pictures.plain("blue"))
    content = json.loads(answer)

    assert status == 200
    assert content["predictions"][0]["name"] == "blue"
    assert len(content["predictions"]) == 2
    assert content["predictions"][0]["score"] == pytest.approx(np.exp(10) / (np.exp(10) + 2), abs=1e-4)
    assert content["image"] == {"width": 32, "height": 24}
    assert set(content["timing_ms"]) == {"decode", "queue", "inference", "postprocess", "total"}


def test_model_server_finds_boxes_in_image_pixels_for_a_form(detector):
    data = pictures.with_boxes({(16, 32, 32, 48): "green", (96, 0, 112, 16): "red"})
    head = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x", "X-Aip-Service-Key": "secret"}

    status, answer, _ = send_request(detector, "POST", "/predict", head + data + b"\r\n--x--\r\n", headers)
    by_name = {p["name"]: p for p in json.loads(answer)["predictions"]}

    assert status == 200
    assert by_name["green"]["box"] == [16, 32, 32, 48]
    assert by_name["red"]["box"] == [96, 0, 112, 16]
    assert by_name["red"]["class_id"] == 1


def test_model_server_lets_nobody_in_without_the_key(detector):
    assert send_request(detector, "GET", "/v2/health/live")[0] == 401
    assert send_request(detector, "POST", "/predict", pictures.plain(), {"X-Aip-Service-Key": "guess"})[0] == 401


def bomb() -> bytes:
    """A PNG of a few hundred bytes that claims 30,000 × 30,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000)))


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/predict", b"hello", 422),
        ("/predict", bomb(), 422),
        ("/predict", b"", 400),
        ("/predict?score_threshold=2", pictures.plain(), 400),
        ("/predict?top_k=many", pictures.plain(), 400),
    ],
    ids=["no picture", "bomb", "empty", "threshold", "top_k"],
)
def test_model_server_says_why_an_image_cannot_be_answered(classifier, path, body, expected):
    status, answer, headers = send_request(classifier, "POST", path, body)

    assert status == expected
    assert headers["Content-Type"] == "application/problem+json"
    assert json.loads(answer)["detail"]


def test_model_server_refuses_a_body_too_large_by_its_announced_length(classifier):
    connection = http.client.HTTPConnection("127.0.0.1", classifier, timeout=60)
    connection.putrequest("POST", "/predict")
    connection.putheader("Content-Length", str(1 << 30))
    connection.endheaders()

    assert connection.getresponse().status == 413
    connection.close()


def test_model_server_gives_up_a_body_that_never_comes(classifier):
    connection = http.client.HTTPConnection("127.0.0.1", classifier, timeout=60)
    connection.putrequest("POST", "/predict")
    connection.putheader("Content-Length", "100")
    connection.endheaders(b"ab")

    assert connection.getresponse().status == 408
    connection.close()


def test_model_server_metrics_count_requests_and_batches(classifier):
    send_request(classifier, "POST", "/predict", pictures.plain())

    text = send_request(classifier, "GET", "/metrics")[1].decode()

    assert 'aip_requests_total{route="/predict",code="200"}' in text
    assert "aip_batch_images_count" in text
    assert "aip_queue_images 0" in text


def test_model_server_without_description_speaks_tensors_only(serve, tmp_path):
    port = serve(tiny.identity(tmp_path))
    client = triton.InferenceServerClient(f"127.0.0.1:{port}")
    x = np.arange(32, dtype=np.float32).reshape(2, 16)
    sent = triton.InferInput("x", x.shape, "FP32")
    sent.set_data_from_numpy(x)

    answer = client.infer("tiny", [sent])
    client.close()

    assert np.array_equal(answer.as_numpy("y"), x)
    assert send_request(port, "POST", "/predict", pictures.plain())[0] == 400


@pytest.mark.parametrize("name", ["model.onnx", "model.json"])
def test_model_server_ends_with_a_code_of_its_own_where_no_start_would_help(tmp_path, name):
    folder = tiny.classifier(tmp_path)
    (folder / name).write_bytes(b"broken")
    variables = {"PATH": os.environ["PATH"], "AIP_PORT": "1", "AIP_MODEL_DIR": str(folder), "AIP_MODEL_NAME": "tiny"}

    done = subprocess.run(
        [sys.executable, "-m", "inference.serving.server"],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, "ERROR The model cannot be loaded: " in done.stdout) == (os.EX_DATAERR, True)
