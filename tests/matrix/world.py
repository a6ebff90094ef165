"""Seven people and one of everything, all of it Alice's and private: the ground the table stands on."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils.timezone import now

from accounts.access.permissions import ANNOTATOR, SYSTEM_ADMIN
from accounts.models import PeopleImport, SshKey, User, UserSession
from accounts.services import tokens
from aiplatform.lib.wording import verbatim
from datasets.files import homes
from datasets.models import DatasetVersion, Import
from inference.conversion import conversions
from inference.conversion.models import ConvertedVariant
from inference.delivery.edge import fleet
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from inference.evaluation import saved_parameters
from inference.registry import model_jobs
from inference.registry.models import ModelImport, ModelVersion
from inference.serving import endpoints
from inference.serving.feedback import samples
from inference.serving.keys import keys
from inference.video import analyses, files, results
from inference.video.models import VideoAnalysis
from tests.factories import annotation, datasets, models, people, training, work
from tests.factories.profiles import GPU, wrote
from tests.inference import judged, predicted
from tests.matrix import further
from training.commands import services as commands
from training.environments import services as environments
from training.experiments.models import View
from training.experiments.reports import writing as reports
from training.job_templates import services as templates
from training.runs import parameter_sets, previews
from workers.access.proxy import published_ports as ports
from workers.access.ssh.models import SshSession
from workers.core.models import (
    Alarm,
    AlarmAddress,
    AlarmRule,
    AlarmSilence,
    Approval,
    ClusterGroup,
    JoinToken,
    Membership,
    ResourceGroup,
    TimeRequest,
    VirtualCluster,
)
from workers.resources.monitoring import alarms

PEOPLE = ("anonymous", "stranger", "annotator", "member", "owner", "chief", "operator")
"""In the order of the table's columns. `annotator` works on another project, `member` shares the owner's
cluster, `chief` administers that cluster, `stranger` is a researcher of another one."""


@dataclass
class World:
    """The people by name, and the ids that stand in addresses (of the first rule that matches a route)."""

    people: dict[str, User | None]
    brought: Import | None = None
    ids: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def mend(self) -> None:
        """Put back what a cancelled import took from the disk: rows are rolled back after a request, files are not."""
        if self.brought is None:
            return
        self.brought.folder.mkdir(parents=True, exist_ok=True)
        (self.brought.folder / "problems.jsonl").write_text('["a.png", "bad_image", "problem", 1, {}]\n')

    def fill(self, route: str) -> str | None:
        """The address of `route` with the ids of Alice's things; None where no rule knows one of its parts."""
        known = next((ids for rule, ids in self.ids if re.search(rule, route)), {})
        clean = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", r"<any:\1>", route)
        clean = clean.replace("^", "").replace("$", "").replace("\\Z", "").replace("\\.", ".")
        parts = re.findall(r"<(?:\w+:)?(\w+)>", clean)
        if any(part not in known for part in parts):
            return None
        path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: str(known[match.group(1)]), clean)
        return path + ("?path=metrics.json" if path.endswith("/content/") else "")


def cast_of(cluster: VirtualCluster) -> dict[str, User | None]:
    """The seven kinds of people by name."""
    elsewhere = VirtualCluster.objects.create(name="elsewhere")
    cast: dict[str, User | None] = {
        "anonymous": None,
        "stranger": people.user("stranger", cluster=elsewhere),
        "annotator": people.user("annotator", role=ANNOTATOR),
        "member": people.user("member", cluster=cluster),
        "owner": people.user("owner", cluster=cluster),
        "chief": people.user("chief", cluster=cluster),
        "operator": people.user("operator", role=SYSTEM_ADMIN, cluster=cluster),
    }
    Membership.objects.filter(cluster=cluster, user=cast["chief"]).update(administers=True)
    return cast


