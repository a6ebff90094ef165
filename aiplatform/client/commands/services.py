"""`aip serve`: endpoints of models."""

from __future__ import annotations

import argparse
import mimetypes
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, resources
from aiplatform.client.errors import NOT_FOUND, ClientError
from aiplatform.client.options import LIMIT, YES, fields, flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done, show_list, show_one

COLUMNS = columns("id, name, model, state, running=running_s|duration, url")
TRIALS = columns(
    "version=model_name, mode, %=percent, ready, result=outcome|outcome, requests=tried.requests, "
    "failed=tried.failed, p50 ms=tried.p50_ms, p50 ms current=beside_figures.p50_ms",
    outcome=lambda outcome: outcome or "open",
)
KEYS = columns("id, name, starts with=prefix, per minute=per_minute, opens, last used=last_used_at")
USAGE = columns("by=part, name, requests, failed, refused, p50 ms=p50_ms, p99 ms=p99_ms")
DRIFTS = columns("what=name, index=value, change")
LIMITS = {
    "min_replicas": "minimum replicas; 0: scale to zero",
    "max_replicas": "maximum replicas",
    "queue_ms": "add a replica when the p95 wait time is longer",
    "keep_percent": "images stored for annotation at random, in percent",
    "keep_below": "images stored with a lower confidence, in percent",
    "keep_differing": "images stored when a shadow model agrees less, in percent; 0: none",
    "keep_days": "days until stored images are removed",
    "idle_minutes": "idle minutes before it scales to zero",
    "per_minute": "requests per minute and client; 0: unlimited",
    "max_body_mib": "maximum request size in MiB",
    "request_batch": "images or samples per request",
    "max_answer_mib": "maximum response size in MiB",
    "deadline_s": "maximum response time in seconds",
}
SERVICE = option("service", find=lookup.service, help="id or name")
MODEL = option("--model", required=True, field="model_version", find=lookup.model_version,
               help="version id, NAME, or NAME:VERSION")  # fmt: skip
SPAN = option("--span", choices=["day", "week", "month"], default="day")
WAIT = flag("--wait", field="", help="wait until it responds")
LIMIT_OPTIONS = tuple(
    option(f"--{name.replace('_', '-')}", type=int, field=name, help=help) for name, help in LIMITS.items()
)


def _print_new(args: argparse.Namespace, row: Any) -> None:
    if not args.json and not args.wait:
        print(row["id"])
    _print_ready(args, row)


def _print_ready(args: argparse.Namespace, row: Any) -> None:
    if not args.wait:
        done(args, row, f"Endpoint {row['id']} is starting.")
        return
    row = waiting.until_over(args.client, f"services/{row['id']}/", until={"ready"})
    if waiting.state_of(row) != "ready":
        raise waiting.ended_early(row)
    show_one(args, row, COLUMNS)


def _describe_update(args: argparse.Namespace, row: Any) -> str:
    return (
        "The model is changed when the new one responds."
        if row["next_version"]
        else f"The endpoint serves {row['model']}."
    )


def _usage_rows(usage: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"part": part, "name": name, **values}
        for part in ("versions", "callers", "keys")
        for name, values in usage[part].items()
    ]


def _print_usage(args: argparse.Namespace, usage: Any) -> None:
    output.table(_usage_rows(usage), USAGE, empty="No requests in this period.")


