"""What each role in an annotation project opens: every route below a project × viewer, annotator, reviewer, manager."""

from __future__ import annotations

from pathlib import Path

from accounts.models import User
from annotation.models import ProjectMember
from annotation.services import projects
from tests.factories import annotation, people
from tests.matrix import answers
from tests.matrix.world import World, in_project

TABLE = Path(__file__).with_name("roles.txt")
ROLES = tuple(ProjectMember.Role.values)
LEGEND = """\
# Who gets in where inside an annotation project. One row per method and route; one letter each for:
# {roles}. All of them researchers; letters as in table.txt.
# Written by `python -m tests.matrix`; read every changed letter before you commit it.
"""


def rows(owner: User) -> dict[str, str]:
    """Letters by key, of every row of the large table that lies in a project; one is made for `owner`."""
    task = annotation.first_task(owner)
    world = World({}, ids=in_project(task, owner))
    clients = []
    for role in ROLES:
        person = people.user(f"{role}-here")
        projects.add_member(task.set.project, username=person.username, role=role, by=owner)
        clients.append(answers.signed_in(person))
    found = {}
    for key in answers.read():
        if "annotation/projects/<" in key:
            method, route = key.split(maxsplit=1)
            path = world.fill(route)
            assert path is not None, route
            found[key] = "".join(answers.letter(client, method, path) for client in clients)
    return found


def read() -> dict[str, str]:
    """The checked-in table: letters by key."""
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return {line[len(ROLES) + 2 :]: line[: len(ROLES)] for line in lines if line and not line.startswith("#")}


def write(table: dict[str, str]) -> None:
    """Replace the checked-in table."""
    lines = [f"{letters}  {key}" for key, letters in table.items()]
    TABLE.write_text(LEGEND.format(roles=", ".join(ROLES)) + "\n".join(lines) + "\n")
