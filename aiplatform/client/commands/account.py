"""`aip login`, `logout`, `whoami`, `token`: the user and the platform."""

from __future__ import annotations

import argparse
import getpass
import platform as computer
import sys
import time
import webbrowser
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
    name = f"aip on {computer.node()}"[:50]
    if args.token:
        token = sys.stdin.readline().strip() if args.token == FROM_STDIN else args.token
    elif args.username or args.password_stdin:
        token = _request_token(platform, args, name=name)["token"]
    else:
        token = _sign_in_by_browser(platform, name)["token"]
    client = Client(config.Config(platform.url, token))
    me = client.get("me/")
    config.save(platform.url, token)
    done(args, me, f"Signed in to {platform.url} as {output.clean(me.get('username', ''))}.")


def _sign_in_by_browser(platform: config.Config, name: str) -> Any:
    """Get a new token that the user allows in a browser, on this computer or another one (RFC 8628)."""
    client = Client(config.Config(platform.url, ""))
    started = client.post("auth/device/", {"name": name})
    url = started["verification_uri_complete"]
    output.say(f"Open this address in a browser and allow the code {started['user_code']}:\n  {url}")
    if sys.stdin.isatty():
        webbrowser.open(url)  # nothing happens on computers without a browser
    end = time.monotonic() + started["expires_in"]
    while True:
        try:
            return client.post("auth/device/token/", {"device_code": started["device_code"]})
        except ClientError as exc:
            if exc.code != "authorization_pending" or time.monotonic() > end:
                raise
        time.sleep(started["interval"])


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
    while True:
        try:
            return client.post("auth/token/", fields)
        except ClientError as exc:
            if exc.code == "second_factor_needed" and "code" not in fields and interactive:
                fields["code"] = _prompt("Code of the second factor: ")
            elif exc.code == "password_change_needed" and "new_password" not in fields:
                fields["new_password"] = _new_password(args, exc)
            else:
                raise


def _new_password(args: argparse.Namespace, refusal: ClientError) -> str:
    """Read what replaces a temporary password: by a prompt, or the second line of standard input."""
    if args.password_stdin:
        password = sys.stdin.readline().rstrip("\n")
        if not password:
            raise refusal
        return password
    output.say("This is a temporary password. Set your own.")
    password = getpass.getpass("New password: ")
    if password != getpass.getpass("Repeat new password: "):
        raise ClientError("The passwords differ. Sign in again.", USAGE)
    return password


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
USERNAME = option("--username", help="sign in with the password of this user instead of a browser")
PASSWORD = flag(
    "--password-stdin", help="read the password from standard input; a second line replaces a temporary password"
)
CODE = option("--code", help="code of the second factor; prompted for if required")

NOUNS = {
    "login": Verb("login", "Sign in with a browser, or with name and password, and store a token for this address.", (
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
