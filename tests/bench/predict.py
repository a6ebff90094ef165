"""Predictions against a bare loop: `python -m tests.bench.predict [--pictures 512] [--width 16] [--batch 8]`.

The bare loop is what one would write by hand with onnxruntime: open a picture, scale it, run the session, one after the
other, in one process, with nothing read from the outputs and nothing kept. The program decodes ahead, runs batches,
reads boxes as a service does and keeps them in chunks. Both get the same threads for the network; each has its best of
three rounds. A last round kills the program half way and says what the second attempt had to do again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

from inference.batch.predictor.chunks import SIZE
from tests.bench.video import SIZE as SIDE
from tests.bench.video import heavy

ROUNDS = 3


def main() -> None:
    """Time both, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=512)
    parser.add_argument("--width", type=int, default=16, help="channels of the network: how much there is to compute")
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder:
        root = Path(folder)
        model, pictures = heavy(root / "model", args.width), photographs(root / "pictures", args.pictures)
        best: dict[str, float] = {}
        least: dict[str, float] = {}
        for _ in range(ROUNDS):
            for name, rate, cpu_ms in (
                ("bare loop", *bare(model, pictures)),
                ("program", *Program.new(root, model, pictures, args.batch).rate()),
            ):
                best[name] = max(best.get(name, 0.0), rate)
                least[name] = min(least.get(name, cpu_ms), cpu_ms)
        print(f"{args.pictures} JPEG of 1280x720, network of {SIDE}x{SIDE}, 1 thread, {os.cpu_count()} cores")
        for name, rate in best.items():
            print(f"  {name:10s} {rate:7.1f} pictures/s {least[name]:7.1f} CPU-ms each")
        print(f"  ratio      {best['program'] / best['bare loop']:7.2f}", end="")
        print(
            f"            {least['program'] / least['bare loop']:7.2f} of its CPU time, with the start of the process"
        )
        killed(Program.new(root, model, pictures, args.batch))


def photographs(folder: Path, count: int) -> list[Path]:
    """Pictures of noise and squares, each another one."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    ground = rng.integers(60, 120, (720, 1280, 3), np.uint8)
    paths = []
    for number in range(count):
        pixels = np.roll(ground, number, 1)
        x, y = (number * 37) % 1200, (number * 53) % 640
        pixels[y : y + 64, x : x + 64] = (230, 30, 30) if number % 2 else (30, 230, 30)
        paths.append(folder / f"{number:05d}.jpg")
        Image.fromarray(pixels).save(paths[-1], quality=85)
    return paths


def bare(model: Path, pictures: list[Path]) -> tuple[float, float]:
    """Pictures a second of the loop by hand, and CPU-ms for each."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model / "model.onnx"), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    begun, spent = time.perf_counter(), time.process_time()
    for path in pictures:
        image = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        sample = np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 255
        session.run(None, {name: np.ascontiguousarray(sample)})
    rate = len(pictures) / (time.perf_counter() - begun)
    return rate, 1000 * (time.process_time() - spent) / len(pictures)


@dataclass(frozen=True)
class Program:
    """The program in a folder of its own, as a job runs it."""

    place: Path
    env: dict[str, str]
    count: int

    @classmethod
    def new(cls, root: Path, model: Path, pictures: list[Path], batch: int) -> Program:
        place = Path(tempfile.mkdtemp(dir=root))
        for name in ("outputs", "checkpoints"):
            (place / name).mkdir()
        (place / "samples.jsonl").write_text("".join(f"{json.dumps(path.name)}\n" for path in pictures))
        (place / "params.json").write_text(json.dumps({"batch": batch}))
        env = {
            "PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "OMP_NUM_THREADS": "1",
            "AIP_IMAGES_DIR": str(pictures[0].parent), "AIP_SAMPLES": str(place / "samples.jsonl"),
            "AIP_MODEL_DIR": str(model), "AIP_PARAMS": str(place / "params.json"),
            "AIP_OUTPUT_DIR": str(place / "outputs"), "AIP_CHECKPOINT_DIR": str(place / "checkpoints"),
            "AIP_METRICS_FILE": str(place / "metrics.jsonl"), "AIP_CONTROL_FILE": str(place / "control"),
        }  # fmt: skip
        return cls(place, env, len(pictures))

    def begin(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "inference.batch.predictor"]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL)

    def rate(self) -> tuple[float, float]:
        """Pictures a second, without the start of the process, and CPU-ms for each, with it."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if self.begin().wait():
            raise SystemExit("the program failed")
        summary = json.loads((self.place / "outputs" / "summary.json").read_text())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return float(summary["images_per_s"]), 1000 * spent / self.count

    def chunks(self) -> int:
        return len(list((self.place / "outputs" / "chunks").glob("*.jsonl")))


def killed(program: Program) -> None:
    """Kill the program half way, go on, and say what was done again."""
    half = max(1, program.count // SIZE // 2)
    process = program.begin()
    while program.chunks() < half and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = program.chunks()
    begun = time.perf_counter()
    again = Program(program.place, {**program.env, "AIP_EARLIER": "[]"}, program.count)
    again.rate()
    spent = time.perf_counter() - begun
    lines = [
        json.loads(line)["n"]
        for chunk in sorted((program.place / "outputs" / "chunks").glob("*.jsonl"))
        for line in chunk.read_text().splitlines()[1:]
    ]
    once = lines == list(range(program.count))
    print(f"killed after {kept} chunks of {SIZE}, the rest took {spent:.1f} s; each picture once: {once}")


if __name__ == "__main__":
    main()
