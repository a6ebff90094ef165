"""Request schemas: what a request of a job kind looks like, so that templates and the expert page know none by name.

A kind says it once from its app's `AppConfig.ready()`. A request is the body of its API route: JSON-ready fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.serializers import Serializer

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import read_once
from aiplatform.lib.api import parse_request
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed, Refusals
from aiplatform.lib.registry import Registry
from workers.core import kinds
from workers.core.models import Job
from workers.jobs.resource_request import Resources

Request = Mapping[str, Any]


@dataclass(frozen=True)
class RequestSchema:
    """How jobs of one kind are requested.

    Attributes:
        kind: name of the job kind.
        serializer: of the body of its API route.
        form: its form, made as `form(data, user=…, initial=…)`.
        of_form: the request that a valid or half-valid form says.
        initial: initial values of the form for a request.
        has: whether a job of the kind was requested by it, and not by the platform itself.
        of_job: the request that would make this job again; its secrets by name, their values empty.
        check: refuses what `submit` would refuse, given what the serializer read; returns what it asks for.
        check_parts: refuses parts of it, as `sent` takes it.
        submit: queues it and returns the job, of an array the first.
        secrets: the field whose values are secret, "" where there is none.
        variables: the field of variables that anybody may read.
        parameters: the field of its program's parameters, which anybody may read; "" where there is none.
        command_lines: the fields that are command lines.
    """

    kind: str
    serializer: type[Serializer[Any]]
    form: Callable[..., forms.Form]
    of_form: Callable[[Any], dict[str, Any]]
    initial: Callable[[User, Request], dict[str, Any]]
    has: Callable[[Job], bool]
    of_job: Callable[[Job], dict[str, Any]]
    check: Callable[[User, dict[str, Any]], Resources]
    check_parts: Callable[..., object]
    submit: Callable[[User, dict[str, Any]], Job]
    secrets: str = "secrets"
    variables: str = "variables"
    parameters: str = ""
    command_lines: tuple[str, ...] = ("command", "worker_command")

    @property
    def label(self) -> str:
        """What people call its kind."""
        return kinds.label_of(self.kind)

    @property
    def submit_action(self) -> Action:
        """What a person must be allowed to start its jobs."""
        return kinds.get(self.kind).submit_action


SCHEMAS: Registry[RequestSchema] = Registry("request schema", name=lambda schema: schema.kind)
register = SCHEMAS.register


def get(kind: str) -> RequestSchema:
    """Return the schema of a kind.

    Raises:
        Invalid: no kind of this name is requested this way.
    """
    schema = SCHEMAS.find(kind)
    if schema is None:
        names = ", ".join(SCHEMAS.names())
        raise Invalid(_("These kinds of jobs can be requested here: %(names)s.") % {"names": names}, field="kind")
    return schema


def parsed(schema: RequestSchema, user: User, request: Request) -> dict[str, Any]:
    """A request as its serializer reads it for this person.

    Raises:
        Invalid: everything that is wrong with it, each naming its field.
    """
    return body_of(schema.serializer, user, request, schema.check_parts)


def body_of(
    serializer: type[Serializer[Any]], user: User, body: Request, check: Callable[..., object] | None = None
) -> dict[str, Any]:
    """What a body of the API says, as this person's serializer reads it.

    Args:
        check: see `aiplatform.lib.api.sent`.

    Raises:
        Invalid: everything that is wrong with it, each naming its field.
    """
    context = {"request": SimpleNamespace(user=user)}
    try:
        return parse_request(serializer(data=dict(body), context=context), check)
    except ValidationError as exc:
        raise refusal(exc.detail) from None


def offered_to(user: User) -> list[RequestSchema]:
    """The schemas of kinds that this person may start."""
    return [schema for schema in SCHEMAS if user.can(schema.submit_action)]


def check(schema: RequestSchema, user: User, request: Request, **instead: Any) -> Resources:
    """Refuse at once what `submit` would refuse; returns what the request asks of the machines.

    Raises:
        NotAllowed: this person starts no jobs of the kind.
        DomainError: see `parsed`, and what the kind's service refuses.
    """
    _check_allowed(schema, user)
    return schema.check(user, {**parsed(schema, user, request), **instead})


def submit(schema: RequestSchema, user: User, request: Request, **instead: Any) -> Job:
    """Queue the job that a request says.

    Args:
        instead: values that no text can say, such as code that came with a template.

    Raises:
        DomainError: see `check`.
    """
    _check_allowed(schema, user)
    with read_once.reading():  # both the request and the queue look at the machines
        return schema.submit(user, {**parsed(schema, user, request), **instead})


def _check_allowed(schema: RequestSchema, user: User) -> None:
    if not user.can(schema.submit_action):
        message = _("You are not allowed to start jobs of the kind %(kind)s. Ask an administrator for this permission.")
        raise NotAllowed(message % {"kind": schema.label}, field="kind")


def refusal(detail: Any) -> DomainError:
    """Convert errors of a serializer to refusals that each name their field."""
    refusals = Refusals()
    rows = detail.items() if isinstance(detail, Mapping) else [("", detail)]
    for name, value in rows:
        for sentence in _sentences(value):
            with refusals:
                raise Invalid(sentence, field=None if name in ("", "non_field_errors") else str(name))
    first, *others = refusals.all
    first.others = tuple(others)
    return first


def _sentences(value: Any) -> list[str]:
    """The texts in what a serializer says of one field, however deep they lie."""
    if isinstance(value, Mapping):
        return [f"{name}: {text}" for name, inner in value.items() for text in _sentences(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _sentences(inner)]
    return [str(value)]
