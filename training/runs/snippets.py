"""Render a training as a shell command, an HTTP request and a script, for "copy as"."""

from __future__ import annotations

import json
import shlex
from typing import Any

from aiplatform.lib import secret_names, shell_words, units
from training.programs import program
from training.runs import jobs
from training.runs.models import TrainingJob
from workers.core.models.nodes import SHARES_PER_DEVICE


def secrets_of(training: TrainingJob) -> list[str]:
    """Return the values of custom code's parameters and arguments whose names mark them as secret."""
    if training.preset:
        return []
    try:
        args = shell_words.split(training.arguments)
    except ValueError:
        args = training.arguments.split()
    named = [*secret_names.find_secrets(training.params), *secret_names.find_secrets_in_args(args)]
    return named + program.named_secrets(training)


def request_of(training: TrainingJob) -> dict[str, Any]:
    """The body of `POST /api/v1/training/jobs/` that asks for the same; defaults are left out."""
    request = jobs.as_request(training)
    body: dict[str, Any] = {"name": request["name"]}
    if training.version_id:
        body["version"] = training.version_id
    if request["preset"]:
        body["preset"] = request["preset"]
    if request["code"]:
        body["code"] = request["code"].pk
    plain = ("start_file", "command", "worker_command", "arguments", "extra", "output_path", "description")
    body |= {name: request[name] for name in (*plain, "params", "variables") if request[name]}
    if request["launcher"] not in ("", "once"):
        body["launcher"] = request["launcher"]
    if training.secret_names:
        body["secrets"] = dict.fromkeys(training.secret_names, secret_names.MASK)
    if request["image"]:
        body["image"] = request["image"].pk
    if request["datasets"]:
        body["datasets"] = [version.pk for version in request["datasets"]]
    if training.job.retries:
        body["retries"] = training.job.retries
    if training.eval_version_id:
        body["eval_version"] = training.eval_version_id
    body |= {"cluster": training.job.cluster_id, "gpus_per_node": request["gpus_per_node"]}
    if request["gpus_per_node"]:
        body |= {"device_kind": request["device_kind"]}
    cpus = float(request["cpus"])
    body["cpus"] = int(cpus) if cpus.is_integer() else cpus
    for name, default in (
        ("device_model", ""),
        ("share", SHARES_PER_DEVICE),
        ("memory_mib", 0),
        ("nodes", 1),
        ("processes", 0),
        ("priority", 0),
        ("preemptible", False),
        ("root_inside", False),
    ):
        if request[name] != default:
            body[name] = request[name]
    if request["writes_checkpoints"]:
        body["writes_checkpoints"] = True
    if request["max_disk_bytes"]:
        body["max_disk_bytes"] = request["max_disk_bytes"]
    if request["max_runtime"]:
        body["max_runtime_s"] = int(request["max_runtime"].total_seconds())
    return body


def as_cli(training: TrainingJob) -> str:
    """Return `aip train submit …`; custom code is referenced by its snapshot."""
    body = request_of(training)
    args = ["aip", "train", "submit", str(body["name"])]
    data = [body["version"], *body.get("datasets", ())] if "version" in body else []
    for number in data:
        args += ["--data", str(number)]
    for name, option in (
        ("preset", "--preset"),
        ("code", "--snapshot"),
        ("start_file", "--start"),
        ("command", "--command"),
        ("worker_command", "--worker-command"),
        ("launcher", "--launcher"),
        ("image", "--image"),
        ("retries", "--retries"),
        ("arguments", "--arguments"),
        ("eval_version", "--eval-data"),
        ("cluster", "--cluster"),
        ("nodes", "--nodes"),
        ("gpus_per_node", "--gpus"),
        ("share", "--share"),
        ("cpus", "--cpus"),
        ("processes", "--processes"),
        ("priority", "--priority"),
        ("output_path", "--output-path"),
        ("description", "--description"),
    ):
        if body.get(name) is not None:
            args += [option, str(body[name])]
    if "device_kind" in body:
        args += ["--device", ":".join(filter(None, (body["device_kind"], body.get("device_model"))))]
    if "memory_mib" in body:
        args += ["--memory", f"{body['memory_mib'] / units.MIB_PER_GIB:.9g}"]
    if "extra" in body:
        args.append(f"--extra={body['extra']}")
    for name, value in body.get("params", {}).items():
        args += ["-p", f"{name}={json.dumps(value) if isinstance(value, bool) else value}"]
    for name, value in body.get("variables", {}).items():
        args += ["--env", f"{name}={value}"]
    for name in body.get("secrets", ()):
        args += ["--secret", name]
    if "max_disk_bytes" in body:
        args += ["--max-disk", f"{body['max_disk_bytes']}B"]
    if "max_runtime_s" in body:
        args += ["--max-runtime", f"{body['max_runtime_s']}s"]
    args += [flag for name, flag in (("preemptible", "--preemptible"), ("root_inside", "--root")) if body.get(name)]
    args += [flag for name, flag in (("writes_checkpoints", "--writes-checkpoints"),) if body.get(name)]
    return shlex.join(args)


def as_curl(training: TrainingJob, address: str) -> str:
    """The request for curl; the token comes from AIP_TOKEN."""
    body = json.dumps(request_of(training), ensure_ascii=False)
    return (
        f"curl -X POST {address}/api/v1/training/jobs/ \\\n"
        '  -H "Authorization: Bearer $AIP_TOKEN" \\\n'
        '  -H "Content-Type: application/json" -H "Idempotency-Key: $(uuidgen)" \\\n'
        f"  -d {shlex.quote(body)}"
    )


def as_python(training: TrainingJob, address: str) -> str:
    """A script that needs only the standard library."""
    body = json.dumps(request_of(training), ensure_ascii=False)
    return (
        "import json, os, urllib.request, uuid\n\n"
        f"request = json.loads({body!r})\n"
        "request = urllib.request.Request(\n"
        f'    "{address}/api/v1/training/jobs/",\n'
        "    data=json.dumps(request).encode(),\n"
        "    headers={\n"
        '        "Authorization": f"Bearer {os.environ[\'AIP_TOKEN\']}",\n'
        '        "Content-Type": "application/json",\n'
        '        "Idempotency-Key": uuid.uuid4().hex,\n'
        "    },\n"
        ")\n"
        "with urllib.request.urlopen(request) as answer:\n"
        '    print(json.load(answer)["id"])\n'
    )


def pretty(training: TrainingJob) -> str:
    """The spec snapshot as the run finds it in spec.json."""
    return json.dumps(training.job.spec, ensure_ascii=False, indent=2)
