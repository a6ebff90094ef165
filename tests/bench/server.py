# ruff: noqa: E402 - Django is set up before models are imported
"""What the model server costs: `python -m tests.bench.server [--rounds 5] [--json]`.

Seven questions, each against its reference in the same run on the same machine: CPU time per request where the
model costs nothing; what the platform's proxy (`/serve/…`) adds to it in the web server; pictures per second against
the raw engine loop; cost of an idle service; time to ready; what an ensemble costs beside its parts;
what describing a picture for drift costs beside answering it. All but the second
and the last two call the model server itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import django
import numpy as np
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from aiplatform.cli import web
from inference.kit.model_io import decode
from inference.kit.model_io.engine import Engine
from inference.kit.models import boxes, descriptor, model_json, statistics
from inference.registry.composition.descriptions import Recipe
from tests.inference import tiny
from tests.inference.launching import get, start_server
from tests.inference.parted import folder_of, loaded
from tests.inference.pictures import encoded
from tests.running import free_port

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def pss_mib(pid: int) -> float:
    """Memory of a process, shared pages divided among their users."""
    line = next(row for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if row.startswith("Pss:"))
    return int(line.split()[1]) / 1024


async def client(port: int, request: bytes, until: float, latencies: list[float]) -> None:
    """Send one request after another over one connection until `until`, at least one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    over = False
    while not over:
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(row for row in head.lower().split(b"\r\n") if row.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        latencies.append(time.perf_counter() - began)
        over = time.monotonic() >= until
    writer.close()


def load(port: int, pid: int, request: bytes, *, clients: int, seconds: float) -> dict[str, float]:
    """Drive the server; requests per second, latencies in ms, the server's CPU-ms per request."""
    latencies: list[float] = []

    async def run() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(client(port, request, until, latencies) for _ in range(clients)))

    before, began = cpu_s(pid), time.monotonic()
    asyncio.run(run())
    spent, used = time.monotonic() - began, cpu_s(pid) - before
    ordered = sorted(latencies)
    return {
        "per_s": len(ordered) / spent,
        "p50_ms": 1000 * ordered[len(ordered) // 2],
        "p99_ms": 1000 * ordered[int(len(ordered) * 0.99)],
        "cpu_ms": 1000 * used / len(ordered),
    }


def post(path: str, body: bytes, kind: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def resnet18(directory: Path, side: int = 224, width: int = 64) -> Path:
    """ResNet-18's layers with random weights, `width` channels in the first stage: costs what the real one costs."""
    rng = np.random.default_rng(0)
    nodes, weights = [], []

    def conv(source: str, name: str, inside: int, out: int, size: int, stride: int) -> str:
        scale = (2 / (inside * size * size)) ** 0.5
        kernel = (rng.standard_normal((out, inside, size, size)) * scale).astype(np.float32)
        weights.append(numpy_helper.from_array(kernel, f"{name}.w"))
        weights.append(numpy_helper.from_array(np.zeros(out, np.float32), f"{name}.b"))
        pad = size // 2
        ends = [source, f"{name}.w", f"{name}.b"]
        nodes.append(
            helper.make_node("Conv", ends, [name], kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4)
        )
        return name

    def then(kind: str, sources: list[str], name: str, **more: object) -> str:
        nodes.append(helper.make_node(kind, sources, [name], **more))
        return name

    at = then("Relu", [conv("images", "stem", 3, width, 7, 2)], "stem.r")
    at = then("MaxPool", [at], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inside = width
    for stage, out in enumerate((width, 2 * width, 4 * width, 8 * width)):
        for block in range(2):
            name, stride = f"s{stage}b{block}", 2 if stage and not block else 1
            a = then("Relu", [conv(at, f"{name}.1", inside, out, 3, stride)], f"{name}.1r")
            b = conv(a, f"{name}.2", out, out, 3, 1)
            skip = conv(at, f"{name}.s", inside, out, 1, stride) if stride > 1 or inside != out else at
            at = then("Relu", [then("Add", [b, skip], f"{name}.add")], f"{name}.r")
            inside = out
    flat = then("Flatten", [then("GlobalAveragePool", [at], "gap")], "flat")
    weights.append(numpy_helper.from_array(rng.standard_normal((8 * width, 10)).astype(np.float32) * 0.05, "fc"))
    then("MatMul", [flat, "fc"], "logits")
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, side, side])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 10])
    tiny.describe(
        directory,
        task="classification",
        classes=tuple(f"class {i}" for i in range(10)),
        input=tiny.input_of(side, mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4]),
        output={"logits": "logits"},
    )
    return tiny.write(directory, helper.make_graph(nodes, "resnet18", [images], [logits], weights))


