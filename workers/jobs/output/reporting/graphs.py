"""A program's graph as TensorBoard's files hold it (GraphDef), brought to nodes and edges. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from workers.jobs.output.reporting import protobuf

MAX_NODES, MAX_INPUTS = 4000, 40
LONGEST_NAME, LONGEST_OP = 300, 80
_OUTPUT = re.compile(r":\d+\Z")  # which output of a node is meant


def parsed(graph: memoryview) -> tuple[dict[str, Any], bytes] | None:
    """Facts of a graph and its JSON, {"nodes": [[name, op, [number of an input]]]}; None without nodes.

    Raises:
        Malformed: these bytes are no graph.
    """
    rows: list[tuple[str, str, list[str]]] = []
    total = 0
    for number, kind, value in protobuf.fields(graph):
        if number == 1 and kind == protobuf.BYTES:
            total += 1
            if len(rows) < MAX_NODES:
                rows.append(_node(value))
    if not rows:
        return None
    places = {name: index for index, (name, _op, _inputs) in enumerate(rows)}
    nodes = [
        [
            name,
            op,
            [places[input_name] for input_name in inputs if input_name in places and places[input_name] != index],
        ]
        for index, (name, op, inputs) in enumerate(rows)
    ]
    return {"nodes": total, "shown": len(rows)}, json.dumps({"nodes": nodes}, separators=(",", ":")).encode()


def _node(message: memoryview) -> tuple[str, str, list[str]]:
    name = op = ""
    inputs: list[str] = []
    for number, kind, value in protobuf.fields(message):
        if kind != protobuf.BYTES:
            continue
        if number == 1:
            name = protobuf.text(value, LONGEST_NAME)
        elif number == 2:
            op = protobuf.text(value, LONGEST_OP)
        elif number == 3 and len(inputs) < MAX_INPUTS:
            inputs.append(_OUTPUT.sub("", protobuf.text(value, LONGEST_NAME).lstrip("^")))
    return name, op, inputs
