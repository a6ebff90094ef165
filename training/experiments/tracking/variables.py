"""What a job's program is variables, so that a script that uses MLflow reports here without a changed line."""

from __future__ import annotations

import socket
from dataclasses import replace
from urllib.parse import urlsplit

from django.conf import settings

from aiplatform import env
from training.experiments.models import Run
from training.experiments.tracking import experiments, tokens
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.execution import tickets
from workers.execution.exec import allowed_hosts, egress
from workers.supervisor import sandbox

PATH = "/api/mlflow"
KINDS = {"training", "command", "environment"}  # whose programs are people's own
ADDRESS, TOKEN = "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"
#: A call waits two minutes for a server that is away, as while it is upgraded, before the script hears of it: with
#: fewer tries its training would die of a restart, with MLflow's own seven each call holds it up for four minutes.
#: And MLflow's clients tell nobody else.
ALWAYS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "6",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}


def with_tracking(launch: Launch, attempt: Attempt) -> Launch:
    """Add the address and the token of tracking to what a job starts.

    What its owner set goes before all of this. Where they named another server it is told nothing of this one, whose
    token that one must not see; where the job's network does not lead here it is told no address, and a script
    keeps its records in files of its own instead of waiting.
    """
    if attempt.job.kind not in KINDS:
        return launch
    variables = dict(ALWAYS)
    secrets: list[str] = []
    address = address_for(attempt.job, launch)
    if address and ADDRESS not in launch.env:
        secret = tokens.issue(attempt)
        secrets.append(secret)
        variables |= {ADDRESS: address, TOKEN: secret}
        run = Run.objects.filter(job=attempt.job).values_list("uid", "experiment").first()
        if run is not None:
            variables |= {"MLFLOW_RUN_ID": run[0], "MLFLOW_EXPERIMENT_NAME": run[1] or experiments.DEFAULT}
    return replace(launch, env=variables | launch.env, secrets=[*launch.secrets, *secrets])


def address_for(job: Job, launch: Launch) -> str:
    """Where a program of a job reaches the platform, as MLflow's clients want it; "" where its network has no way."""
    tier = tickets.tier()[0]
    if launch.own_network and job.nodes == 1 and tier >= sandbox.BUBBLEWRAP:
        return f"{env.BASE_URL.rstrip('/')}{PATH}" if _leads_out(env.BASE_URL) else ""
    if tier >= sandbox.CONTAINER and not launch.ports and job.nodes == 1:  # one that others reach has the machine's
        if env.CONTAINER_NETWORK == "none":
            return ""
        if env.CONTAINER_NETWORK != "host":
            return f"{settings.SITE_URL}{PATH}" if not _is_here(settings.SITE_URL) else ""
    return f"{_from_this_machine()}{PATH}"


def _from_this_machine() -> str:
    if env.NODE_JOINED:
        return (env.SERVER or settings.SITE_URL).rstrip("/")
    host = "127.0.0.1" if env.HOST in {"0.0.0.0", "::", ""} else env.HOST  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{env.PORT}" if ":" in host else f"http://{host}:{env.PORT}"


def _is_here(address: str) -> bool:
    return urlsplit(address).hostname in {"127.0.0.1", "localhost", "::1"}


def _leads_out(address: str) -> bool:
    """Whether the proxy of jobs with a network of their own lets them reach an address: a public one, or one that the
    operator allowed by its name.
    """
    parts = urlsplit(address)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not host or not allowed_hosts.AllowedHosts(env.EGRESS_ALLOWED).allow(host, port):
        return False
    if allowed_hosts.AllowedHosts(env.EGRESS_ALLOWED).has_name(host, port):
        return True
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(egress.is_public(str(row[4][0])) for row in addresses)