RAW = """
import sys, time, numpy as np, onnxruntime as ort
options = ort.SessionOptions(); options.intra_op_num_threads = int(sys.argv[2]); options.inter_op_num_threads = 1
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
x = np.random.default_rng(0).standard_normal((8, 3, 224, 224)).astype("f4")
session.run(None, {"images": x})
picture = sys.argv[3:] and open(sys.argv[3], "rb").read()
if picture:
    from pathlib import Path; from inference.kit.model_io import decode; from inference.kit.models import model_json
    spec = model_json.load(Path(sys.argv[1]).parent).input
for line in sys.stdin:
    until, done, cpu, began = time.monotonic() + float(line), 0, time.process_time(), time.monotonic()
    while time.monotonic() < until:
        if picture:
            np.stack([decode.preprocess(decode.open_image(picture), spec)[0] for _ in range(8)], out=x)
        session.run(None, {"images": x}); done += 8
    print(done / (time.monotonic() - began), 1000 * (time.process_time() - cpu) / done, flush=True)
"""


def against_raw(folder: Path, *, threads: int, rounds: int, seconds: float) -> dict[str, float]:
    """Pictures per second of the server (16 callers, JPEG in, JSON out) over those of the bare engine, interleaved.

    The bare engine computes the same numbers again and again; a second loop reads a JPEG for each of them, as every
    server must. The callers compute on the same cores as the server and on none while the loops run.
    """
    resnet18(folder)
    noise = np.random.default_rng(0).integers(0, 255, (56, 56, 3), np.uint8)
    picture = encoded(Image.fromarray(noise).resize((224, 224)), "JPEG", quality=85)
    request = post("/predict", picture, "image/jpeg")
    (folder / "picture.jpg").write_bytes(picture)
    argv = [sys.executable, "-c", RAW, str(folder / "model.onnx"), str(threads)]
    loops = [
        subprocess.Popen([*argv, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for more in ([], [str(folder / "picture.jpg")])
    ]
    server, port = start_server(folder, OMP_NUM_THREADS=str(threads))
    rounds_seen: list[tuple[float, ...]] = []
    try:
        for _ in range(rounds):
            server.send_signal(signal.SIGSTOP)
            (bare, bare_ms), (reading, reading_ms) = (_loop(loop, seconds) for loop in loops)
            server.send_signal(signal.SIGCONT)
            ours = load(port, server.pid, request, clients=16, seconds=seconds)
            rate, cost = ours["per_s"], ours["cpu_ms"]
            rounds_seen.append((rate / bare, rate / reading, rate, bare, reading, cost, bare_ms, reading_ms))
    finally:
        server.send_signal(signal.SIGCONT)
        server.kill()
        server.wait()
        for loop in loops:
            loop.kill()
            loop.communicate()
    names = (
        "ratio", "ratio_reading", "server_per_s", "raw_per_s", "reading_per_s",
        "server_cpu_ms", "raw_cpu_ms", "reading_cpu_ms",
    )  # fmt: skip
    return {name: median(column) for name, column in zip(names, zip(*rounds_seen, strict=True), strict=True)}


def _loop(loop: subprocess.Popen[str], seconds: float) -> tuple[float, float]:
    """Let a loop run; pictures per second, CPU-ms per picture."""
    loop.stdin.write(f"{seconds}\n")
    loop.stdin.flush()
    per_s, cpu_ms = (float(value) for value in loop.stdout.readline().split())
    return per_s, cpu_ms


@contextmanager
def proxy(port: int) -> Iterator[tuple[int, int]]:
    """The platform's proxy before `port`, served as the platform's web server is; gives its port and its process."""
    own = free_port()
    server = subprocess.Popen(
        web.command("127.0.0.1", own, "tests.bench.proxied:application"), start_new_session=True,
        env=os.environ | {"AIP_BENCH_PORT": str(port), "DJANGO_SETTINGS_MODULE": "aiplatform.settings"},
    )  # fmt: skip
    try:
        while True:  # as long as it takes to start on a busy machine
            try:
                get(own, "/serve/tiny/v2/health/ready")
                break
            except OSError:
                assert server.poll() is None, "the web server ended"
                time.sleep(0.1)
        yield own, server.pid
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def no_op(folder: Path, *, seconds: float) -> dict[str, float]:
    """CPU-ms a request where the model copies 16 numbers: Open Inference Protocol as JSON, 1 and 32 callers."""
    server, port = start_server(tiny.identity(folder))
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 16], "data": [0.5] * 16}
    request = post("/v2/models/tiny/infer", json.dumps({"inputs": [tensor]}).encode(), "application/json")
    try:
        load(port, server.pid, request, clients=4, seconds=0.5)
        one = load(port, server.pid, request, clients=1, seconds=seconds)
        many = load(port, server.pid, request, clients=32, seconds=seconds)
        with proxy(port) as (front, web):
            request = request.replace(b"/v2/", b"/serve/tiny/v2/", 1)
            load(front, web, request, clients=4, seconds=0.5)
            proxied = [load(front, web, request, clients=count, seconds=seconds)["cpu_ms"] for count in (1, 32)]
        began, before = time.monotonic(), cpu_s(server.pid)
        time.sleep(10)
        idle = (cpu_s(server.pid) - before) / (time.monotonic() - began)
        memory = pss_mib(server.pid)
    finally:
        server.kill()
        server.wait()
    return {
        "c1_cpu_ms": one["cpu_ms"], "c1_p50_ms": one["p50_ms"], "c1_per_s": one["per_s"],
        "c32_cpu_ms": many["cpu_ms"], "c32_p50_ms": many["p50_ms"], "c32_p99_ms": many["p99_ms"],
        "c32_per_s": many["per_s"],
        "proxy_c1_cpu_ms": proxied[0], "proxy_c32_cpu_ms": proxied[1], "idle_cores": idle, "pss_mib": memory,
    }  # fmt: skip