def _revoke_key(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    rows = args.client.get(f"services/{row['id']}/keys/")
    key = next((key for key in rows if args.key in (str(key["id"]), key["name"]) and key["opens"]), None)
    if key is None:
        raise ClientError(f"{row['name']} has no valid key {args.key!r}.", NOT_FOUND)
    args.client.call("DELETE", f"services/{row['id']}/keys/{key['id']}/")
    done(args, key, f"Key {key['name']} is revoked.")


def _limit(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    limits = fields(args, LIMIT_OPTIONS)
    body: dict[str, Any] = {"limits": limits} if limits else {}
    if args.share_process is not None:
        body["share_process"] = args.share_process
    if body:
        row = args.client.call("PATCH", f"services/{row['id']}/", body=body)
    show_list(args, [{"limit": name, "is": row["limits"][name]} for name in LIMITS], columns("limit, is"))


def _predict(args: argparse.Namespace) -> None:
    if not args.image.is_file():
        raise ClientError(f"{args.image} is not a file.", NOT_FOUND)
    row = lookup.service(args.client, args.service)
    kind = mimetypes.guess_type(args.image.name)[0] or "application/octet-stream"
    score = args.min_score
    if score is None:
        details = row if "best_score" in row else args.client.get(f"services/{row['id']}/")
        score = details.get("best_score")
        if score is not None:
            output.say(
                f"Predictions with a confidence of at least {score:g}, the best threshold of the newest "
                "evaluation of its model."
            )
    response = args.client.open(
        "POST",
        f"/serve/{row['slug']}/predict{'' if score is None else f'?score_threshold={score:g}'}",
        data=args.image.read_bytes(),
        headers={"Content-Type": kind},
    )
    try:
        output.as_json(response.json())
    finally:
        response.close()


NOUNS = {
    "serve": (
        Verb("list", "List endpoints.", (LIMIT,), get="services/", table=COLUMNS, empty="No endpoints yet."),
        Verb("show", "Show one endpoint.", (SERVICE,),
             run=lambda args: show_one(args, lookup.service(args.client, args.service), COLUMNS)),
        Verb("create", "Create an endpoint for a model version and start it.", (
            option("name", nargs="?", default="", help="default: that of the model"),
            MODEL,
            *resources.options("GPUs; 0 serves on the CPU"),
            flag("--share-process", default=None,
                 help="share a process with your other endpoints with the same resources"),
            WAIT,
        ), post="services/", once=True, finish=_print_new),
        Verb("start", "Start a stopped endpoint.", (SERVICE, WAIT),
             post="services/{service}/start/", finish=_print_ready),
        Verb("update", "Change the model version of an endpoint without interruption.", (SERVICE, MODEL),
             post="services/{service}/model/", done=_describe_update),
        Verb("try", "Start a rollout of another version to a share of the requests.", (
            SERVICE, MODEL,
            option("--mode", choices=["canary", "ab", "shadow"], default="canary"),
            option("--percent", type=int, default=10, help="of the requests"),
        ), post="services/{service}/trial/", done=("{row[model_name]} gets its share of the requests when it is "
                                                  "ready.")),
        Verb("part", "Change the share of a rollout.",
             (SERVICE, option("percent", type=int)),
             patch="services/{service}/trial/", done="{row[model_name]} gets {row[percent]} % of the requests."),
        Verb("promote", "Promote a rollout to all requests.", (SERVICE,),
             post="services/{service}/promote/", done="{row[model_name]} serves all requests."),
        Verb("rollback", "Roll back a rollout.", (SERVICE,),
             post="services/{service}/roll-back/", done="{row[beside]} serves all requests."),
        Verb("trials", "List rollouts with the metrics of both versions.", (SERVICE,),
             get="services/{service}/trials/", table=TRIALS, empty="No rollouts yet."),
        Verb("usage", "Requests, failures and latency by version and client.", (SERVICE, SPAN),
             get="services/{service}/usage/", show=_print_usage),
        Verb("monitoring", "Data drift of an endpoint, compared with the training data of its model.", (SERVICE, SPAN),
             get="services/{service}/monitoring/",
             show=lambda args, monitoring: output.table(monitoring["drifts"], DRIFTS)),
        Verb("keys", "API keys of an endpoint.", (SERVICE,),
             get="services/{service}/keys/", table=KEYS, empty="No keys yet."),
        Verb("key", "Create an API key; its secret is printed once.", (
            SERVICE,
            option("name", help="user of the key"),
            option("--per-minute", type=int, help="maximum requests; default: that of the endpoint"),
            option("--days", type=int, help="validity; default: unlimited"),
        ), post="services/{service}/keys/", prints="secret", done="The key cannot be shown again."),
        Verb("revoke", "Revoke an API key.",
             (option("service", help="id or name"), option("key", help="id or name")), run=_revoke_key),
        Verb("limit", "Change replicas and limits of an endpoint.", (
            option("service", help="id or name"),
            *LIMIT_OPTIONS,
            option("--share-process", action=argparse.BooleanOptionalAction,
                   help="share a process with other endpoints, from the next start"),
        ), run=_limit),
        Verb("stop", "Stop an endpoint; it can be started again.", (SERVICE,),
             post="services/{service}/stop/", done="Requested a stop of endpoint {row[id]}."),
        Verb("delete", "Delete a stopped endpoint.", (SERVICE, YES), delete="services/{service}/",
             confirm="Delete endpoint {args.service}?", done="Deleted endpoint {args.service}."),
        Verb("predict", "Send an image, print the prediction as JSON.", (
            option("service", help="id or name"),
            option("image", type=Path),
            option("--min-score", type=float,
                   help="minimum confidence; default: the best threshold of the newest evaluation"),
        ), run=_predict),
    ),
}  # fmt: skip
