"""Templates: store a request with parameters, change it, use it, delete it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import secret_names, shell_words
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals
from aiplatform.lib.titles import TITLE
from training.job_templates import parameters as places
from training.job_templates.models import JobTemplate, TemplateUse, TemplateVersion
from training.job_templates.parameters import Parameter
from training.programs import request_schemas, request_secrets, snapshots
from training.programs.models import CodeSnapshot
from training.programs.request_schemas import Request, RequestSchema
from workers.core.models import Job

CODE = "code"
_SAMPLE = "11111111"  # stands for a value that is only given at use; what it breaks is not refused


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a version of a template says.

    Args:
        request: fields of the kind's API route, with `{{ name }}` in the places of parameters.
        parameters: what is asked when it is used.
    """

    request: Request
    parameters: Sequence[Parameter] = ()


@transaction.atomic
def create(
    *,
    user: User,
    name: str,
    kind: str,
    content: Content,
    description: str = "",
    visibility: str = JobTemplate.Visibility.PRIVATE,
) -> JobTemplate:
    """Store a template.

    Raises:
        Invalid, NameTaken: see `check`.
    """
    check(user=user, name=name, kind=kind, content=content, description=description, visibility=visibility)
    try:
        with transaction.atomic():
            template = JobTemplate.objects.create(
                name=name.strip(), kind=kind, owner=user, description=description.strip(), visibility=visibility
            )
    except IntegrityError:
        raise _taken(name) from None
    _add_version(template, content, user)
    return template


@transaction.atomic
def change(
    template: JobTemplate,
    *,
    user: User,
    name: str | None = None,
    content: Content | None = None,
    description: str | None = None,
    visibility: str | None = None,
) -> JobTemplate:
    """Change a template; a request or parameters that differ become a new version. None stays as it is.

    Raises:
        Invalid, NameTaken: see `check`.
    """
    name = template.name if name is None else name.strip()
    description = template.description if description is None else description.strip()
    visibility = template.visibility if visibility is None else visibility
    had = content_of(template.newest)
    check(
        user=user, name=name, kind=template.kind, content=content or had, description=description,
        visibility=visibility, template=template,
    )  # fmt: skip
    template.name, template.description, template.visibility = name, description, visibility
    try:
        with transaction.atomic():
            template.save()
    except IntegrityError:
        raise _taken(name) from None
    if content is not None and (dict(content.request), list(content.parameters)) != (had.request, had.parameters):
        JobTemplate.objects.select_for_update().get(pk=template.pk)
        _add_version(template, content, user)
    return template


def check(
    *,
    user: User,
    name: str,
    kind: str,
    content: Content,
    description: str = "",
    visibility: str = JobTemplate.Visibility.PRIVATE,
    template: JobTemplate | None = None,
) -> None:
    """Refuse at once what `create` and `change` refuse, and write nothing."""
    refusals = Refusals()
    with refusals:
        _check_name(template.owner if template else user, name.strip(), template)
    with refusals:
        if len(description) > 500:
            raise Invalid(_("The description can have at most 500 characters."), field="description")
    with refusals:
        if visibility not in JobTemplate.Visibility.values:
            raise Invalid(_("Choose one of the available values."), field="visibility")
    with refusals:
        schema = request_schemas.get(kind)
        places.check(content.request, content.parameters, secrets=schema.secrets)
        _check_secrets(schema, content)
        _check_request(schema, user, content, template)
    refusals.end()


def content_of(version: TemplateVersion) -> Content:
    """What a version says, with its code as the field that it came by."""
    request = dict(version.request)
    return Content(
        request=request | {CODE: version.code_id} if version.code_id else request, parameters=version.parameters
    )


def from_job(job: Job, *, user: User | None = None) -> Content:
    """What would make a job again: each of its secrets becomes a parameter that is given at use.

    Args:
        user: who reads it; None is anybody, see `request_secrets.as_known_to`.

    Raises:
        Invalid: jobs of its kind cannot be requested as a template.
    """
    schema = request_schemas.get(job.kind)
    if not schema.has(job):
        raise Invalid(_("This job belongs to the platform and cannot become a template."), field="job")
    request = request_secrets.as_known_to(user, job, schema.of_job(job), lines=schema.command_lines)
    request.pop("cluster", None)  # others may belong to another one
    return without_secrets(schema, request)


def without_secrets(schema: RequestSchema, request: Request) -> Content:
    """Replace secrets, and variables named like secrets, by parameters that are required at each use."""
    secret, plain = request.get(schema.secrets), request.get(schema.variables)
    plain = plain if isinstance(plain, Mapping) else {}
    named = {name: value for name, value in plain.items() if secret_names.find_secrets({name: value})}
    secret_values = {**named, **(secret if isinstance(secret, Mapping) else {})}
    if not secret_values:
        return Content(request=request)
    if named:
        request = {**request, schema.variables: {name: plain[name] for name in plain if name not in named}}
    names = {name: str(name).lower()[:40] for name in secret_values}
    parameters = [Parameter(name=parameter, default=None, about="") for parameter in dict.fromkeys(names.values())]
    placeholders = {name: f"{{{{ {parameter} }}}}" for name, parameter in names.items()}
    return Content(request={**request, schema.secrets: placeholders}, parameters=parameters)


