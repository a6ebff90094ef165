"""`aip ports`: open programs of running jobs in the browser."""

from __future__ import annotations

import argparse
import webbrowser

from aiplatform.client import output
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list
from aiplatform.client.output import Column

COLUMNS: list[Column] = [
    ("job", "job"),
    ("job name", "job_name"),
    ("name", "name"),
    ("port", "port"),
    ("owner", "owner"),
    ("address", "address"),
]


def add(nouns: Nouns, parent: Parent) -> None:
    ports = Noun(nouns, parent, "ports", "Ports of jobs: programs that open in the browser.")
    verb = ports.verb("list", port_list, "List the ports of a job, or all that you may open.")
    verb.add_argument("job", nargs="?", help="id of the job; without: of all running jobs")
    paging(verb)
    verb = ports.verb("publish", publish, "Let browsers reach a port of your job.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("port", type=int, help="from 40000 to 49999, on which the program listens inside the job")
    verb.add_argument("--name", default="", help="a word for its address")
    verb = ports.verb("open", open_port, "Print an address that lets one browser in, once, within half a minute.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("name", help="of the port")
    verb.add_argument("--browser", action="store_true", help="open it in the browser of this machine as well")
    verb = ports.verb("board", board, "Show the event files of your job in TensorBoard: a small job of its own.")
    verb.add_argument("job", help="id of the job")
    verb = ports.verb("withdraw", withdraw, "Close a port again.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("name", help="of the port")


def port_list(args: argparse.Namespace) -> None:
    rows = args.client.get(f"jobs/{args.job}/ports/") if args.job else args.client.pages("ports/", limit=args.limit)
    show_list(args, rows, COLUMNS, empty="No ports are published.")


def publish(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.job}/ports/", {"port": args.port, "name": args.name}, once=True)
    done(args, row, f"Published as {row['name']}. Open it: aip ports open {args.job} {row['name']}")


def open_port(args: argparse.Namespace) -> None:
    opened = args.client.post(f"jobs/{args.job}/ports/{args.name}/open/", {})
    if args.json:
        output.as_json(opened)
    else:
        print(opened["url"])
    if args.browser:
        webbrowser.open(opened["url"])


def withdraw(args: argparse.Namespace) -> None:
    args.client.delete(f"jobs/{args.job}/ports/{args.name}/")
    done(args, None, f"Withdrew {args.name} of job {args.job}.")


def board(args: argparse.Namespace) -> None:
    row = args.client.post(f"jobs/{args.job}/board/", {}, once=True)
    done(args, row, f"Job {row['id']} shows them. Once it runs: aip ports open {row['id']} tensorboard")