def make(tmp_path: Path) -> World:
    """Make everything, by the product's own services where they exist."""
    cluster = VirtualCluster.objects.get_or_create(name="default")[0]
    cast = cast_of(cluster)
    owner = cast["owner"]
    assert owner is not None
    node = work.node(cores=8)
    version = datasets.version(datasets.dataset(owner, "private"))
    asset = version.assets.order_by("pk").first()
    brought = _import(version.dataset, owner)
    task = annotation.first_task(owner)
    trained = training.training(owner, state="running", data=version)
    run = work.run_dir(trained.job)
    run.log.write_text("said\n")
    (run.outputs / "metrics.json").write_text("{}")
    wrote(previews.profile(trained, by=owner), GPU)
    params = parameter_sets.save(user=owner, name="mine", preset="detect", params=trained.params)
    (homes.home_of(owner) / "metrics.json").write_text("{}")
    command = commands.submit(user=owner, request=commands.CommandRequest(command="true", cpus=1.0))
    template = templates.create(user=owner, name="again", kind="command", content=templates.from_job(command.job))
    listed = commands.submit(user=owner, request=commands.CommandRequest(command="true", cpus=1.0, array="1-2"))
    array = listed.job.array_id
    ports.publish(command.job, port=40_000, by=owner, name="web")
    environment = environments.submit(user=owner, request=environments.EnvironmentRequest(cpus=1.0))
    model = models.model_version(owner, tmp_path)
    evaluation = judged.evaluation(owner, tmp_path)
    shown = next(iter(sorted((evaluation.version.path / "images").rglob("*.png"))))
    service = endpoints.create(user=owner, model_version=model, name="finder")
    group = _group()
    ClusterGroup.objects.create(cluster=cluster, group=group)
    more = TimeRequest.objects.create(
        job=trained.job, requested_by=owner, span=timedelta(hours=1), reason="It learns on."
    )
    asked = Approval.objects.create(job=command.job)
    kept = ResourceGroup.objects.create(name="Night", kinds=["training"])
    alarms.ensure_rules()
    alarm = Alarm.objects.create(
        rule=AlarmRule.objects.order_by("pk")[0], subject="node1", severity="warning", raised_at=now()
    )
    silence = AlarmSilence.objects.create(rule=alarm.rule, until=now() + timedelta(hours=1))
    address = AlarmAddress.objects.create(target="operator@example.org")
    world = World(cast, brought)
    world.ids = [
        (r"^help/", {"path": "how-to/train/"}),
        (r"^(welcome|set-password)/", {"secret": "nothing"}),
        (r"^account/tokens/|me/tokens/", {"pk": tokens.issue(user=owner, name="script")[0].pk}),
        (r"^account/sessions/", {"pk": UserSession.objects.create(user=owner, session_key="a" * 32).pk}),
        (r"^account/ssh-keys/|v1/\^ssh-keys/", {"pk": _key(owner).pk}),
        (r"share/|shares/", {"kind": "dataset", "pk": version.dataset_id}),
        (r"^people/file/", {"pk": PeopleImport.objects.create(by=cast["operator"], name="people.csv").pk}),
        (r"^people/roles/|^api/v1/\^roles/", {"pk": _role().pk, "person": cast["member"].pk}),
        (r"^people/groups/|^api/v1/\^groups/", {"pk": group.pk, "person": cast["member"].pk}),
        (r"^people/|^api/v1/\^users/", {"pk": owner.pk}),
        *in_project(task, cast["member"]),
        (r"datasets/images/|assets/<int:pk>/(image|thumbnail)", {"asset_id": asset.pk, "pk": asset.pk}),
        (r"datasets/<int:dataset_pk>/versions/<int:version_pk>/assets/",
         {"dataset_pk": version.dataset_id, "version_pk": version.pk, "pk": asset.pk}),
        (r"datasets/<int:dataset_pk>/imports/", {"dataset_pk": version.dataset_id, "pk": brought.pk}),
        (r"datasets/<int:dataset_pk>/|v1/versions/", {"dataset_pk": version.dataset_id, "pk": version.pk}),
        (r"^datasets/", {
            "dataset_id": version.dataset_id, "number": version.number, "import_id": brought.pk, "act": "commit",
        }),
        (r"^api/v1/uploads/", {"pk": _upload(owner)}),
        (r"client/", {"name": "aip.pyz"}),
        (r"training/presets/|training/\^presets", {"pk": "detect"}),
        (r"training/\^?params/", {"pk": params.pk}),
        (r"training/\^?planned/", {"pk": _planned(owner, version, brought), "verb": "retry"}),
        (r"training/", {"pk": trained.pk, "job": trained.job_id, "attempt": 1, "verb": "stop"}),
        (r"experiments/runs/by-id/", {"uid": trained.job.run.uid}),
        (r"experiments/runs/|v1/\^runs/", {"pk": trained.job.run.pk}),
        (r"reports/", {"pk": reports.create(user=owner, title="Found").pk, "number": 1}),
        (r"run-views/", {"pk": View.objects.create(owner=owner, name="mine").pk}),
        (r"models/versions/|model-versions/", {"pk": model.pk}),
        (r"model-tasks/|models/tries/", {"pk": model_jobs.measure(user=owner, version=model).pk, "place": 0}),
        (r"models/imports/", {"pk": ModelImport.objects.create(owner=owner, name="waiting").pk}),
        (r"models/", {"pk": model.model_id, "name": _alias(model, owner), "rule": _rule(model, owner)}),
        (r"evaluations/sets/|evaluation-sets/", {"pk": _parameters(evaluation, owner)}),
        (r"evaluations/", {"pk": evaluation.pk, "path": shown.relative_to(evaluation.version.path / "images")}),
        (r"edge/devices/|edge-devices/", {"pk": _edge(owner).pk}),
        (r"push/pushes/|v1/\^pushes/", {"pk": models.push(owner, model).pk}),
        (r"^push/|push-targets/", {"pk": models.push(owner, model).target_id, "kind": "put"}),
        (r"edge/|edge-groups/", {"pk": (gates := _edge(owner).group).pk, "sha256": "a" * 64,
                                 "sample": _sample(gates, owner, shown)}),
        (r"conversions/", {"pk": _conversion(owner, model, evaluation.version), "target": "fp16"}),
        (r"predictions/", {"pk": predicted.begun(owner, model, version).pk, "position": 0, "form": "csv"}),
        (r"videos/files/|video-files/", {"pk": _video(owner, model).video_id}),
        (r"videos/", {"pk": _video(owner, model).pk, "name": "film.webm", "kind": "csv"}),
        (r"services/", {"pk": service.pk, "sample": _sample(service, owner, shown), "key": _opening(service, owner)}),
        (r"nodes/tokens/|join/tokens/", {"pk": _join_token(cast["operator"])}),
        (r"nodes/", {"pk": node.pk, "verb": "drain"}),
        (r"devices/", {"pk": node.devices.get().pk}),
        (r"images/(save|forget)/|v1/\^images/boxes/", {"pk": command.pk}),
        (r"images/credentials/|v1/\^registry-logins/", {"pk": _login(owner)}),
        (r"images/<int:pk>/look/", {"pk": _container(owner)}),
        (r"^images/|v1/\^images/", {"pk": _image(owner)}),
        *further.ids(owner),
        (r"commands/", {"pk": command.pk}),
        (r"jobs/.*ssh/", {"pk": trained.job_id, "session": _ssh_session(trained.job)}),
        (r"jobs/.*ports", {"pk": command.pk, "name": "web"}),
        (r"templates/", {"pk": template.pk}),
        (r"environments/", {"pk": environment.pk}),
        (r"jobs/.*media/", {"pk": trained.job_id, "item": _shown(trained.job)}),
        (r"jobs/", {"pk": trained.job_id, "verb": "stop", "name": "ports"}),
        (r"alarms/silences/", {"pk": silence.pk}),
        (r"alarms/rules/|alarm-rules/", {"pk": alarm.rule_id}),
        (r"alarms/addresses/|alarm-addresses/", {"pk": address.pk, "verb": "remove"}),
        (r"alarms/", {"pk": alarm.pk}),
        (r"resource-groups/", {"pk": kept.pk}),
        (r"time-requests/", {"pk": more.pk}),
        (r"arrays/", {"pk": array}),
        (r"approvals/<|^api/v1/\^?approvals/", {"pk": asked.pk}),
        (r"clusters/", {"pk": cluster.pk, "person": cast["member"].pk, "job": trained.job_id, "group": group.pk}),
        (r"mlflow/", {"call": "api/2.0/mlflow/runs/search"}),
        (r"notifications/", {"pk": _told(owner)}),
        (r"audit/", {"pk": _audited(owner)}),
    ]  # fmt: skip
    return world


