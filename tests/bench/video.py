"""Watching videos: `python -m tests.bench.video [--seconds 20] [--width 32] [--seeds 2]`.

First the whole program (a process that decodes, one that finds, follows, counts, with and without a film) against the
barest loop there is: decode, scale, and run the engine, in one process and with nothing else. Then the tracker on
generated walkers whose ways are known: MOTA, IDF1, numbers that changed, CPU time for each picture.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import av
import numpy as np
from onnx import helper, load, numpy_helper

from inference.video.watcher import detect
from inference.video.watcher.tracker import Tracker
from tests.inference import clips, following, tiny

SIZE, ROUNDS = 320, 3


def main() -> None:
    """Time both, judge the tracker, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="length of the film")
    parser.add_argument("--width", type=int, default=32, help="channels of the network: how much there is to compute")
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder:
        speed(Path(folder), args.seconds, args.width)
    follow(args.seeds)


def speed(root: Path, seconds: float, width: int) -> None:
    """Pictures a second of the program and of the bare loop, in turn; the best round of each counts."""
    model, film = heavy(root / "model", width), root / "walk.mp4"
    large(film, seconds)
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, rate in (
            ("bare loop", bare(model, film)),
            ("program, no film", program(root, model, film, film_too=False)),
            ("program with film", program(root, model, film, film_too=True)),
        ):
            best[name] = max(best.get(name, 0.0), rate)
    print(f"1280x720, {seconds:.0f} s at 30/s, network of {SIZE}x{SIZE}, 1 thread, {os.cpu_count()} cores")
    for name, rate in best.items():
        print(f"  {name:18s} {rate:7.1f} pictures/s  {rate / best['bare loop']:.2f} of the bare loop")


def bare(model: Path, film: Path) -> float:
    """Decode, scale, run, and read boxes, one after the other."""
    detector = detect.Detector(model, threads=1, lowest=0.1)
    spec, count = detector.input, 0
    begun = time.perf_counter()
    with av.open(str(film)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            pixels = frame.reformat(spec.width, spec.height, format="rgb24").to_ndarray()
            sample = pixels.transpose(2, 0, 1).astype(np.float32) / 255
            detector.engine.run({spec.name: sample[None]})
            count += 1
    return count / (time.perf_counter() - begun)


def program(root: Path, model: Path, film: Path, *, film_too: bool) -> float:
    """The program as a job runs it; what it says of itself, without the start of its processes."""
    place = Path(tempfile.mkdtemp(dir=root))
    for name in ("outputs", "checkpoints"):
        (place / name).mkdir()
    line = {"name": "door", "points": [[0, 0.5], [1, 0.5]]}
    (place / "params.json").write_text(json.dumps({"film": film_too, "lines": [line]}))
    env = {
        "PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "OMP_NUM_THREADS": "1",
        "AIP_VIDEO": str(film), "AIP_MODEL_DIR": str(model), "AIP_PARAMS": str(place / "params.json"),
        "AIP_OUTPUT_DIR": str(place / "outputs"), "AIP_CHECKPOINT_DIR": str(place / "checkpoints"),
        "AIP_METRICS_FILE": str(place / "metrics.jsonl"), "AIP_CONTROL_FILE": str(place / "control"),
    }  # fmt: skip
    begun = time.time()
    subprocess.run([sys.executable, "-m", "inference.video.watcher"], env=env, check=True, stdout=subprocess.DEVNULL)
    found = json.loads((place / "outputs" / "summary.json").read_text())
    first = (place / "outputs" / "first.jpg").stat().st_mtime
    return float(found["pictures"] / (time.time() - max(first, begun)))


def heavy(folder: Path, width: int) -> Path:
    """The follower with a network of convolutions beside it, so that there is something to compute."""
    clips.follower(folder, SIZE, SIZE // 8)
    graph, rng = load(str(folder / "model.onnx")).graph, np.random.default_rng(0)
    nodes, constants, last, channels = [], [], "images", 3
    for number in range(5):
        out = width * 2 ** min(number, 3)
        constants.append(
            numpy_helper.from_array(rng.normal(0, 0.05, (out, channels, 3, 3)).astype(np.float32), f"w{number}")
        )
        nodes.append(
            helper.make_node(
                "Conv", [last, f"w{number}"], [f"c{number}"], strides=[2, 2], pads=[1, 1, 1, 1], name=f"c{number}"
            )
        )
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"], name=f"r{number}"))
        last, channels = f"r{number}", out
    nodes += [
        helper.make_node("ReduceMean", [last], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Mul", ["mean", "nothing"], ["none"]),
        helper.make_node("Reshape", ["none", "each"], ["added"]),
        helper.make_node("Add", ["own_scores", "added"], ["scores"]),
    ]
    constants += [
        numpy_helper.from_array(np.float32([0]), "nothing"),
        numpy_helper.from_array(np.int64([-1, 1, 1]), "each"),
    ]
    graph.node[-1].output[0] = "own_scores"
    whole = helper.make_graph(
        [*graph.node, *nodes], "heavy", graph.input, graph.output, [*graph.initializer, *constants]
    )
    about = json.loads((folder / "model.json").read_text())
    about["input"]["resize"] = "stretch"
    (folder / "model.json").write_text(json.dumps(about))
    return tiny.write(folder, whole)


def large(film: Path, seconds: float) -> None:
    """The walkers at 1280x720."""
    with av.open(str(film), "w") as out:
        stream = out.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 1280, 720, "yuv420p", 3_000_000
        for number in range(round(seconds * 30)):
            frame = av.VideoFrame.from_ndarray(clips.picture(clips.walkers(number / 30)), format="rgb24")
            out.mux(stream.encode(frame.reformat(1280, 720, format="yuv420p")))
        out.mux(stream.encode(None))


def follow(seeds: int) -> None:
    """The tracker on scenes that no setting was chosen on."""
    for title, scene in (("40 walkers", {"people": 40}), ("18 walkers, every 3rd picture", {"people": 18, "every": 3})):
        scenes = [list(following.scene(10 + seed, **scene)) for seed in range(seeds)]
        found = [following.judged(moments) for moments in scenes]
        spent, count = time.process_time(), 0
        for moments in scenes:
            tracker = Tracker()
            for one in moments:
                tracker.update(one.boxes, one.scores, np.zeros(len(one.boxes), np.int64), one.at)
                count += 1
        each_ms = (time.process_time() - spent) / count * 1000
        mota, idf1 = (sum(getattr(one, name) for one in found) / len(found) for name in ("mota", "idf1"))
        switches = sum(one.switches for one in found)
        print(f"{title}: MOTA {mota:.3f}  IDF1 {idf1:.3f}  switches {switches}  {each_ms:.2f} CPU-ms a picture")


if __name__ == "__main__":
    main()