def cold_start(folder: Path, *, times: int) -> float:
    """Seconds from starting the process to its first "ready", median."""
    tiny.detector(folder)
    taken = []
    for _ in range(times):
        began = time.monotonic()
        server, _port = start_server(folder)
        taken.append(time.monotonic() - began)
        server.kill()
        server.wait()
    return median(taken)


def ensemble(folder: Path, *, threads: int, rounds: int) -> dict[str, float]:
    """Time of an ensemble of two for eight pictures over that of both parts in bare ONNX Runtime, in turn.

    `fusing_ms` is what two times 300 boxes of 20 classes take to be fused, for one picture.
    """
    parts = [resnet18(folder / name) for name in ("one", "two")]
    joint = folder_of(folder / "both", Recipe("ensemble", (), "mean"), *parts)
    spec, answering = loaded(joint, threads=threads)
    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(rng.integers(0, 256, (224, 224, 3), np.uint8)) for _ in range(8)]
    feeds = {"images": np.stack([decode.preprocess(picture, spec.input)[0] for picture in pictures])}
    tensor = np.stack([decode.preprocess(picture, spec.input.parts[0])[0] for picture in pictures])
    bare = [Engine(part / "model.onnx", threads=threads) for part in parts]
    took: list[tuple[float, float]] = []
    for _ in range(4 * rounds + 1):
        began = time.perf_counter()
        for engine in bare:
            engine.session.run(None, {"images": tensor})
        between = time.perf_counter()
        answering.run(feeds)
        took.append((between - began, time.perf_counter() - between))
    corners = rng.random((2, 300, 2)) * 600
    found = [
        boxes.Boxes(np.concatenate([low, low + 40], 1), rng.random(300), rng.integers(0, 20, 300)) for low in corners
    ]
    began = time.perf_counter()
    for _ in range(20):
        boxes.fused(found, [1, 1], iou=0.55)
    fusing = (time.perf_counter() - began) / 20
    alone, together = (median(column) for column in zip(*took[1:], strict=True))
    return {"ratio": together / alone, "parts_ms": 1000 * alone, "ms": 1000 * together, "fusing_ms": 1000 * fusing}


