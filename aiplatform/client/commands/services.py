"""`aip serve`: inference services."""

from __future__ import annotations

import argparse
import mimetypes
from pathlib import Path
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import lookup, resources
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list, show_one
from aiplatform.client.errors import NOT_FOUND, ClientError
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("model", "model"),
    ("state", "state"),
    ("running", lambda row: output.duration(row.get("running_s"))),
    ("url", "url"),
]

TRIALS: list[Column] = [
    ("version", "model_name"),
    ("mode", "mode"),
    ("%", "percent"),
    ("ready", "ready"),
    ("outcome", lambda row: row["outcome"] or "open"),
    ("requests", lambda row: row["tried"]["requests"]),
    ("failed", lambda row: row["tried"]["failed"]),
    ("p50 ms", lambda row: row["tried"]["p50_ms"]),
    ("p50 ms beside", lambda row: row["beside_figures"]["p50_ms"]),
]
KEYS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("begins with", "prefix"),
    ("a minute", "per_minute"),
    ("opens", "opens"),
    ("last used", "last_used_at"),
]
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
USAGE: list[Column] = [
    ("by", "part"),
    ("name", "name"),
    ("requests", "requests"),
    ("failed", "failed"),
    ("refused", "refused"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    serve = Noun(nouns, parent, "serve", "Inference services.")
    paging(serve.verb("list", service_list, "List services."))
    serve.verb("show", show, "Show one service.").add_argument("service", help="id or name")
    verb = serve.verb("create", create, "Make a service for a model version and start it.")
    verb.add_argument("name", nargs="?", default="", help="the model's when left out")
    verb.add_argument("--model", required=True, help="version id, NAME, or NAME:VERSION")
    resources.options(verb, gpus="cards; 0 serves on the processor")
    verb.add_argument(
        "--share-process", action="store_true", help="with other services of yours that ask the same of the machines"
    )
    verb.add_argument("--wait", action="store_true", help="wait until it answers")
    verb = serve.verb("start", start, "Start a stopped service again.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("--wait", action="store_true", help="wait until it answers")
    verb = serve.verb("update", update, "Answer with another version, without a moment in which it does not answer.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("--model", required=True, help="version id, NAME, or NAME:VERSION")
    verb = serve.verb("try", try_version, "Try another version on a part of the requests.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("--model", required=True, help="version id, NAME, or NAME:VERSION")
    verb.add_argument("--mode", choices=["canary", "ab", "shadow"], default="canary")
    verb.add_argument("--percent", type=int, default=10, help="of the requests")
    verb = serve.verb("part", part, "Give the version that is tried another part of the requests.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("percent", type=int)
    for name, act, about in (
        ("promote", promote, "Let the version that is tried answer all requests."),
        ("rollback", roll_back, "Stop the version that is tried."),
        ("trials", trial_list, "What was tried, with the figures of both versions."),
    ):
        serve.verb(name, act, about).add_argument("service", help="id or name")
    verb = serve.verb("usage", usage, "Requests, failures and times by version and by caller.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("--span", choices=["day", "week", "month"], default="day")
    verb = serve.verb("monitoring", monitoring, "What a service is shown, against what its model learned from.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("--span", choices=["day", "week", "month"], default="day")
    keys = serve.verb("keys", key_list, "Keys that open a service without an account.")
    keys.add_argument("service", help="id or name")
    verb = serve.verb("key", key_new, "Make a key; its secret is printed once.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("name", help="who gets it")
    verb.add_argument("--per-minute", type=int, help="most requests; else as the service has it")
    verb.add_argument("--days", type=int, help="how long it is good for; else it never expires")
    verb = serve.verb("revoke", key_revoke, "End a key.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("key", help="id or name")
    verb = serve.verb(
        "limit",
        limit,
        "How many servers a service has, and what it allows its callers.",
    )
    verb.add_argument("service", help="id or name")
    for name, about in LIMITS.items():
        verb.add_argument(f"--{name.replace('_', '-')}", type=int, help=about)
    verb.add_argument(
        "--share-process", action=argparse.BooleanOptionalAction, help="with other services, from its next start"
    )
    serve.verb("stop", stop, "Stop a service; it can be started again.").add_argument("service", help="id or name")
    verb = serve.verb("predict", predict, "Send an image, print the answer as JSON.")
    verb.add_argument("service", help="id or name")
    verb.add_argument("image", type=Path)
    verb.add_argument(
        "--min-score", type=float, help="lowest score of an answer; left out: the best of its newest evaluation"
    )


def service_list(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("services/", limit=args.limit), COLUMNS, empty="No services yet.")


def show(args: argparse.Namespace) -> None:
    show_one(args, lookup.service(args.client, args.service), COLUMNS)


def create(args: argparse.Namespace) -> None:
    fields: dict[str, Any] = {
        "name": args.name,
        "model_version": lookup.model_version(args.client, args.model),
    }
    fields |= resources.fields(args)
    if args.share_process:
        fields["share_process"] = True
    row = args.client.post("services/", fields, once=True)
    if not args.json and not args.wait:
        print(row["id"])
    _ready(args, row)


def start(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    _ready(args, args.client.post(f"services/{row['id']}/start/"))


def update(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    fields = {"model_version": lookup.model_version(args.client, args.model)}
    row = args.client.post(f"services/{row['id']}/model/", fields)
    said = "It changes once the other model answers." if row["next_version"] else f"It answers with {row['model']}."
    done(args, row, said)


def try_version(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    fields = {
        "model_version": lookup.model_version(args.client, args.model),
        "mode": args.mode,
        "percent": args.percent,
    }
    made = args.client.post(f"services/{row['id']}/trial/", fields)
    done(args, made, f"{made['model_name']} gets its part of the requests once it answers.")


def part(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    made = args.client.call("PATCH", f"services/{row['id']}/trial/", body={"percent": args.percent})
    done(args, made, f"{made['model_name']} gets {made['percent']} % of the requests.")


def promote(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    made = args.client.post(f"services/{row['id']}/promote/")
    done(args, made, f"{made['model_name']} answers all requests.")


def roll_back(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    made = args.client.post(f"services/{row['id']}/roll-back/")
    done(args, made, f"{made['beside']} answers all requests.")


def trial_list(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    show_list(args, args.client.get(f"services/{row['id']}/trials/"), TRIALS, empty="Nothing was tried yet.")


def usage(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    found = args.client.get(f"services/{row['id']}/usage/", span=args.span)
    lines = [
        {"part": part, "name": name, **figures}
        for part in ("versions", "callers", "keys")
        for name, figures in found[part].items()
    ]
    show_list(args, found if args.json else lines, USAGE, empty="Nobody asked it within this time.")


def monitoring(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    found = args.client.get(f"services/{row['id']}/monitoring/", span=args.span)
    columns: list[Column] = [("what", "name"), ("index", "value"), ("change", "change")]
    show_list(args, found if args.json else found["drifts"], columns)


def key_list(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    show_list(args, args.client.get(f"services/{row['id']}/keys/"), KEYS, empty="No keys yet.")


def key_new(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    fields = {"name": args.name, "per_minute": args.per_minute, "days": args.days}
    made = args.client.post(f"services/{row['id']}/keys/", fields)
    if not args.json:
        print(made["secret"])
    done(args, made, "It cannot be shown again.")


def key_revoke(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    rows = args.client.get(f"services/{row['id']}/keys/")
    found = [key for key in rows if args.key in (str(key["id"]), key["name"]) and key["opens"]]
    if not found:
        raise ClientError(f"{row['name']} has no key {args.key!r} that opens it.", NOT_FOUND)
    args.client.call("DELETE", f"services/{row['id']}/keys/{found[0]['id']}/")
    done(args, found[0], f"Key {found[0]['name']} is revoked.")


def limit(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    limits = {name: getattr(args, name) for name in LIMITS if getattr(args, name) is not None}
    body: dict[str, Any] = {"limits": limits} if limits else {}
    if args.share_process is not None:
        body["share_process"] = args.share_process
    if body:
        row = args.client.call("PATCH", f"services/{row['id']}/", body=body)
    show_list(args, [{"limit": name, "is": row["limits"][name]} for name in LIMITS], [("limit", "limit"), ("is", "is")])


def _ready(args: argparse.Namespace, row: Any) -> None:
    if not args.wait:
        done(args, row, f"Service {row['id']} is starting.")
        return
    row = waiting.until_over(args.client, f"services/{row['id']}/", until={"ready"})
    if waiting.state_of(row) != "ready":
        raise waiting.ended_early(row)
    show_one(args, row, COLUMNS)


def stop(args: argparse.Namespace) -> None:
    row = lookup.service(args.client, args.service)
    done(args, args.client.post(f"services/{row['id']}/stop/"), f"Asked to stop service {row['id']}.")


def predict(args: argparse.Namespace) -> None:
    if not args.image.is_file():
        raise ClientError(f"{args.image} is not a file.", NOT_FOUND)
    row = lookup.service(args.client, args.service)
    kind = mimetypes.guess_type(args.image.name)[0] or "application/octet-stream"
    score = args.min_score
    if score is None:
        whole = row if "best_score" in row else args.client.get(f"services/{row['id']}/")
        score = whole.get("best_score")
        if score is not None:
            output.say(f"Answers from a score of {score:g} on, the best of the newest evaluation of its model.")
    answer = args.client.open(
        "POST",
        f"/serve/{row['slug']}/predict{'' if score is None else f'?score_threshold={score:g}'}",
        data=args.image.read_bytes(),
        headers={"Content-Type": kind},
    )
    try:
        output.as_json(answer.json())
    finally:
        answer.close()
