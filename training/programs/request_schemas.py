"""Request schemas: what a request of a job kind looks like, so that templates and the expert page know none by name.

A kind says it once from its app's `AppConfig.ready()`. A request is the body of its API route: JSON-ready fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty
from rest_framework.serializers import Serializer

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import read_once
from aiplatform.lib.api import parse_request
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed, Refusals
from aiplatform.lib.registry import Registry
from training.programs import request_body, request_initial, request_secrets
from training.programs.input_fields import written_variables
from training.programs.requests import default_cpus
from training.programs.serializers import CODE_FIELDS, with_code
from workers.core import kinds
from workers.core.models import Job
from workers.jobs.following import FIELDS
from workers.jobs.forms import following
from workers.jobs.forms.resource_request import initial_of
from workers.jobs.resource_request import Resources

Request = Mapping[str, Any]


class RequestSchema:
    """How jobs of one kind are requested: a kind declares what it has, and overrides what it does otherwise.

    Attributes:
        kind: name of the job kind.
        model: its rows, each with its `job`.
        request: the class of the requests that its service takes.
        service: the module with `submit`, `check`, `check_parts` and `as_request`.
        serializer: of the body of its API route.
        form_class: its form.
        plain: fields that are in a request as they are in the form.
        secrets: the field whose values are secret, "" where there is none.
        variables: the field of variables that every reader may see.
        parameters: the field of its program's parameters, which every reader may see; "" where there is none.
        command_lines: the fields that are command lines.
    """

    kind: str
    model: Any
    request: Callable[..., Any]
    service: Any
    serializer: type[Serializer[Any]]
    form_class: Any
    plain: tuple[str, ...]
    secrets = "secrets"
    variables = "variables"
    parameters = ""
    command_lines: tuple[str, ...] = ("command", "worker_command")

    # what subclasses may override

    def more_of_form(self, form: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Further fields of the request of a form, with its data as typed."""
        return {}

    def more_initial(self, user: User, request: Request) -> dict[str, Any]:
        """Further initial values of the form for a request, which has all its fields and may be partly invalid."""
        return {}

    def more_of_clone(self, user: User, row: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        """Further initial values of the form for a row, and the request that its service makes of it."""
        return {}

    # requests and forms

    def form(self, data: Any = None, files: Any = None, *, user: User, initial: Any = None) -> Any:
        """A form, empty without `data`."""
        return self.form_class(data, files, user=user, initial=initial)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The values of the fields that a request may leave out."""
        fields = self.serializer._declared_fields
        defaults = {name: field.default for name, field in fields.items() if field.default is not empty}
        return {name: default() if callable(default) else default for name, default in defaults.items()}

    def of_form(self, form: Any) -> dict[str, Any]:
        """Return the request of a form; refused values are kept as typed."""
        data = request_body.typed(form)
        request = request_body.of_form(form, data, self.plain) | self.more_of_form(form, data)
        if hasattr(form, "following"):
            request |= request_body.of_following(form.following())
        return request_body.shortened(request, self.defaults)

    def initial(self, user: User, request: Request) -> dict[str, Any]:
        """Return initial values of the form for a request, which may be partly invalid."""
        values = self.defaults | {"cpus": default_cpus()} | dict(request)
        begun = {name: values[name] for name in (*self.plain, "retries", "retry_pause_s") if name in values}
        jobs = {name: request_body.words_of(values[name]) for name in FIELDS if name in values}
        return begun | request_initial.shared(user, values) | jobs | self.more_initial(user, values)

    def initial_of_clone(self, user: User, row: Any) -> dict[str, Any]:
        """Return initial values of the form for a program like that of `row`, as the user may copy it."""
        values = self.service.as_request(row)
        values = request_secrets.as_known_to(user, row.job, values, lines=self.command_lines)
        resources: Any = {name: value for name, value in values.items() if name in Resources.__annotations__}
        return {
            **{name: values[name] for name in (*self.plain, "image") if name in values},
            **initial_of(resources),
            **(following.initial_of(row.job) if "following" in values else {}),
            "snapshot": values["code"],
            "datasets": [version.pk for version in values["datasets"]],
            "variables": written_variables(values["variables"]),
            "secrets": "".join(f"{name}=\n" for name in row.secret_names),
            **self.more_of_clone(user, row, values),
        }

    # jobs

    def copies(self, user: User) -> Any:
        """The rows of a user's own jobs that a new request can copy."""
        return self.model.objects.visible_to(user).filter(job__owner=user)

    def has(self, job: Job) -> bool:
        """Whether a job was requested by this schema, and not by the platform itself."""
        return bool(self.model.objects.filter(job=job).exists())

    def of_job(self, job: Job) -> dict[str, Any]:
        """Return the request that would make a job again; secrets by name, to be entered again."""
        row = self.model.objects.for_list().get(job=job)
        values = self.service.as_request(row)
        request = request_body.of_request(values, row.secret_names)
        retries = request_body.of_retries(values["following"]) if "following" in values else {}
        return request_body.shortened(self.shown(row, request | retries), self.defaults)

    def shown(self, row: Any, request: dict[str, Any]) -> dict[str, Any]:
        """The request of a job as text; may leave out more than the values of its secrets."""
        return request

    def read(self, user: User, data: dict[str, Any]) -> Any:
        """Return the service's request for what the serializer read, with its code as a snapshot."""
        return self.request(**with_code(user, data, lambda fields: self.check(user, fields)))

    def check(self, user: User, data: dict[str, Any]) -> Resources:
        """Refuse what `submit` would refuse, given what the serializer read; return its resources."""
        fields = {name: value for name, value in data.items() if name not in CODE_FIELDS}
        resources: Resources = self.service.check(user, self.request(**fields))
        return resources

    @property
    def check_parts(self) -> Callable[..., object]:
        """Refuses parts of a request, as `aiplatform.lib.api.parse_request` takes it."""
        parts: Callable[..., object] = self.service.check_parts
        return parts

    def submit(self, user: User, data: dict[str, Any]) -> Job:
        """Queue a request and return its job, of an array the first."""
        job: Job = self.service.submit(user=user, request=self.read(user, data)).job
        return job

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
