"""Open a file or a stream for FFmpeg, which gets to see nothing but this one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import av
from av.codec.hwaccel import HWAccel

from inference.video.watcher import gate

#: What files may be. Lists of other files (HLS, DASH, concat) are not among them: they lead elsewhere.
FILES = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,mxf,h264,hevc,ivf,m4v,mjpeg"
STREAMS = f"{FILES},mpjpeg"
PROBED = {"probesize": "200000", "analyzeduration": "500000"}  # bytes, microseconds: by default the first takes 3 s
KINDS = {"multipart/x-mixed-replace": "mpjpeg", "video/mp2t": "mpegts", "image/jpeg": "mjpeg", "video/x-flv": "flv"}


@contextmanager
def opened(order: Mapping[str, Any], accel: HWAccel | None = None) -> Iterator[Any]:
    """Open the source of an order.

    Args:
        accel: the device that is to decode, see hardware.py.

    Raises:
        Refused: the address of a stream leads where it may not.
    """
    source = order["source"]
    if not order["is_stream"]:
        options = {"protocol_whitelist": "file", "format_whitelist": FILES}
        with av.open(source, options=options, hwaccel=accel) as container:
            yield container
        return
    route = gate.resolve(source, order["allowed"])
    if route.scheme.startswith("http"):
        body = gate.Body(route)
        options = {"format_whitelist": STREAMS, "protocol_whitelist": "", "fflags": "nobuffer", **PROBED}
        with av.open(body, format=KINDS.get(body.kind), options=options, hwaccel=accel) as container:
            yield container
        return
    login = f"{quote(route.user, safe='')}:{quote(route.password, safe='')}@" if route.user else ""
    address = f"rtsp://{login}127.0.0.1:{gate.Door(route).port}{route.path}"
    options = {
        "rtsp_transport": "tcp", "protocol_whitelist": "rtsp,rtp,tcp", "fflags": "nobuffer", "flags": "low_delay",
        "timeout": str(int(gate.READ_S * 1e6)), **PROBED,
    }  # fmt: skip
    with av.open(address, options=options, hwaccel=accel) as container:
        yield container
