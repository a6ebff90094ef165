"""Decoders of the machine's own hardware: tried where a job may use them, and left where they fail.

FFmpeg decodes on an NVIDIA card that the job was given (cuda), or on a graphics unit below /dev/dri (vaapi, qsv), as
far as it was built for them; what it decodes there is copied back, in a layout of its own. A picture that a device
refuses (a profile, a size) is decoded by the processor without a word, so each source is asked by its first picture.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
from av.codec.hwaccel import HWAccel, hwdevices_available

SOFTWARE = "software"
GRAPHICS, NODES = ("vaapi", "qsv"), Path("/dev/dri")
PROBED = "h264"  # every device that decodes at all decodes this
#: What pictures are in that were copied from a device; processors decode to none of these.
LAYOUTS = ("nv12", "nv16", "nv24", "p010le", "p012le", "p016le", "p210le", "p216le")


class Failed(Exception):
    """A device could not go on: the processor is to decode instead."""


@dataclass(frozen=True)
class Decoder:
    """What decodes: a device, or the processor with the reasons of the devices that were tried, if any."""

    kind: str = SOFTWARE
    accel: HWAccel | None = None
    why: str = ""


def devices(env: Mapping[str, str] = os.environ, nodes: Path = NODES) -> list[str]:
    """Return the kinds of devices that this process may use and FFmpeg was built for."""
    wanted = [] if env.get("CUDA_VISIBLE_DEVICES", "") in ("", "-1") else ["cuda"]
    if any(os.access(node, os.R_OK | os.W_OK) for node in nodes.glob("renderD*")):
        wanted += GRAPHICS
    supported = hwdevices_available()
    return [kind for kind in wanted if kind in supported]


def chosen(kinds: Sequence[str] | None = None) -> Decoder:
    """The first device that opens, else the processor."""
    reasons = []
    for kind in devices() if kinds is None else kinds:
        try:
            HWAccel(kind).create(av.Codec(PROBED, "r"))
        except (av.FFmpegError, OSError, RuntimeError, ValueError) as exc:  # RuntimeError: NotImplementedError is one
            reasons.append(f"{kind}: {getattr(exc, 'strerror', None) or exc}")
        else:
            return Decoder(kind, HWAccel(kind), "; ".join(reasons))
    return Decoder(why="; ".join(reasons))


def decoding(decoder: Decoder, stream: Any, frame: Any) -> str:
    """What has decoded a picture: the device's kind, or SOFTWARE."""
    on_it = decoder.accel is not None and stream.codec_context.is_hwaccel and frame.format.name in LAYOUTS
    return decoder.kind if on_it else SOFTWARE


def decoded(packet: Any, by: str) -> Any:
    """The pictures of a packet.

    Raises:
        Failed: a device could not decode it, for another reason than that it is damaged.
        av.FFmpegError: the processor could not.
    """
    try:
        return packet.decode()
    except av.error.InvalidDataError:
        raise
    except av.FFmpegError as exc:
        if by == SOFTWARE:
            raise
        raise Failed(exc.strerror or type(exc).__name__) from None
