"""Actions of the command palette. Each app registers its own, beside what search finds of it.

    palette.register(Command("help", _("Help"), "help", Action.OVERVIEW_VIEW, page="help"))
    palette.register_on_objects(
        ObjectCommand("training.on", _("New training on %(name)s"), "training", Action.TRAINING_SUBMIT, find=…)
    )

A command opens a page, sends a form, or presses a control that every page has. Commands on objects are computed from
the query: "new train bccd" finds the dataset bccd and offers "New training on bccd".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse
from django.utils import translation

from aiplatform.lib.registry import Registry

PER_COMMAND = 3  # objects that one command offers for a query
MIN_VERB_LENGTH = 2  # characters of a query that can name a command


@dataclass(frozen=True)
class Command:
    """A command without an object.

    Attributes:
        page: name of the URL; with `post` it receives a form instead of being opened.
        press: CSS selector of the control to press; instead of `page`.
    """

    key: str
    label: Any
    icon: str
    needs: str
    page: str = ""
    post: bool = False
    press: str = ""

    def result(self) -> dict[str, Any]:
        """Return the command as a result of the search."""
        url = reverse(self.page) if self.page else ""
        return {"name": str(self.label), "icon": self.icon, "url": url, "post": self.post, "press": self.press}


@dataclass(frozen=True)
class Target:
    """An object that a command can be applied to now.

    Attributes:
        fields: of the form to send; None opens `url` instead.
        question: to confirm before the form is sent; "" sends it at once.
    """

    name: str
    url: str
    fields: Mapping[str, str] | None = None
    question: str = ""


@dataclass(frozen=True)
class ObjectCommand:
    """A command on one of several objects.

    Attributes:
        label: with the place %(name)s.
        find: `find(user, text, limit)` → targets that this user may apply it to; an empty text asks for the newest.
        is_next_step: offered, too, for a query that names the object only: what users mostly do next with it.
    """

    key: str
    label: Any
    icon: str
    needs: str
    find: Callable[[Any, str, int], Iterable[Target]] = field(repr=False)
    is_next_step: bool = False

    def rest(self, query: str) -> str | None:
        """Return what remains of the query after the words of the label; None if it does not begin with its verb.

        Words count by their beginning, in the language of the user and in English, and "new" may be left out:
        "stop 12", "new tr bccd", "train bccd".
        """
        with translation.override("en"):
            english = str(self.label)
        for label in {str(self.label), english}:
            before = label.split("%(name)s")[0].strip().casefold()
            if before and query.casefold().startswith(before):
                return query[len(before) :].strip()
            label_tokens = label.replace("%(name)s", "").casefold().split()
            verbs = label_tokens[:2] if label_tokens[0] == "new" else label_tokens[:1]
            tokens = query.casefold().split()
            if len(query) < MIN_VERB_LENGTH or not any(verb.startswith(tokens[0]) for verb in verbs):
                continue
            matched = 1
            while matched < len(tokens) and any(token.startswith(tokens[matched]) for token in label_tokens):
                matched += 1
            return " ".join(query.split()[matched:])
        return None

    def results(self, user: Any, text: str) -> list[dict[str, Any]]:
        """Return the command for each object that matches the text, as results of the search."""
        return [
            {
                "name": str(self.label) % {"name": target.name},
                "icon": self.icon,
                "url": target.url,
                "post": target.fields is not None,
                "fields": dict(target.fields or {}),
                "question": target.question,
            }
            for target in self.find(user, text, PER_COMMAND)
        ]


COMMANDS: Registry[Command] = Registry("command of the palette", name=lambda command: command.key)
OBJECT_COMMANDS: Registry[ObjectCommand] = Registry("command on objects", name=lambda command: command.key)

register = COMMANDS.register
register_on_objects = OBJECT_COMMANDS.register


def commands(user: Any) -> list[dict[str, Any]]:
    """Return the commands without an object that this user may run."""
    return [command.result() for command in COMMANDS if user.can(command.needs)]


def commands_on_objects(user: Any, query: str) -> list[tuple[dict[str, Any], bool]]:
    """Return commands on objects that the query names, each with whether it names the command, too."""
    results = []
    for command in OBJECT_COMMANDS:
        if not user.can(command.needs):
            continue
        text = command.rest(query)
        if text is not None:
            results += [(row, True) for row in command.results(user, text)]
        elif command.is_next_step:
            results += [(row, False) for row in command.results(user, query)]
    return results