def describing(folder: Path) -> dict[str, float]:
    """CPU-ms to answer a JPEG of 640 pixels with ResNet-18, to read what it is like, and of that to describe it."""
    spec = model_json.load(resnet18(folder, 640))
    engine = Engine(folder / "model.onnx", threads=1)
    noise = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    picture = encoded(Image.fromarray(noise).resize((640, 480)), "JPEG", quality=85)
    small = np.asarray(Image.fromarray(noise).resize((48, 48)), np.float32) / 255
    grey, features = small.mean(2), dict.fromkeys(("sharpness", "size", "shape"), 0.5)

    def answer() -> None:
        sample, _placement = decode.preprocess(decode.open_image(picture), spec.input)
        engine.session.run(None, {"images": sample[None]})

    def cpu_ms(act: Callable[[], object], times: int) -> float:
        act()
        taken = []
        for _ in range(times):
            began = time.process_time()
            act()
            taken.append(time.process_time() - began)
        return 1000 * median(taken)

    return {
        "answer_ms": cpu_ms(answer, 10),
        "read_ms": cpu_ms(lambda: statistics.read(picture, max_pixels=10**7), 50),
        "describe_ms": cpu_ms(lambda: descriptor.compute(small, grey, features), 200),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = {
            "conditions": {
                "cpus": os.cpu_count(), "load_before": os.getloadavg()[0], "threads": asked.threads,
                "rounds": asked.rounds,
            },
            "no_op": no_op(Path(place) / "noop", seconds=asked.seconds),
            "cold_start_s": cold_start(Path(place) / "cold", times=3),
            "resnet18": against_raw(
                Path(place) / "resnet", threads=asked.threads, rounds=asked.rounds, seconds=asked.seconds
            ),
            "ensemble": ensemble(Path(place) / "ensemble", threads=asked.threads, rounds=asked.rounds),
            "describing": describing(Path(place) / "describing"),
        }  # fmt: skip
    if asked.json:
        print(json.dumps(found))
        return
    noop, resnet, at, both = found["no_op"], found["resnet18"], found["conditions"], found["ensemble"]
    drift = found["describing"]
    print(f"{at['cpus']} CPUs, load before {at['load_before']:.2f}, {at['threads']} threads, {at['rounds']} rounds")
    rows = [
        ("CPU per request, no-op model, 1 caller", f"{noop['c1_cpu_ms']:.2f} ms", "≤ 0.5 ms (LitServe 2.3)"),
        ("CPU per request, no-op model, 32 callers", f"{noop['c32_cpu_ms']:.2f} ms", "≤ 0.5 ms"),
        ("CPU of the platform's proxy, 1 / 32 callers",
         f"{noop['proxy_c1_cpu_ms']:.2f} / {noop['proxy_c32_cpu_ms']:.2f} ms", "≤ 0.5 ms"),
        ("requests/s, no-op, 1 / 32 callers", f"{noop['c1_per_s']:.0f} / {noop['c32_per_s']:.0f}", ""),
        ("p50, 1 caller; p50, p99, 32 callers",
         f"{noop['c1_p50_ms']:.1f}; {noop['c32_p50_ms']:.1f}, {noop['c32_p99_ms']:.1f} ms", ""),
        ("ResNet-18 against the raw engine loop", f"{resnet['ratio']:.3f}", "≥ 0.95"),
        ("  against a loop that reads pictures, too", f"{resnet['ratio_reading']:.3f}", "≥ 0.95"),
        ("  images/s, server / raw / raw that reads",
         f"{resnet['server_per_s']:.1f} / {resnet['raw_per_s']:.1f} / {resnet['reading_per_s']:.1f}", ""),
        ("  CPU-ms per image, the same",
         f"{resnet['server_cpu_ms']:.1f} / {resnet['raw_cpu_ms']:.1f} / {resnet['reading_cpu_ms']:.1f}", ""),
        ("idle service: CPU, memory", f"{100 * noop['idle_cores']:.2f} % of a core, {noop['pss_mib']:.0f} MiB",
         "≤ 2 %, ≤ 300 MB"),
        ("start to ready", f"{found['cold_start_s']:.2f} s", "≤ 2 s"),
        ("ensemble of two against its bare parts", f"{both['ratio']:.3f}", "≤ 1.05"),
        ("  ms for 8 pictures, ensemble / parts", f"{both['ms']:.1f} / {both['parts_ms']:.1f}", ""),
        ("  fusing 2 × 300 boxes of a picture", f"{both['fusing_ms']:.1f} ms", ""),
        ("describing a picture, of a request of 640 px", f"{drift['describe_ms'] / drift['answer_ms']:.2%}", "≤ 2 %"),
        ("  CPU-ms to answer / read / describe",
         f"{drift['answer_ms']:.1f} / {drift['read_ms']:.2f} / {drift['describe_ms']:.2f}", ""),
    ]  # fmt: skip
    for what, value, goal in rows:
        print(f"{what:<44} {value:>28}   {goal}")


if __name__ == "__main__":
    main()
