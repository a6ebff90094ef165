"""`aip login`, `logout`, `whoami`, `token`: the person and the platform."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from typing import Any

from aiplatform.client import config, output
from aiplatform.client.commands.verbs import Nouns, Parent, command, done, show_one
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.http import Client

FROM_STDIN = "-"


def add(nouns: Nouns, parent: Parent) -> None:
    verb = command(nouns, parent, "login", login, "Sign in and keep a token for this address.")
    verb.add_argument("address", nargs="?", help=f"address of the platform ({config.DEFAULT_URL})")
    verb.add_argument("--username", help="asked for when left out")
    verb.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    verb.add_argument("--code", help="code of the second factor; asked for where it is needed")
    verb.add_argument("--token", help="use this token instead of a password; - reads it from standard input")
    command(nouns, parent, "logout", logout, "Forget the saved token.")
    command(nouns, parent, "whoami", whoami, "Show who is signed in.")
    verb = command(nouns, parent, "token", token, "Make a token for a script; it is printed once.")
    verb.add_argument("name", help="what it is for")
    verb.add_argument("--days", type=int, default=90, help="days until it expires (90)")
    verb.add_argument("--code", help="code of the second factor; asked for where it is needed")
    verb.add_argument("--read-only", action="store_true", help="it may look, not change")
    verb.add_argument("--username", help="asked for when left out")
    verb.add_argument("--password-stdin", action="store_true", help="read the password from standard input")


def login(args: argparse.Namespace) -> None:
    given = config.load(args.address or args.url)
    if args.token:
        token = sys.stdin.readline().strip() if args.token == FROM_STDIN else args.token
    else:
        token = _ask_for_token(given, args)
    client = Client(config.Config(given.url, token))
    me = client.get("me/")
    config.save(given.url, token)
    done(args, me, f"Signed in to {given.url} as {output.clean(me.get('username', ''))}.")


def _ask_for_token(given: config.Config, args: argparse.Namespace) -> str:
    return str(_made(given, args, name=f"aip on {os.uname().nodename}")["token"])


def _made(given: config.Config, args: argparse.Namespace, **wanted: Any) -> Any:
    """Get a new token for a name and a password."""
    interactive = sys.stdin.isatty()
    if not args.username and not interactive:
        raise ClientError("Give --username, and --password-stdin with the password on standard input.", USAGE)
    username = args.username or _ask("Username: ")
    if args.password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif interactive:
        password = getpass.getpass("Password: ")
    else:
        raise ClientError("Give --password-stdin and the password on standard input.", USAGE)
    client, fields = Client(config.Config(given.url, "")), {"username": username, "password": password, **wanted}
    if args.code:
        fields["code"] = args.code
    try:
        return client.post("auth/token/", fields)
    except ClientError as exc:
        if exc.code != "second_factor_needed" or args.code or not interactive:
            raise
    return client.post("auth/token/", fields | {"code": _ask("Code of the second factor: ")})


def _ask(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def logout(args: argparse.Namespace) -> None:
    done(args, {}, "The saved token is forgotten." if config.forget() else "There was no saved token.")


def whoami(args: argparse.Namespace) -> None:
    me = args.client.get("me/")
    fields: list[output.Column] = [
        ("Username", "username"),
        ("Nickname", "nickname"),
        ("Roles", lambda row: ", ".join(str(role) for role in row.get("roles") or [])),
        ("Platform", lambda row: args.client.config.url),
    ]
    show_one(args, me, fields)


def token(args: argparse.Namespace) -> None:
    scope = "read" if args.read_only else "write"
    made = _made(config.load(args.url), args, name=args.name[:50], days=args.days, scope=scope)
    if args.json:
        output.as_json(made)
    else:
        print(made["token"])
        output.say("Keep it now: it is not shown again.")
