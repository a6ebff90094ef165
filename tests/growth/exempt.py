"""Modules that parse without an entry in the registry, and why: prefix of the module → reason.

The longest prefix counts. `JSON_ONLY` is allowed because the parser is linear whatever the text, and the registry
measures it; such a module limits the bytes itself.
"""

OWN = "reads what the platform itself wrote"
IN_JOB = "runs in the process of a job"
CLIENT = "runs on the computer of the user, or by hand on the server"
NODE = "reads what the agent or the supervisor of the same node wrote"
JSON_ONLY = "json.loads alone, of at most {limit}"
DATA = "runs in the import worker; entries follow with the readers of data sets"
IMAGES = "Pillow, under limits of pixels and bytes"

EXEMPT: dict[str, str] = {
    "aiplatform.cli": CLIENT,
    "workers.management": CLIENT,
    "workers.simulator": CLIENT,
    "aiplatform.lib.idempotency": OWN,
    "aiplatform.lib.plain_cache": OWN,
    "aiplatform.lib.sealed": OWN,
    "aiplatform.lib.archives": "counts and sizes are limited before anything is unpacked, see tests/attacks",
    "datasets.formats": DATA,
    "datasets.services": DATA,
    "datasets.inspector": DATA,
    "datasets.pictures": IMAGES,
    "inference.batch.predictions": OWN,
    "inference.batch.results": JSON_ONLY.format(limit="MOST_BYTES"),
    "inference.composing.composing": OWN,
    "inference.conversion": JSON_ONLY.format(limit="MOST_BYTES"),
    "inference.converter": IN_JOB,
    "inference.edge.device": "runs on a device",
    "inference.edge.device_api": JSON_ONLY.format(limit="1,000,000 characters"),
    "inference.edge.keys": OWN,
    "inference.evaluator": IN_JOB,
    "inference.feedback.api": JSON_ONLY.format(limit="1,000,000 characters"),
    "inference.measuring": IN_JOB,
    "inference.monitoring.collecting": JSON_ONLY.format(limit="MOST_BYTES"),
    "inference.pipelines.forms": JSON_ONLY.format(limit="the limit of a form"),
    "inference.pipelines.loop": OWN,
    "inference.pipelines.steps.other": JSON_ONLY.format(limit="MOST_BYTES"),
    "inference.pipelines.trigger_api": JSON_ONLY.format(limit="MOST_BODY"),
    "inference.predictor": IN_JOB,
    "inference.push": JSON_ONLY.format(limit="the answer's limit in wire.py"),
    "inference.selftest": JSON_ONLY.format(limit="MOST_READ"),
    "inference.server": "runs in the process of a model server",
    "inference.services.evaluations": OWN,
    "inference.services.mending": OWN,
    "inference.services.model_jobs": JSON_ONLY.format(limit="MOST_SAID_BYTES"),
    "inference.services.packaging": OWN,
    "inference.services.results": OWN,
    "inference.targets": IN_JOB,
    "inference.task_kinds": IN_JOB,
    "inference.traffic": JSON_ONLY.format(limit="the answer's limit of the proxy"),
    "inference.trier": IN_JOB,
    "inference.trying.results": JSON_ONLY.format(limit="MOST_BYTES"),
    "inference.video": JSON_ONLY.format(limit="the limit of a form, or MOST_BYTES"),
    "inference.watcher": IN_JOB,
    "training.environments.jupyter": JSON_ONLY.format(limit="MOST_BYTES"),
    "training.experiments.models": OWN,
    "training.presets": IN_JOB,
    "training.programs.launcher": IN_JOB,
    "training.services.checkpoints": JSON_ONLY.format(limit="MAX_META_BYTES"),
    "training.services.pictures": JSON_ONLY.format(limit="MAX_FACTS_BYTES"),
    "training.services.results": JSON_ONLY.format(limit="MAX_FIGURES_BYTES"),
    "training.studies.decider": OWN,
    "training.studies.requests": OWN,
    "training.studies.values": JSON_ONLY.format(limit="a line of the metrics file"),
    "workers.exec": NODE,
    "workers.execution": NODE,
    "workers.images.builder": IN_JOB,
    "workers.images.containers.archive": OWN,
    "workers.images.containers.registry": JSON_ONLY.format(limit="MOST_TOKEN"),
    "workers.images.kind": JSON_ONLY.format(limit="LONGEST"),
    "workers.images.services.archive": OWN,
    "workers.images.services.unpacking": "runs in the worker that brings images; sizes are limited while it reads",
    "workers.kinds": OWN,
    "workers.output.device_errors": NODE,
    "workers.output.metrics": JSON_ONLY.format(limit="LONGEST_LINE"),
    "workers.output.reporting": JSON_ONLY.format(limit="LARGEST, or the limit of a line"),
    "workers.output.reporting.pictures": IMAGES,
    "workers.ssh": JSON_ONLY.format(limit="a frame of the channel"),
    "workers.supervisor": NODE,
}
