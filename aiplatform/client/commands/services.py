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
    "version=model_name, mode, %=percent, ready, outcome=outcome|outcome, requests=tried.requests, "
    "failed=tried.failed, p50 ms=tried.p50_ms, p50 ms beside=beside_figures.p50_ms",
    outcome=lambda outcome: outcome or "open",
)
KEYS = columns("id, name, begins with=prefix, a minute=per_minute, opens, last used=last_used_at")
USAGE = columns("by=part, name, requests, failed, refused, p50 ms=p50_ms, p99 ms=p99_ms")
DRIFTS = columns("what=name, index=value, change")
LIMITS = {
    "min_replicas": "servers always; 0: none while nobody asks",
    "max_replicas": "servers at most",
    "queue_ms": "one more server where 1 of 20 requests waits longer",
    "keep_percent": "pictures kept for annotation by chance, in percent",
    "keep_below": "pictures kept with an answer of a lower score, in percent",
    "keep_differing": "pictures kept of which the answer of a shadow agrees less, in percent; 0: none",
    "keep_days": "until pictures that a rule kept are removed",
    "idle_minutes": "without a request, until it has no server",
    "per_minute": "requests of one caller in any minute; 0: as often as they like",
    "max_body_mib": "MiB of a request",
    "request_batch": "pictures or samples in one request",
    "max_answer_mib": "MiB of an answer",
    "deadline_s": "seconds until an answer",
}
SERVICE = option("service", find=lookup.service, help="id or name")
MODEL = option("--model", required=True, field="model_version", find=lookup.model_version,
               help="version id, NAME, or NAME:VERSION")  # fmt: skip
SPAN = option("--span", choices=["day", "week", "month"], default="day")
WAIT = flag("--wait", field="", help="wait until it answers")
LIMIT_OPTIONS = tuple(
    option(f"--{name.replace('_', '-')}", type=int, field=name, help=help) for name, help in LIMITS.items()
)


def _print_new(args: argparse.Namespace, row: Any) -> None:
    if not args.json and not args.wait:
        print(row["id"])
    _print_ready(args, row)


def _print_ready(args: argparse.Namespace, row: Any) -> None:
    if not args.wait:
        done(args, row, f"Service {row['id']} is starting.")
        return
    row = waiting.until_over(args.client, f"services/{row['id']}/", until={"ready"})
    if waiting.state_of(row) != "ready":
        raise waiting.ended_early(row)
    show_one(args, row, COLUMNS)


def _describe_update(args: argparse.Namespace, row: Any) -> str:
    return "It changes once the other model answers." if row["next_version"] else f"It answers with {row['model']}."


def _usage_rows(usage: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"part": part, "name": name, **values}
        for part in ("versions", "callers", "keys")
        for name, values in usage[part].items()
    ]


def _print_usage(args: argparse.Namespace, usage: Any) -> None:
    output.table(_usage_rows(usage), USAGE, empty="Nobody asked it within this time.")


def _revoke_key(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    rows = args.client.get(f"services/{row['id']}/keys/")
    key = next((key for key in rows if args.key in (str(key["id"]), key["name"]) and key["opens"]), None)
    if key is None:
        raise ClientError(f"{row['name']} has no key {args.key!r} that opens it.", NOT_FOUND)
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
            output.say(f"Answers from a score of {score:g} on, the best of the newest evaluation of its model.")
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
        Verb("list", "List services.", (LIMIT,), get="services/", table=COLUMNS, empty="No services yet."),
        Verb("show", "Show one service.", (SERVICE,),
             run=lambda args: show_one(args, lookup.service(args.client, args.service), COLUMNS)),
        Verb("create", "Make a service for a model version and start it.", (
            option("name", nargs="?", default="", help="the model's when left out"),
            MODEL,
            *resources.options("cards; 0 serves on the processor"),
            flag("--share-process", default=None,
                 help="with other services of yours that ask the same of the machines"),
            WAIT,
        ), post="services/", once=True, finish=_print_new),
        Verb("start", "Start a stopped service again.", (SERVICE, WAIT),
             post="services/{service}/start/", finish=_print_ready),
        Verb("update", "Answer with another version, without a moment in which it does not answer.", (SERVICE, MODEL),
             post="services/{service}/model/", done=_describe_update),
        Verb("try", "Try another version on a part of the requests.", (
            SERVICE, MODEL,
            option("--mode", choices=["canary", "ab", "shadow"], default="canary"),
            option("--percent", type=int, default=10, help="of the requests"),
        ), post="services/{service}/trial/", done="{row[model_name]} gets its part of the requests once it answers."),
        Verb("part", "Give the version that is tried another part of the requests.",
             (SERVICE, option("percent", type=int)),
             patch="services/{service}/trial/", done="{row[model_name]} gets {row[percent]} % of the requests."),
        Verb("promote", "Let the version that is tried answer all requests.", (SERVICE,),
             post="services/{service}/promote/", done="{row[model_name]} answers all requests."),
        Verb("rollback", "Stop the version that is tried.", (SERVICE,),
             post="services/{service}/roll-back/", done="{row[beside]} answers all requests."),
        Verb("trials", "What was tried, with the figures of both versions.", (SERVICE,),
             get="services/{service}/trials/", table=TRIALS, empty="Nothing was tried yet."),
        Verb("usage", "Requests, failures and times by version and by caller.", (SERVICE, SPAN),
             get="services/{service}/usage/", show=_print_usage),
        Verb("monitoring", "What a service is shown, against what its model learned from.", (SERVICE, SPAN),
             get="services/{service}/monitoring/",
             show=lambda args, monitoring: output.table(monitoring["drifts"], DRIFTS)),
        Verb("keys", "Keys that open a service without an account.", (SERVICE,),
             get="services/{service}/keys/", table=KEYS, empty="No keys yet."),
        Verb("key", "Make a key; its secret is printed once.", (
            SERVICE,
            option("name", help="who gets it"),
            option("--per-minute", type=int, help="most requests; else as the service has it"),
            option("--days", type=int, help="how long it is good for; else it never expires"),
        ), post="services/{service}/keys/", prints="secret", done="It cannot be shown again."),
        Verb("revoke", "End a key.",
             (option("service", help="id or name"), option("key", help="id or name")), run=_revoke_key),
        Verb("limit", "How many servers a service has, and what it allows its callers.", (
            option("service", help="id or name"),
            *LIMIT_OPTIONS,
            option("--share-process", action=argparse.BooleanOptionalAction,
                   help="with other services, from its next start"),
        ), run=_limit),
        Verb("stop", "Stop a service; it can be started again.", (SERVICE,),
             post="services/{service}/stop/", done="Asked to stop service {row[id]}."),
        Verb("delete", "Delete a stopped service.", (SERVICE, YES), delete="services/{service}/",
             confirm="Delete service {args.service}?", done="Deleted service {args.service}."),
        Verb("predict", "Send an image, print the answer as JSON.", (
            option("service", help="id or name"),
            option("image", type=Path),
            option("--min-score", type=float,
                   help="lowest score of an answer; left out: the best of its newest evaluation"),
        ), run=_predict),
    ),
}  # fmt: skip
