"""Small files of weights."""

from __future__ import annotations

import json
import struct


def safetensors_file(tmp_path, header, data=b""):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def tensor(begin, end, shape):
    return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
