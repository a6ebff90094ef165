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
from aiplatform.client.http import Client
from aiplatform.client.nouns import Parser, add_nouns

EPILOG = (
    "Set AIP_URL and AIP_TOKEN, or run `aip login`. Results are written to stdout, messages to "
    "stderr.\nExit codes: 0 done, 1 failed, 2 usage, 4 not signed in, 5 not found, 6 job failed, 130 "
    "interrupted."
)


@functools.cache
def parser() -> Parser:
    """The command line; the verbs of a noun are added when it is used."""
    top = Parser(
        prog="aip",
        description="Work with the platform from a terminal.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_nouns(top)
    return top


DASHED = ("--extra", "--arguments")  # options whose value may begin with a dash


def _with_dashes(argv: Sequence[str]) -> list[str]:
    """Join `--extra -ShowStep` to `--extra=-ShowStep`, which argparse takes for two options otherwise."""
    joined: list[str] = []
    for index, argument in enumerate(argv):
        if argument == "--":  # the user's command follows
            return [*joined, *argv[index:]]
        if joined and joined[-1] in DASHED and argument.startswith("-"):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        args, unknown = parser().parse_known_args(_with_dashes(sys.argv[1:] if argv is None else argv))
        if unknown:
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
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
        output.say("Interrupted. Operations started on the platform continue there.")
        return errors.INTERRUPTED
    except BrokenPipeError:  # `aip … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.OK


if __name__ == "__main__":
    raise SystemExit(main())
