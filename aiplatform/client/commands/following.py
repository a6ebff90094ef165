"""`aip follow`, `aip arrays`, and the options by which a job follows others and is retried."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.commands.verbs import Noun, Nouns, Parent, command, done, paging, show_list, show_one
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", "name"),
    ("indices", "indices"),
    ("owner", "owner"),
    ("cluster", "cluster"),
    ("states", lambda row: ", ".join(f"{number} {state}" for state, number in sorted(row["states"].items()))),
]


def options(verb: argparse.ArgumentParser) -> None:
    """The options of a submitting command."""
    _jobs(verb)
    verb.add_argument("--retries", type=int, metavar="N", help="start it again up to N times where it fails")
    verb.add_argument("--retry-pause", type=int, metavar="S", help="seconds before the first retry (30), then doubled")


def fields(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of a request for what was given."""
    given = {**_followed(args), "retries": args.retries, "retry_pause_s": args.retry_pause}
    return {name: value for name, value in given.items() if value not in (None, [])}


def add(nouns: Nouns, parent: Parent) -> None:
    verb = command(nouns, parent, "follow", follow, "Let a waiting job follow these jobs, and no others.")
    verb.add_argument("id", type=int)
    _jobs(verb)
    arrays = Noun(nouns, parent, "arrays", "Arrays of jobs.")
    paging(arrays.verb("list", array_list, "List arrays, newest first."))
    arrays.verb("show", array_show, "Show one array.").add_argument("id", type=int)
    arrays.verb("stop", array_stop, "Stop all of its jobs that have not ended.").add_argument("id", type=int)


def follow(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.id}/follow/", _followed(args))
    numbers = ", ".join(str(one["id"]) for one in row["follows"])
    done(args, row, f"Job {args.id} follows {numbers} now." if numbers else f"Job {args.id} follows no job now.")


def array_list(args: argparse.Namespace) -> None:
    show_list(args, args.client.pages("arrays/", limit=args.limit), COLUMNS, empty="No arrays.")


def array_show(args: argparse.Namespace) -> None:
    show_one(args, args.client.get(f"arrays/{args.id}/"), COLUMNS)


def array_stop(args: argparse.Namespace) -> None:
    answer = args.client.post(f"arrays/{args.id}/stop/")
    done(args, answer, f"Asked {answer['requested']} jobs of array {args.id} to stop.")


def _jobs(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--after", type=int, action="append", metavar="ID", help="a job that has to complete first")
    verb.add_argument("--after-end", type=int, action="append", metavar="ID", help="a job that has to end first")
    verb.add_argument("--outputs-of", type=int, action="append", metavar="ID", help="a job whose outputs it reads")


def _followed(args: argparse.Namespace) -> dict[str, list[int]]:
    return {"after": args.after or [], "after_end": args.after_end or [], "outputs_of": args.outputs_of or []}
