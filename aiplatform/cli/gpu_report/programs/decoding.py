"""Decodes a video as a video analysis does, on the GPU where FFmpeg can, and then on the CPU. Prints the values.

Arguments: width, height, frames.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import av
import numpy as np
from av.codec.hwaccel import hwdevices_available

from inference.video.watcher import hardware, media_inputs


def write(path: str, width: int, height: int, frames: int) -> None:
    """A moving pattern in H.264."""
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        ramp = np.add.outer(np.arange(height), np.arange(width))
        for number in range(frames):
            pixels = np.stack([(ramp + shift * number) % 256 for shift in (3, 5, 7)], -1).astype(np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels)):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def decode(path: str, decoder: hardware.Decoder) -> tuple[int, float, str]:
    """Number of frames, frames per second, and what decoded them."""
    count, by = 0, ""
    began = time.perf_counter()
    with media_inputs.opened({"source": path, "is_stream": False}, decoder.accel) as container:
        stream: Any = container.streams.video[0]
        for packet in container.demux(stream):
            for frame in hardware.decoded(packet, decoder.kind):
                by = by or hardware.decoding(decoder, stream, frame)
                count += 1
    return count, count / (time.perf_counter() - began), by


def main() -> None:
    width, height, frames = map(int, sys.argv[1:])
    write("clip.mp4", width, height, frames)
    chosen = hardware.chosen()
    count, rate, by = decode("clip.mp4", chosen)
    software, software_rate, _by = decode("clip.mp4", hardware.Decoder())
    values = {
        "decoder": by, "why": chosen.why, "devices": hwdevices_available(),
        "frames_s": rate, "software_frames_s": software_rate, "whole": count == software == frames,
    }  # fmt: skip
    print("result", json.dumps(values), flush=True)


main()
