"""Open a file or a stream for FFmpeg, which gets to see nothing but this one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import av

#: What files may be. Lists of other files (HLS, DASH, concat) are not among them: they lead elsewhere.
FILES = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,mxf,h264,hevc,ivf,m4v,mjpeg"


class Refused(Exception):
    """The source is not opened; the message is for people. `final`: nor will it be a moment later."""

    def __init__(self, said: str, *, final: bool = True) -> None:
        super().__init__(said)
        self.final = final


@contextmanager
def opened(order: Mapping[str, Any]) -> Iterator[Any]:
    """Open what is asked for."""
    options = {"protocol_whitelist": "file", "format_whitelist": FILES}
    with av.open(order["source"], options=options) as container:
        yield container
