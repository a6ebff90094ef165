"""`/api/v1/jobs/{id}/ssh/…`: how to enter a job, a password for it, and who is in it."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform import env
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.idempotency import once
from workers.access.ssh import access, entry, passwords, sessions
from workers.access.ssh.models import SshSession
from workers.core.models import Job

SHOWN = 200


class SshEntryOut(serializers.Serializer):
    enabled = serializers.BooleanField(help_text="False where this installation offers no SSH.")
    may_enter = serializers.BooleanField(help_text="Whether the caller is let in: only the owner is.")
    host = serializers.CharField()
    port = serializers.IntegerField()
    login = serializers.CharField()
    command = serializers.CharField()
    config = serializers.CharField(help_text="Lines for ~/.ssh/config.")
    known_host = serializers.CharField(help_text="A line for ~/.ssh/known_hosts; empty before the gateway began.")
    fingerprint = serializers.CharField(help_text="Of the gateway's key, as clients show it.")


class SshPasswordOut(serializers.Serializer):
    password = serializers.CharField(help_text="For one sign-in; it is shown only here.")
    expires_at = serializers.DateTimeField()
    command = serializers.CharField()


class SshSessionOut(OutMixin, serializers.ModelSerializer[SshSession]):
    user = serializers.CharField(source="user.username")
    end_label = serializers.CharField(source="get_end_display")

    class Meta:
        model = SshSession
        fields = [
            "id", "user", "way", "key_name", "fingerprint", "address", "client", "began_at", "heard_at", "ended_at",
            "end", "end_label",
        ]  # fmt: skip
        read_only_fields = fields


class JobSshViewSet(NumberedViewSet):
    """SSH of the jobs that the caller may see."""

    needs = {
        "ssh": Action.JOBS_VIEW,
        "ssh_passwords": Action.JOBS_CONTROL,
        "ssh_sessions": Action.JOBS_VIEW,
        "ssh_session_end": Action.JOBS_CONTROL,
    }
    serializer_class = SshSessionOut
    queryset = Job.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return Job.objects.visible_to(user)

    @extend_schema(responses=SshEntryOut)
    @action(detail=True)
    def ssh(self, request: Request, pk: str) -> Response:
        """How to enter the job."""
        user: Any = request.user
        job = self.get_object()
        ssh_entry = entry.for_job(job, reached_as=request.get_host())
        state = {"enabled": bool(env.SSH_PORT), "may_enter": access.may_enter(user, job)}
        fields = ("host", "port", "login", "command", "config", "known_host", "fingerprint")
        return Response(SshEntryOut(state | {name: getattr(ssh_entry, name) for name in fields}).data)

    @extend_schema(request=None, responses={201: SshPasswordOut})
    @action(detail=True, methods=["post"], url_path="ssh/passwords")
    def ssh_passwords(self, request: Request, pk: str) -> Response:
        """Make a password for one sign-in within five minutes. Each call makes another one."""
        if hasattr(request._request, "behind"):
            raise NotAllowed(_("You are acting for another user. Only that user can enter their jobs."))
        user: Any = request.user
        job = self.get_object()
        password, secret = passwords.make(job, by=user)
        command = entry.for_job(job, reached_as=request.get_host()).command
        body = {"password": secret, "expires_at": password.expires_at, "command": command}
        return Response(SshPasswordOut(body).data, status=201, headers={"Cache-Control": "no-store"})

    @extend_schema(responses=SshSessionOut(many=True))
    @action(detail=True, url_path="ssh/sessions", pagination_class=None, filter_backends=[])
    def ssh_sessions(self, request: Request, pk: str) -> Response:
        """Who is in the job and who was, newest first; at most 200."""
        user: Any = request.user
        rows = SshSession.objects.visible_to(user).filter(job=self.get_object()).select_related("user")[:SHOWN]
        return Response(SshSessionOut(rows, many=True).data)

    @extend_schema(
        request=None, responses={202: SshSessionOut}, parameters=[OpenApiParameter("session", int, location="path")]
    )
    @action(detail=True, methods=["post"], url_path=r"ssh/sessions/(?P<session>[0-9]{1,18})/end")
    @once
    def ssh_session_end(self, request: Request, pk: str, session: str) -> Response:
        """Cut a session; its gateway does it within seconds."""
        user: Any = request.user
        rows = SshSession.objects.visible_to(user).filter(job=self.get_object()).select_related("user", "job")
        row = rows.filter(pk=session).first()
        if row is None:
            raise Http404(_("The job has no such session."))
        sessions.request_end(row, by=user)
        return Response(SshSessionOut(row).data, status=202)