def request_for(version: TemplateVersion, values: Mapping[str, Any], instead: Request) -> dict[str, Any]:
    """The request of a version with these values of its parameters, and other fields in place of its own.

    Raises:
        Invalid: a value is missing, or not one of the template's.
    """
    chosen = places.values(version.parameters, values)
    return places.filled(version.request, chosen) | dict(instead)


def use(
    version: TemplateVersion, *, user: User, values: Mapping[str, Any] | None = None, instead: Request | None = None
) -> Job:
    """Queue the job of a template.

    Args:
        values: of its parameters, by name.
        instead: fields in place of those of its request.

    Raises:
        DomainError: a value is missing or wrong, or this person may not request that.
    """
    template, instead = version.template, dict(instead or {})
    schema = request_schemas.get(template.kind)
    request = request_for(version, values or {}, instead)
    own_code = any(name in instead for name in (CODE, "code_upload", "home_path"))
    code = version.code if version.code and not own_code else None
    request_schemas.check(schema, user, request, **({CODE: code} if code else {}))  # before files are copied
    more = {CODE: snapshots.copy_for(user, code)} if code else {}
    with transaction.atomic():
        job = request_schemas.submit(schema, user, request, **more)
        jobs = job.array.jobs.all() if job.array else [job]
        TemplateUse.objects.bulk_create(
            TemplateUse(job=member, version=version, name=str(version)[:120]) for member in jobs
        )
    return job


def delete(template: JobTemplate) -> None:
    """Delete a template; jobs that were made of it stay, and go on naming it."""
    template.delete()


def _add_version(template: JobTemplate, content: Content, user: User) -> TemplateVersion:
    request = dict(content.request)
    code = request.pop(CODE, None)
    number = template.versions.count() + 1
    return TemplateVersion.objects.create(
        template=template, number=number, request=request, parameters=list(content.parameters), code_id=code or None,
        made_by=user,
    )  # fmt: skip


def _check_name(owner: User, name: str, template: JobTemplate | None) -> None:
    if not name:
        raise Invalid(_("Enter a name for the template."), field="name")
    if len(name) > 100:
        raise Invalid(_("The name can have at most %(most)s characters.") % {"most": 100}, field="name")
    try:
        TITLE(name)
    except ValidationError as exc:
        raise Invalid(exc.messages[0], field="name") from None
    same = JobTemplate.objects.filter(owner=owner, name__iexact=name)
    if (same.exclude(pk=template.pk) if template else same).exists():
        raise _taken(name)


def _taken(name: str) -> NameTaken:
    return NameTaken(_("A template named %(name)s already exists.") % {"name": name})


def _check_secrets(schema: RequestSchema, content: Content) -> None:
    """Refuse secrets in command lines and variables, which every user who sees the template could read."""
    short = dict.fromkeys(places.names_in(content.request), "x")
    short |= {
        parameter["name"]: str(parameter["default"])
        for parameter in content.parameters
        if parameter["default"] is not None
    }
    refusals = Refusals()
    for field in schema.command_lines:
        text = places.filled(content.request.get(field) or "", short)
        try:
            args = shell_words.split(text) if isinstance(text, str) else []
        except ValueError:  # a quotation mark is open
            args = text.split()
        with refusals:
            if any(not value.startswith("$") for value in secret_names.find_secrets_in_args(args)):
                raise Invalid(
                    _("The command contains a secret, which templates cannot store. Replace it by {{ parameter }}."),
                    field=field,
                )
    for field in (schema.variables, schema.parameters):
        with refusals:
            _check_variables(field, places.filled(content.request.get(field), short))
    refusals.end()


def _check_variables(field: str, variables: Any) -> None:
    """Refuse variables with names of secrets: every user who sees the template could read them."""
    values = variables if isinstance(variables, Mapping) else {}
    named = [str(name)[:60] for name, value in values.items() if secret_names.find_secrets({str(name): value})]
    if named:
        raise Invalid(
            _(
                "%(names)s: templates cannot store secrets, and the name indicates one. Add it to the secrets, "
                "with a parameter without a default as its value."
            )
            % {"names": ", ".join(named)},
            field=field,
        )


def _check_request(schema: RequestSchema, user: User, content: Content, template: JobTemplate | None) -> None:
    """Refuse a request that is invalid with the defaults; fields that are only set at use are not checked."""
    visible_code = CodeSnapshot.objects.visible_to(user)
    code = content.request.get(CODE)
    current_code = template.newest.code_id if template else None
    row = (CodeSnapshot.objects if code == current_code else visible_code).filter(pk=code).first() if code else None
    if code and row is None:
        raise Invalid(_("You have no such code."), field=CODE)
    chosen = {
        parameter["name"]: _SAMPLE if parameter["default"] is None else parameter["default"]
        for parameter in content.parameters
    }
    required = {parameter["name"] for parameter in content.parameters if parameter["default"] is None}
    open_fields = {name for name, value in content.request.items() if required & set(places.names_in(value))}
    request = {name: value for name, value in content.request.items() if name != CODE}
    try:
        request_schemas.check(schema, user, places.filled(request, chosen), **({CODE: row} if row else {}))
    except DomainError as exc:
        refusals = Refusals()
        for refusal in exc.every:
            with refusals:
                if isinstance(refusal, Invalid) and refusal.blamed not in open_fields:
                    raise refusal from None
        refusals.end()
