"""Parse `aip NOUN VERB …` and run it; refusals become a message and an exit code.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage or values, 4 not signed in, 5 not found,
6 the job that was waited for failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence

from aiplatform.client import config, errors, output
from aiplatform.client.commands import (
    account,
    alarms,
    annotation,
    clusters,
    datasets,
    environments,
    files,
    following,
    images,
    models,
    more_time,
    nodes,
    operations,
    params,
    people,
    pipelines,
    ports,
    predictions,
    pushing,
    queue,
    reports,
    resource_groups,
    running,
    runs,
    secrets,
    services,
    ssh,
    studies,
    templates,
    training,
    videos,
)
from aiplatform.client.http import Client
from aiplatform.client.nouns import NounParser, Parser
from aiplatform.client.nouns import add as add_nouns

NOUNS = (
    account, files, datasets, annotation, training, runs, studies, reports, params, running, templates, images,
    models, services, predictions, pipelines, videos,  pushing, queue, following, environments, secrets, nodes,
    clusters, more_time,  ports, ssh, resource_groups, people, operations, alarms,
)  # fmt: skip

EPILOG = """\
Set AIP_URL and AIP_TOKEN, or run `aip login`. Results go to stdout, words about them to stderr.
Exit codes: 0 done, 1 failed, 2 usage, 4 not signed in, 5 not found, 6 job failed, 130 interrupted."""


def shared() -> argparse.ArgumentParser:
    """Options every verb takes."""
    parent = argparse.ArgumentParser(add_help=False)
    group = parent.add_argument_group("options of every command")
    group.add_argument("--url", default=None, metavar="URL", help="address of the platform")
    group.add_argument("-o", "--output", choices=["table", "json"], default=argparse.SUPPRESS, help="what to print")
    group.add_argument("--json", dest="output", action="store_const", const="json", default=argparse.SUPPRESS)
    return parent


@functools.cache
def parser() -> Parser:
    """The whole command line; made once in a process, as its three hundred verbs take a while."""
    top = Parser(
        prog="aip",
        description="Work with the platform from a terminal.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    nouns = top.add_subparsers(dest="noun", metavar="NOUN", required=True, parser_class=NounParser)
    parent = shared()
    for noun in NOUNS:
        noun.add(nouns, parent)
    add_nouns(nouns)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else errors.USAGE
    args.json = getattr(args, "output", "table") == "json"
    try:
        args.client = Client(config.load(args.url))
        code = args.run(args)
        sys.stdout.flush()
        return int(code or errors.OK)
    except errors.ClientError as exc:
        output.say(exc.message)
        return exc.exit_code
    except KeyboardInterrupt:
        output.say("Interrupted. What was started at the platform goes on there.")
        return errors.INTERRUPTED
    except BrokenPipeError:  # `aip … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.OK


if __name__ == "__main__":
    raise SystemExit(main())
