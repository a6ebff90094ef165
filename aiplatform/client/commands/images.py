"""`aip images`: container and engine images that jobs run in."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client.commands import container_images, lookup
from aiplatform.client.commands.container_images import COLUMNS, FIELDS, IMAGE, NAMING, VISIBILITIES, WAIT, print_new
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.client.options import LIMIT, YES, fields, flag, option, repeated
from aiplatform.client.output import titled
from aiplatform.client.verbs import Verb, confirm, done


def _job(_: Client, text: str) -> int:
    if not text.isdigit():
        raise ClientError(f"{text} is not a job id. List them: aip jobs list", USAGE)
    return int(text)


JOB = option("job", find=_job, help="id of the job")


def _build(args: argparse.Namespace) -> int:
    if args.existing:
        row = args.client.post(f"images/{lookup.image(args.client, args.name)}/build/")
    else:
        body = {"name": args.name, **fields(args, NAMING), **_packages(args)}
        row = args.client.post("images/", body, once=True)
    return print_new(args, row, "The image is being built")


def _packages(args: argparse.Namespace) -> dict[str, Any]:
    lines = list(args.package or ())
    if args.requirements:
        with args.requirements as file:
            lines.append(file.read())
    if not lines:
        raise ClientError("Specify packages: -r requirements.txt, or -p torchmetrics==1.4.", USAGE)
    return {"requirements": "\n".join(lines), "with_platform": not args.without_platform}


def _forget(args: argparse.Namespace) -> None:
    job = _job(args.client, args.job)
    confirm(args, f"Delete the packages installed in job {job}?")
    args.client.delete(f"images/boxes/{job}/")
    done(args, {"id": job}, f"Job {job} has no installed packages any more; it starts from its image again.")


def _share(args: argparse.Namespace) -> None:
    image = lookup.image(args.client, args.image)
    if not (args.person or args.group or args.visibility):
        raise ClientError("Specify users or groups: --with USERNAME, --group NAME, or --visibility public.", USAGE)
    row: Any = None
    if args.visibility:
        row = args.client.call("PATCH", f"images/{image}/", body={"visibility": args.visibility})
    if args.person or args.group:
        level = None if args.level == "none" else args.level
        body = {"person": args.person or "", "group_name": args.group or "", "level": level}
        row = args.client.call("PUT", f"shares/image/{image}/", body=body)
    done(args, row, f"Sharing of image {args.image} was changed.")


NOUNS = {
    "images": (
        Verb("list", "List images.", (
            option("--search", help="only those whose name, tag or description contains this text"),
            option("--kind", choices=["engine", "saved", "container"]),
            LIMIT,
        ), get="images/", table=COLUMNS, empty="No images."),
        Verb("show", "Show one image.", (IMAGE,),
             get="images/{image}/", record=[*titled(FIELDS), ("Description", "description")]),
        Verb("build", "Build an engine from packages, or one that is not built yet.", (
            option("name", help="of the new image; with --existing of an existing one"),
            option("-r", "--requirements", type=argparse.FileType("r"), metavar="FILE", help=
                "packages; - reads "
                "standard input"),
            repeated("-p", "--package", metavar="NAME==1.2", help="a package; can be repeated"),
            flag("--existing", help="build a failed image again, or for the first time"),
            flag("--without-platform", help="exclude the packages of the platform"),
            *NAMING, WAIT,
        ), run=_build),
        *container_images.VERBS,
        Verb("save", "Save the installed packages of a job as an image.", (JOB, option("name"), *NAMING, WAIT),
             post="images/save/", once=True,
             finish=lambda args, row: print_new(args, row, "The image is being saved")),
        Verb("forget", "Delete the installed packages of a job; it starts from its image again.", (JOB, YES),
             run=_forget),
        Verb("share", "Share an image with a user or a group, or change its visibility.", (
            IMAGE,
            option("--with", dest="person", metavar="USERNAME"),
            option("--group", metavar="NAME"),
            option("--level", choices=["view", "use", "manage", "none"], default="use", help="none removes the access"),
            option("--visibility", choices=VISIBILITIES, help="visibility"),
        ), run=_share),
        Verb("delete", "Delete an unused image.", (IMAGE, YES),
             delete="images/{image}/", confirm="Delete image {args.image}?", done="Deleted image {args.image}."),
    ),
}  # fmt: skip
