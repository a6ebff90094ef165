"""Parsers of files and answers of foreign programs: models, images of containers, logs, results of jobs."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import Any

from inference.evaluation import script_metrics
from inference.kit.models import model_json, oip
from inference.registry.formats import foreign_metadata, onnx, safetensors
from tests.growth.parsers_text import JSON
from tests.growth.registry import JOB, Parser, encoded, numbered, register, repeated
from tests.inference import tiny
from workers.images.containers import manifests, reference
from workers.jobs.output import causes
from workers.jobs.output.reporting import csv_files, json_lines
from workers.supervisor import log_lines, secrecy

FOLDER = Path(tempfile.mkdtemp(prefix="growth-"))


def field(number: int, content: bytes | int) -> bytes:
    """Encode one field of Protocol Buffers."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def model(*graph: bytes) -> bytes:
    return field(1, 8) + field(7, b"".join(graph))


def nested(size: int) -> bytes:
    """Graphs in graphs, each with the names of those around it."""
    inner = b""
    for depth in range(onnx.MAX_DEPTH):
        names = b"".join(field(11, field(1, b"%d-%d" % (depth, n))) for n in range(size // 160))
        attribute = field(6, inner) if inner else b""
        inner = names + field(1, field(5, attribute))
    return model(inner)


def tensors(shape: str, count: int, after: str = "") -> bytes:
    entry = f'{{"dtype":"F32","shape":[{shape}],"data_offsets":[0,0]}}'
    header = ("{" + ",".join(f'"{number}":{entry}' for number in range(count)) + after + "}").encode()
    return struct.pack("<Q", len(header)) + header


def of_file(name: str, inspect: Any) -> Any:
    def parse(data: bytes) -> object:
        path = FOLDER / name
        path.write_bytes(data)
        return inspect(path)

    return parse


ONNX = {
    "fields": lambda size: field(1, 8) * (size // 2),
    "nodes": lambda size: model(field(1, field(4, b"Add")) * (size // 9)),
    "tensors": lambda size: model(field(5, field(8, b"w")) * (size // 7)),
    "dimensions": lambda size: model(field(5, field(1, (1 << 62) - 1) * (size // 10))),
    "packed dimensions": lambda size: model(field(5, field(1, b"\x7f" * size))),
    "inputs": lambda size: model(field(11, field(1, b"x")) * (size // 5)),
    "dimensions of an input": lambda size: model(field(11, field(2, field(1, field(2, field(1, b"") * (size // 2)))))),
    "graphs in graphs": nested,
    "metadata": lambda size: model() + field(14, field(1, b"k") + field(2, b"v")) * (size // 8),
    "long name": lambda size: model(field(11, field(1, b"a" * size))),
    "operators": lambda size: model(b"".join(field(1, field(4, b"%06d" % n)) for n in range(size // 10))),
}
CLASSIFIER = (tiny.classifier(FOLDER / "classifier") / "model.json").read_bytes()
DIGEST = "sha256:" + "a" * 64
MANIFEST = f'{{"config":{{"digest":"{DIGEST}","size":1}},"layers":[]}}'.encode()
LAYERS = repeated(f'{{"digest":"{DIGEST}","size":1}},', '{"config":{},"layers":[', "{}]}")
INFERENCE = '{"inputs":[{"name":"x","datatype":"FP32",'
LINES = ("CUDA error: ", "CUDA error: MPS ", "DataLoader worker ", "/sh", "/a/", "sh: ", "OSError: [Errno 1] ",
         "[rank0]: ", "a\n", "a: line 1: ", ": ", "a.sh: ", " ")  # fmt: skip
LITERALS = {"lists": repeated("["), "signs": repeated("-", "", "1"), "sum": repeated("1+", "", "1j"),
            "digits": repeated("9"), "items": repeated("1,", "[", "]"), "text": repeated("a", "'", "'"),
            "table": numbered("{}:'a',", "{", "}"), "underscores": repeated("1_", "", "1")}  # fmt: skip

register(
    Parser(
        "ONNX",
        of_file("model.onnx", onnx.inspect),
        ONNX,
        20 << 30,
        ("inference.registry.formats.onnx", "inference.registry.formats.protobuf"),
        model(field(1, field(4, b"Add"))),
        runs_in=JOB,
    )
)
register(
    Parser(
        "safetensors",
        of_file("model.safetensors", safetensors.inspect),
        {
            "dimensions": lambda size: tensors(",".join(["2305843009213693951"] * (size // 20)) + ",0", 1),
            "tensors": lambda size: tensors("0", size // 60),
            "digits": lambda size: tensors("9" * size, 1),
            "long numbers": lambda size: tensors(",".join(["9" * 4000] * (size // 4000)), 1),
            "depth": lambda size: struct.pack("<Q", size) + b"[" * size,
        },
        safetensors.MAX_HEADER_BYTES,
        ("inference.registry.formats.safetensors", "inference.registry.formats.shapes"),
        tensors("0", 1),
        runs_in=JOB,
    )
)
register(
    Parser(
        "literals in models",
        foreign_metadata._literal,
        LITERALS,
        onnx.MAX_METADATA_BYTES,
        ("inference.registry.formats.foreign_metadata",),
        "[1]",
        runs_in=JOB,
    )
)
register(
    Parser(
        "model.json",
        of_file("model.json", lambda path: model_json.load(path.parent)),
        {
            **encoded(JSON),
            "classes": lambda size: (
                b'{"format":1,"task":"classification","classes":['
                + b",".join(b'{"id":%d,"name":"c%d"}' % (n, n) for n in range(size // 24))
                + b"]}"
            ),
        },
        model_json.MAX_BYTES,
        ("inference.kit.models.model_json",),
        CLASSIFIER,
        runs_in=JOB,
    )
)
register(
    Parser(
        "inference request",
        lambda body: oip.parse(body, None),
        {
            **encoded(JSON),
            **encoded({"data": repeated("1,", f'{INFERENCE}"shape":[1],"data":[', "1]}]}")}),
            **encoded({"shape": repeated("2,", f'{INFERENCE}"data":[1],"shape":[', "1]}]}")}),
        },
        1 << 20,
        ("inference.kit.models.oip",),
        b'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}]}', runs_in=JOB)
)  # fmt: skip
register(
    Parser(
        "figures of own code",
        script_metrics.read,
        {**encoded(JSON), **encoded({"figures": numbered('"k{}":1.5,', "{", '"z":0}')})},
        script_metrics.MAX_BYTES,
        ("inference.evaluation.script_metrics",),
        b'{"a": 1}',
        runs_in=JOB,
    )
)
register(
    Parser(
        "manifest of an image",
        lambda text: manifests.read(text, "host"),
        {
            **encoded(JSON),
            **encoded({"layers": LAYERS}),
        },
        4 << 20,
        ("workers.images.containers.manifests",), MANIFEST, runs_in=JOB)
)  # fmt: skip
register(
    Parser(
        "reference of an image",
        reference.parse,
        {"letters": repeated("a"), "dots": repeated("a."), "dashes": repeated("-", "a"), "folders": repeated("a/"),
         "underscores": repeated("a_"), "odd end": repeated("a", "", "!"), "tags": repeated("a:")},
        10_000,
        ("workers.images.containers.reference",), 'docker.io/library/python:3')
)  # fmt: skip
register(
    Parser(
        "causes in a log",
        causes.in_text,
        {name: repeated(name) for name in LINES},
        causes.MAX_READ_BYTES,
        ("workers.jobs.output.causes",), 'a')
)  # fmt: skip
register(
    Parser(
        "line of a log",
        log_lines.read,
        {"facts": numbered(" k=v", "[job] code"), "open text": repeated("a", '[job] code k="'),
         "backslashes": repeated("\\\\", '[job] code k="'), "quotes": repeated('"', "[job] code k=")},
        1 << 20,
        ("workers.supervisor.log_lines",), '[job] code k=v')
)  # fmt: skip
register(
    Parser(
        "masked log",
        lambda data: secrecy.masked(data, ["secret" + "a" * 20, "b" * 30]),
        encoded({"tokens": repeated("aip_"), "letters": repeated("a"), "beginnings": repeated("secretaaaa"),
                 "whole": repeated("b")}),
        1 << 20,
        ("workers.supervisor.secrecy",), b'a', runs_in=JOB)
)  # fmt: skip
register(
    Parser(
        "CSV of metrics",
        lambda data: [csv_files._cells(line) for line in data.split(b"\n")],
        encoded({"cells": repeated("1,"), "quotes": repeated('"'), "rows": repeated("1,2\n")}),
        csv_files.LONGEST_ROW,
        ("workers.jobs.output.reporting.csv_files",),
        b"1,2",
        runs_in=JOB,
    )
)
register(
    Parser(
        "JSON lines of metrics",
        lambda data: [json_lines.numbers_in(json_lines._object(line)) for line in data.split(b"\n")],
        {**encoded(JSON), **encoded({"rows": numbered('{{"loss{}": 1.5}}\n')})},
        1 << 20,
        ("workers.jobs.output.reporting.json_lines",),
        b'{"a": 1}',
        runs_in=JOB,
    )
)
