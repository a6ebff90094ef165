"""`aip login`, `logout`, `whoami`, `token`: the user and the platform."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from typing import Any

from aiplatform.client import config, output
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import flag, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, done, show_one

FROM_STDIN = "-"


def _login(args: argparse.Namespace) -> None:
    platform = config.load(args.address or args.url)
    if args.token:
        token = sys.stdin.readline().strip() if args.token == FROM_STDIN else args.token
    else:
        token = _request_token(platform, args, name=f"aip on {os.uname().nodename}")["token"]
    client = Client(config.Config(platform.url, token))
    me = client.get("me/")
    config.save(platform.url, token)
    done(args, me, f"Signed in to {platform.url} as {output.clean(me.get('username', ''))}.")


def _request_token(platform: config.Config, args: argparse.Namespace, **settings: Any) -> Any:
    """Get a new token for a name and a password."""
    interactive = sys.stdin.isatty()
    if not args.username and not interactive:
        raise ClientError("Specify --username, and --password-stdin with the password on standard input.", USAGE)
    username = args.username or _prompt("Username: ")
    if args.password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif interactive:
        password = getpass.getpass("Password: ")
    else:
        raise ClientError("Specify --password-stdin and the password on standard input.", USAGE)
    client, fields = Client(config.Config(platform.url, "")), {"username": username, "password": password, **settings}
    if args.code:
        fields["code"] = args.code
    try:
        return client.post("auth/token/", fields)
    except ClientError as exc:
        if exc.code != "second_factor_needed" or args.code or not interactive:
            raise
    return client.post("auth/token/", fields | {"code": _prompt("Code of the second factor: ")})


def _prompt(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def _logout(args: argparse.Namespace) -> None:
    done(args, {}, "The stored token is deleted." if config.forget() else "No stored token.")


def _token(args: argparse.Namespace) -> None:
    scope = "read" if args.read_only else "write"
    row = _request_token(config.load(args.url), args, name=args.name[:50], days=args.days, scope=scope)
    if args.json:
        output.as_json(row)
    else:
        print(row["token"])
        output.say("Store it now: it is not shown again.")


def _whoami(args: argparse.Namespace) -> None:
    me = args.client.get("me/")
    show_one(args, me, [*FIELDS, ("Platform", lambda row: args.client.config.url)])


FIELDS = columns("Username=username, Nickname=nickname, Roles=roles|joined")
USERNAME = option("--username", help="prompted for if omitted")
PASSWORD = flag("--password-stdin", help="read the password from standard input")
CODE = option("--code", help="code of the second factor; prompted for if required")

NOUNS = {
    "login": Verb("login", "Sign in and store a token for this address.", (
        option("address", nargs="?", help=f"address of the platform ({config.DEFAULT_URL})"),
        USERNAME, PASSWORD, CODE,
        option("--token", help="use this token instead of a password; - reads it from standard input"),
    ), run=_login),
    "logout": Verb("logout", "Delete the stored token.", run=_logout),
    "whoami": Verb("whoami", "Show the signed-in user.", run=_whoami),
    "token": Verb("token", "Create a token for a script; it is printed once.", (
        option("name", help="name of the token"),
        option("--days", type=int, default=90, help="days until it expires (90)"),
        CODE,
        flag("--read-only", help="read-only token"),
        USERNAME, PASSWORD,
    ), run=_token),
}  # fmt: skip
