"""A package's predict.js in a real browser, with onnxruntime-web: the numbers of run.py."""

from __future__ import annotations

import http.server
import json
import threading
from functools import partial
from pathlib import Path

import pytest

from inference.kit.models.standalone import Model
from inference.registry.snippets import generation
from tests.inference import drawn_models
from tests.scripts import tools

LOCK = Path(__file__).parents[1] / "web_runtime"
PAGE = """<!doctype html><title>predict.js</title><script type="module">
import * as ort from "/ort/ort.wasm.min.mjs";
ort.env.wasm.wasmPaths = "/ort/";
ort.env.wasm.numThreads = 1;
window.answers = async (name, pictures) => {
  const { load, predict, pixelsOf } = await import(`/${name}/use/predict.js`);
  const session = await load(ort, `/${name}/model.onnx`);
  const found = [];
  for (const picture of pictures) {
    const blob = await (await fetch(`/${picture}`)).blob();
    found.push(await predict(ort, session, await pixelsOf(blob)));
  }
  return found;
};
document.documentElement.dataset.ready = "";
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript",
                      ".wasm": "application/wasm"}  # fmt: skip

    def log_message(self, *args):
        """Tests print nothing."""


@pytest.fixture
def served(tmp_path):
    packages = tools.packages_of(LOCK, "web-runtime", "onnxruntime-web")
    if packages is None:
        pytest.skip("onnxruntime-web is not there: it needs Node 20 or newer, npm and a network, once")
    root = tmp_path / "site"
    root.mkdir()
    (root / "ort").symlink_to(packages / "onnxruntime-web" / "dist")
    (root / "index.html").write_text(PAGE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield root, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_predict_js_says_what_run_py_says(chromium, served):
    """Classes, tags and boxes in every layout; pictures that are larger and smaller than the input, wide and high."""
    root, address = served
    models = drawn_models.folders(root)
    pictures = {f"{w}x{h}.png": drawn_models.picture(w, h) for w, h in ((120, 90), (33, 57), (64, 64), (7, 5))}
    for name, data in pictures.items():
        (root / name).write_bytes(data)
    for folder in models.values():
        for place, data in generation.files(folder).items():
            (folder / place).parent.mkdir(exist_ok=True)
            (folder / place).write_bytes(data)
    page = chromium.new_page()
    page.goto(address)
    page.locator("html[data-ready]").wait_for(state="attached")
    try:
        for name, folder in models.items():
            said = page.evaluate("([name, pictures]) => window.answers(name, pictures)", [name, list(pictures)])
            here = Model(folder)
            for answer, data in zip(said, pictures.values(), strict=True):
                near(answer, json.loads(json.dumps(here.predict(data))), name)
    finally:
        page.close()


def near(one, other, name):
    """Alike to 1e-3, however deep."""
    if isinstance(other, dict):
        assert one.keys() == other.keys(), name
        for key in other:
            near(one[key], other[key], f"{name}.{key}")
    elif isinstance(other, list):
        assert len(one) == len(other), (name, one, other)
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            near(left, right, f"{name}[{place}]")
    elif isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-3), name
    else:
        assert one == other, name