def in_project(task: Any, member: User | None) -> list[tuple[str, dict[str, Any]]]:
    """The rules for addresses below the annotation project of an image; `member` stands in those of its people."""
    own = task.set.project_id
    label = task.set.labels.order_by("pk").first()
    export = _export(task, task.set.project.owner)
    here = {"project_pk": own, "user_pk": member.pk if member else 0}
    return [
        (r"annotation/projects/<int:project_pk>/members/", here),
        (r"annotation/projects/.*exports/", {"project_pk": own, "pk": export.pk}),
        (r"annotation/projects/.*previous/", {"project_pk": own, "pk": task.set.tasks.get(number=2).pk}),
        (r"annotation/projects/.*tasks/", {"project_pk": own, "pk": task.pk}),
        (r"annotation/projects/.*labels/<", {"project_pk": own, "set_pk": task.set_id, "pk": label.pk}),
        (r"annotation/projects/.*(labels|classes)/", {
            "project_pk": own, "set_pk": task.set_id, "label_pk": label.pk,
            "pk": task.set_id,
        }),
        (r"annotation/projects/", {"project_pk": own, "pk": task.set_id}),
    ]  # fmt: skip


def _conversion(owner: User, model: ModelVersion, data: DatasetVersion) -> int:
    """One that waits, with a variant that cannot be kept: there is no file of it."""
    made = conversions.submit(user=owner, model_version=model, version=data, split="test")
    ConvertedVariant.objects.create(conversion=made, target="fp16", state="accepted")
    return int(made.pk)


