"""`aip images`: what jobs take their programs from."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.cli.client import output, waiting
from aiplatform.cli.client.commands import lookup, versioned
from aiplatform.cli.client.commands.verbs import Noun, Nouns, Parent, done, paging, show_list, show_one
from aiplatform.cli.client.errors import JOB_FAILED, OK, USAGE, ClientError
from aiplatform.cli.client.output import Column

VISIBILITIES = ("private", "group", "public")
COLUMNS: list[Column] = [
    ("id", "id"),
    ("name", lambda row: f"{row['name']}:{row['tag']}" if row.get("tag") else row["name"]),
    ("kind", "kind"),
    ("state", "state"),
    ("python", lambda row: row["facts"].get("python", "")),
    ("torch", lambda row: row["facts"].get("torch", "")),
    ("size", lambda row: output.size(row["size_bytes"]) if row.get("size_bytes") else ""),
    ("used by", "used_by"),
    ("owner", "owner"),
    ("made", lambda row: output.ago(row.get("created_at"))),
]
MORE: list[Column] = [
    *COLUMNS, ("message", "message"), ("visible to", "visibility"), ("sha256", "sha256"),
    ("packages", lambda row: ", ".join(row["requirements"].split("\n"))),
    ("left out", lambda row: ", ".join(row["left_out"])),
]  # fmt: skip


def add(nouns: Nouns, parent: Parent) -> None:
    images = Noun(nouns, parent, "images", "Engines and saved environments that jobs run in.")
    verb = images.verb("list", image_list, "List images you can see.")
    verb.add_argument("--search", help="only those whose name, tag or description contains this")
    verb.add_argument("--kind", choices=["engine", "saved"])
    paging(verb)
    images.verb("show", show, "Show one image.").add_argument("image", help="id, NAME, or NAME:TAG")
    verb = images.verb("build", build, "Build an engine of packages, or one that is not built yet.")
    verb.add_argument("name", help="of the new image; with --existing of one that is there")
    verb.add_argument("-r", "--requirements", type=argparse.FileType("r"), metavar="FILE", help="packages; - is stdin")
    verb.add_argument("-p", "--package", action="append", metavar="NAME==1.2", help="a package; repeat for more")
    verb.add_argument("--existing", action="store_true", help="build an image again that failed, or for the first time")
    verb.add_argument("--without-platform", action="store_true", help="do not see the platform's own packages")
    _named(verb)
    verb = images.verb("save", save, "Save what was installed in a job as an image.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("name")
    _named(verb)
    verb = images.verb("share", share, "Let a person or a group use an image, or change who sees it.")
    verb.add_argument("image", help="id, NAME, or NAME:TAG")
    verb.add_argument("--with", dest="person", metavar="USERNAME")
    verb.add_argument("--group", metavar="NAME")
    verb.add_argument("--level", choices=["view", "use", "manage", "none"], default="use", help="none takes it back")
    verb.add_argument("--visibility", choices=VISIBILITIES, help="who sees it without being named")
    verb = images.verb("delete", delete, "Delete an image that nothing needs.")
    verb.add_argument("image", help="id, NAME, or NAME:TAG")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def _named(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--tag", default="", help="a version, such as 2 or june")
    verb.add_argument("--description", default="")
    verb.add_argument("--visibility", choices=VISIBILITIES, default="private")
    verb.add_argument("--wait", action="store_true", help="wait until it is ready; 6 when it failed")


def image_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("images/", limit=args.limit, search=args.search, kind=args.kind)
    show_list(args, rows, COLUMNS, empty="No images.")


def show(args: argparse.Namespace) -> None:
    versioned.show(args, f"images/{lookup.image(args.client, args.image)}/", MORE)


def build(args: argparse.Namespace) -> int:
    if args.existing:
        row = args.client.post(f"images/{lookup.image(args.client, args.name)}/build/")
    else:
        row = args.client.post("images/", _fields(args) | _packages(args), once=True)
    return _made(args, row, "It is being built")


def save(args: argparse.Namespace) -> int:
    if not args.job.isdigit():
        raise ClientError(f"{args.job} is no id of a job. List them: aip jobs list", USAGE)
    row = args.client.post("images/save/", _fields(args) | {"job": int(args.job)}, once=True)
    return _made(args, row, "It is being saved")


def share(args: argparse.Namespace) -> None:
    image = lookup.image(args.client, args.image)
    if not (args.person or args.group or args.visibility):
        raise ClientError("Say with whom: --with USERNAME, --group NAME, or --visibility public.", USAGE)
    answer: Any = None
    if args.visibility:
        answer = args.client.call("PATCH", f"images/{image}/", body={"visibility": args.visibility})
    if args.person or args.group:
        level = None if args.level == "none" else args.level
        fields = {"person": args.person or "", "group_name": args.group or "", "level": level}
        answer = args.client.call("PUT", f"shares/image/{image}/", body=fields)
    done(args, answer, f"Image {args.image} is shared as asked.")


def delete(args: argparse.Namespace) -> None:
    route = f"images/{lookup.image(args.client, args.image)}/"
    versioned.remove(args, route, question=f"Delete image {args.image}?", removed=f"Image {args.image} is deleted.")


def _fields(args: argparse.Namespace) -> dict[str, Any]:
    return {"name": args.name, "tag": args.tag, "description": args.description, "visibility": args.visibility}


def _packages(args: argparse.Namespace) -> dict[str, Any]:
    lines = list(args.package or ())
    if args.requirements:
        with args.requirements as file:
            lines.append(file.read())
    if not lines:
        raise ClientError("Name its packages: -r requirements.txt, or -p torchmetrics==1.4.", USAGE)
    return {"requirements": "\n".join(lines), "with_platform": not args.without_platform}


def _made(args: argparse.Namespace, row: Any, sentence: str) -> int:
    """Print the id; with `--wait`, what became of it."""
    if not args.wait:
        if not args.json:
            print(row["id"])
        job = row["build_job"] if row["kind"] == "engine" else None
        log = f" Its log: aip jobs logs -f {job}" if job else ""
        done(args, row, "It is ready." if row["state"] == "ready" else f"{sentence} as image {row['id']}.{log}")
        return OK
    row = waiting.until_over(args.client, f"images/{row['id']}/", until={"ready", "failed"})
    show_one(args, row, MORE)
    return OK if waiting.state_of(row) == "ready" else JOB_FAILED
