"""`aip api`: any request of the API, for what has no verb."""

from __future__ import annotations

import argparse
import json
from typing import Any

from aiplatform.client import output
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.http import API
from aiplatform.client.options import option, pairs, read_text, repeated
from aiplatform.client.verbs import Verb


def _call(args: argparse.Namespace) -> None:
    route = args.route if args.route.startswith(API) else args.route.lstrip("/")
    values = pairs(args.field, option="--field")
    if args.method in ("get", "delete"):
        row = args.client.call(args.method.upper(), route, query=values)
    else:
        row = args.client.call(args.method.upper(), route, body=(_read(args.body) if args.body else {}) | values)
    output.as_json(row)


def _read(path: str) -> dict[str, Any]:
    try:
        body = json.loads(read_text(path))
    except ValueError as exc:
        raise ClientError(f"{path} is not valid JSON: {exc}", USAGE) from exc
    if not isinstance(body, dict):
        raise ClientError(
            f"{path} does not contain a JSON object. Write the fields of the request as an object.", USAGE
        )
    return body


NOUNS = {
    "api": Verb("api", "Send a request to the API and print the response as JSON.", (
        option("method", choices=["get", "post", "patch", "put", "delete"]),
        option("route", help="path below /api/v1/, such as jobs/12/events/"),
        repeated("-f", "--field", metavar="NAME=VALUE", help="parameter of get and delete, field of other requests"),
        option("--body", metavar="FILE", help="fields as JSON; - reads standard input"),
    ), run=_call, example="aip api get jobs/ -f state=running"),
}  # fmt: skip
