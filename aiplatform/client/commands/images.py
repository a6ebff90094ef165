"""`aip images`: what jobs take their programs from."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.commands import container_images, lookup, versioned
from aiplatform.client.commands.image_rows import COLUMNS, MORE, VISIBILITIES, fields, made, named
from aiplatform.client.commands.verbs import Noun, Nouns, Parent, confirm, done, paging, show_list
from aiplatform.client.errors import USAGE, ClientError


def add(nouns: Nouns, parent: Parent) -> None:
    images = Noun(nouns, parent, "images", "Engines and saved environments that jobs run in.")
    verb = images.verb("list", image_list, "List images you can see.")
    verb.add_argument("--search", help="only those whose name, tag or description contains this")
    verb.add_argument("--kind", choices=["engine", "saved", "container"])
    paging(verb)
    images.verb("show", show, "Show one image.").add_argument("image", help="id, NAME, or NAME:TAG")
    verb = images.verb("build", build, "Build an engine of packages, or one that is not built yet.")
    verb.add_argument("name", help="of the new image; with --existing of one that is there")
    verb.add_argument("-r", "--requirements", type=argparse.FileType("r"), metavar="FILE", help="packages; - is stdin")
    verb.add_argument("-p", "--package", action="append", metavar="NAME==1.2", help="a package; repeat for more")
    verb.add_argument("--existing", action="store_true", help="build an image again that failed, or for the first time")
    verb.add_argument("--without-platform", action="store_true", help="do not see the platform's own packages")
    named(verb)
    container_images.add(images)
    verb = images.verb("save", save, "Save what was installed in a job as an image.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("name")
    named(verb)
    verb = images.verb("forget", forget, "Delete the packages that were installed in a job; it starts from its image.")
    verb.add_argument("job", help="id of the job")
    verb.add_argument("-y", "--yes", action="store_true", help="do not ask")
    verb = images.verb("share", share, "Let a person or a group use an image, or change who sees it.")
    verb.add_argument("image", help="id, NAME, or NAME:TAG")
    verb.add_argument("--with", dest="person", metavar="USERNAME")
    verb.add_argument("--group", metavar="NAME")
    verb.add_argument("--level", choices=["view", "use", "manage", "none"], default="use", help="none takes it back")
    verb.add_argument("--visibility", choices=VISIBILITIES, help="who sees it without being named")
    verb = images.verb("delete", delete, "Delete an image that nothing needs.")
    verb.add_argument("image", help="id, NAME, or NAME:TAG")
    verb.add_argument("--yes", action="store_true", help="do not ask")


def image_list(args: argparse.Namespace) -> None:
    rows = args.client.pages("images/", limit=args.limit, search=args.search, kind=args.kind)
    show_list(args, rows, COLUMNS, empty="No images.")


def show(args: argparse.Namespace) -> None:
    versioned.show(args, f"images/{lookup.image(args.client, args.image)}/", MORE)


def build(args: argparse.Namespace) -> int:
    if args.existing:
        row = args.client.post(f"images/{lookup.image(args.client, args.name)}/build/")
    else:
        row = args.client.post("images/", fields(args) | _packages(args), once=True)
    return made(args, row, "It is being built")


def save(args: argparse.Namespace) -> int:
    row = args.client.post("images/save/", fields(args) | {"job": _job(args)}, once=True)
    return made(args, row, "It is being saved")


def forget(args: argparse.Namespace) -> None:
    job = _job(args)
    confirm(args, f"Delete the packages that were installed in job {job}?")
    args.client.delete(f"images/boxes/{job}/")
    done(args, {"id": job}, f"Job {job} keeps no packages; it starts from its image again.")


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


def _job(args: argparse.Namespace) -> int:
    if not args.job.isdigit():
        raise ClientError(f"{args.job} is no id of a job. List them: aip jobs list", USAGE)
    return int(args.job)


def _packages(args: argparse.Namespace) -> dict[str, Any]:
    lines = list(args.package or ())
    if args.requirements:
        with args.requirements as file:
            lines.append(file.read())
    if not lines:
        raise ClientError("Name its packages: -r requirements.txt, or -p torchmetrics==1.4.", USAGE)
    return {"requirements": "\n".join(lines), "with_platform": not args.without_platform}