def _video(owner: User, model: ModelVersion) -> VideoAnalysis:
    """One that waits."""
    made = VideoAnalysis.objects.filter(job__owner=owner).first()
    if made is not None:
        return made
    with tempfile.NamedTemporaryFile(suffix=".mp4") as file:
        file.write(b"no film")
        file.flush()
        video = files.store(user=owner, source=Path(file.name), filename="walk.mp4")
    made = analyses.submit(user=owner, model_version=model, video=video)
    film = results.outputs(made) / results.FILM
    film.parent.mkdir(parents=True)
    film.write_bytes(b"no film")
    return made


def _edge(owner: User) -> EdgeDevice:
    """A device that was never set up."""
    group = EdgeGroup.objects.filter(owner=owner).first() or fleet.create(user=owner, name="Gates")
    return group.devices.first() or fleet.add_device(group=group, name="gate-1", by=owner)[0]


def _opening(service: Any, owner: User) -> int:
    """A key that opens the service."""
    return keys.issue(service=service, by=owner, name="partner")[0].pk


def _sample(holder: Any, owner: User, picture: Path) -> int:
    """A picture that somebody found answered wrongly."""
    return samples.store(holder=holder, picture=picture.read_bytes(), by=owner).pk


def _parameters(evaluation, owner) -> int:
    return saved_parameters.save(user=owner, name="own", **saved_parameters.from_evaluation(evaluation)).pk


def _alias(version: Any, owner: User) -> str:
    from inference.registry import aliases

    return aliases.assign(version=version, name="best", by=owner).name


def _rule(version: Any, owner: User) -> int:
    from inference.evaluation import promotion

    data = training.version(owner, "judged", task="detection")
    facts = {"metric": "ap50", "bound": 0.1, "split": "train", "gives_alias": "champion"}
    return int(promotion.add(model=version.model, by=owner, version=data, **facts).pk)


def _shown(job: Any) -> int:
    from workers.core.models import MediaItem
    from workers.jobs.output import media
    from workers.jobs.output.reporting.harvest import Shown

    media.save(media.prepare(job.attempts.get(), [Shown("image", "samples", 1, time.time(), {}, datasets.picture())]))
    return int(MediaItem.objects.get(series__attempt__job=job).pk)


def _import(dataset: Any, owner: User) -> Any:
    return Import.objects.create(dataset=dataset, created_by=owner)


def _upload(owner: User) -> str:
    from datasets.models import Upload

    return str(Upload.objects.create(id="a1" * 16, owner=owner, length=10).pk)


def _export(task: Any, owner: User) -> Any:
    from annotation.models import Export
    from annotation.services import exports

    made = exports.start(annotation_set=task.set, by=owner)
    exports.convert(made.pk)
    return Export.objects.get(pk=made.pk)


def _planned(owner: User, version: Any, brought: Any) -> int:
    from training.runs import planned
    from training.runs.drafts import TrainingRequest
    from training.runs.models import PlannedTraining

    request = planned.serialize_request(TrainingRequest(preset="detect"))
    about = {"dataset": version.dataset, "data_import": brought, "dataset_name": "private", "request": request}
    return int(PlannedTraining.objects.create(owner=owner, state="failed", **about).pk)


def _image(owner: User) -> int:
    from workers.images.models import Image
    from workers.images.store import engines

    engine = engines.current(Image(built_in="platform", kind="engine"))
    return int(Image.objects.create(kind="engine", name="mine", owner=owner, engine=engine).pk)


def _container(owner: User) -> int:
    from workers.images.models import Image

    about = {"kind": "container", "source": "hub", "reference": "docker.io/library/x:1", "state": "ready"}
    return int(Image.objects.create(name="contained", owner=owner, **about).pk)


def _login(owner: User) -> int:
    from workers.images.models import RegistryLogin

    return int(RegistryLogin.objects.create(owner=owner, host="127.0.0.1:1", username="alice").pk)


def _key(owner: User) -> Any:
    return SshKey.objects.create(
        user=owner, name="laptop", kind="ssh-ed25519", line="ssh-ed25519 AAAA", fingerprint="a"
    )


def _role() -> Any:
    from accounts.models import Role

    return Role.objects.create(name="Helper", actions=["overview.view"])


def _group() -> Any:
    from accounts.models import UserGroup

    return UserGroup.objects.create(name="Lab", description="All of us")


def _audited(owner: User) -> int:
    from accounts.services import audit

    return int(audit.record(owner, "people.invite", owner).pk)


def _join_token(operator: User) -> int:
    return int(JoinToken.objects.create(digest="0" * 64, prefix="aipn_", made_by=operator, expires_at=now()).pk)


def _ssh_session(job: Any) -> int:
    return int(SshSession.objects.create(job=job, user=job.owner, way="key", gateway="gone").pk)


def _told(owner: User) -> int:
    from accounts.models import Notification
    from accounts.services.notify import KINDS, notify

    notify(owner, KINDS.names()[0], title=verbatim("It ended."), key="job:1")
    return int(Notification.objects.get(user=owner, key="job:1").pk)
