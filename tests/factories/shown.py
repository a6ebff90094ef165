"""Media of a run, as a program would have shown them."""

from __future__ import annotations

import io
import json
import math
import wave
from collections.abc import Iterable

from PIL import Image

from workers.core.models import Job
from workers.jobs.output import media
from workers.jobs.output.reporting import histograms
from workers.jobs.output.reporting.harvest import Shown

AT = 1.7e9
#: A page as Plotly writes it: its script draws, and it tries to read a cookie.
FIGURE = b"""<html><body><p id="drawn"></p><script>
document.getElementById("drawn").textContent = "drawn";
try { document.cookie; document.title = "read" } catch { document.title = "refused" }
document.body.append(document.title);
</script></body></html>"""


def png(colour: str = "red", size: tuple[int, int] = (8, 4)) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", size, colour).save(made, "PNG")
    return made.getvalue()


def gif() -> bytes:
    made = io.BytesIO()
    frames = [Image.new("RGB", (32, 32), color) for color in ("red", "green", "blue")]
    frames[0].save(made, "GIF", save_all=True, append_images=frames[1:], duration=100, loop=0)
    return made.getvalue()


def wav(seconds: float = 0.1) -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(2 * int(8000 * seconds)))
    return made.getvalue()


def show(job: Job, shown: Iterable[Shown]) -> None:
    """Keep what a program shows, as if its files had been read."""
    media.save(media.prepare(job.attempts.get(number=job.attempt_number), shown))


def everything(job: Job, steps: int = 5) -> None:
    """Something of each kind."""
    for step in range(steps):
        counts = [math.exp(-((bucket - 15 - step) ** 2) / 20) * 1000 for bucket in range(30)]
        show(job, [
            Shown("image", "samples", step, AT + step, {}, png("teal" if step % 2 else "orange", (320, 200))),
            Shown("histogram", "layer1/weight", step, AT + step, histograms.from_buckets(-3, 3, counts) or {}),
            Shown("text", "notes", step, AT + step, {"text": f"# Step {step}\nall well", "cut": False}),
        ])  # fmt: skip
    names = ("net/input", "net/fc1/weight", "net/fc1/mul", "net/relu", "net/fc2/weight", "net/fc2/mul")
    inputs = ([], [], [0, 1], [2], [], [3, 4])
    ops = ("Input", "Parameter", "MatMul", "Relu", "Parameter", "MatMul")
    nodes = [list(node) for node in zip(names, ops, inputs, strict=True)]
    table = {"columns": ["file", "loss"], "rows": [["a.png", 0.5], ["b.png", None]]}
    dots = {"points": [[math.cos(i), math.sin(i)] for i in range(60)], "labels": ["cat", "dog", "fox"] * 20}
    show(job, [
        Shown("graph", "model", 0, AT, {"nodes": 6, "shown": 6}, json.dumps({"nodes": nodes}).encode()),
        Shown("figure", "confusion", 3, AT, {"format": "html"}, FIGURE),
        Shown("audio", "speech", 3, AT, {"format": "wav"}, wav()),
        Shown("video", "rollout", 3, AT, {"format": "gif"}, gif()),
        Shown("table", "worst", 3, AT, {"columns": 2, "rows": 2, "shown": 2}, json.dumps(table).encode()),
        Shown("vectors", "last layer", 3, AT, {"vectors": 60, "shown": 60, "width": 8, "shares": [0.5, 0.2]},
              json.dumps(dots).encode()),
        Shown("params", "hparams", 0, AT, {"values": {"lr": 0.1, "api_key": "hf_secret", "nesterov": True}}),
    ])  # fmt: skip
