"""`manage.py demo`: take a small data set to a served model, on the running platform."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.access.permissions import USER
from accounts.models import Role, User
from accounts.services import tokens
from aiplatform.cli.demo import digits, verdict
from aiplatform.cli.demo.main_job import MainJob, connect
from aiplatform.client.errors import ClientError
from workers.core.models import VirtualCluster
from workers.resources.clusters import members

STEPS_PER_MINUTE = 180  # of learning, what two free cores do in a demo of two minutes
TIMEOUT = 3.0  # the longest it may take, in times of what was asked for


class Command(BaseCommand):
    help = "Create a dataset of digits and run upload, annotation, training, evaluation and serving on it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="address of the platform")
        parser.add_argument("--minutes", type=float, default=2.0, help="training time")
        parser.add_argument(
            "--images", type=int, default=sum(digits.COUNTS.values()), help="number of images to create"
        )
        parser.add_argument("--json", action="store_true", help="end with one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        token = _researcher()
        started = time.monotonic()

        def log(text: str) -> None:
            if not options["json"]:
                self.stdout.write(f"demo │ {time.monotonic() - started:5.0f} s │ {text}")
                self.stdout.flush()

        with tempfile.TemporaryDirectory(prefix="aip-demo-") as scratch:
            main = MainJob(connect(options["url"], token), Path(scratch), log)
            try:
                summary = run(main, minutes=options["minutes"], images=options["images"])
            except ClientError as exc:
                raise CommandError(f"The demo stopped: {exc}") from exc
        if options["json"]:
            self.stdout.write(json.dumps(summary))
        else:
            self.stdout.write(_screen(summary))
        if not summary["works"]:
            raise CommandError(f"{summary['verdict']} {summary['why']}")


def run(main: MainJob, *, minutes: float, images: int) -> dict[str, Any]:
    """Run the whole demo once and return its summary.

    Args:
        minutes: budget of the training.
        images: drawn in all; split into train, val and test as 71, 11 and 18 %.
    """
    stamp = time.strftime("%m%d_%H%M%S")
    share = images / sum(digits.COUNTS.values())
    counts = {split: max(4, round(count * share)) for split, count in digits.COUNTS.items()}
    made = digits.draw(counts, classes=digits.CLASSES)
    plain = digits.draw({"": 6}, classes=digits.CLASSES, seed=11)
    folder = digits.write(main.folder / "digits", made, annotated=True)
    bare = digits.write(main.folder / "plain", plain, annotated=False)

    dataset = main.step(
        "upload", lambda: main.bring_in(f"digits {stamp}", "Digits on textured grounds", folder), "Upload and import"
    )
    raw = main.step(
        "upload_plain", lambda: main.bring_in(f"plain {stamp}", "Digits without boxes", bare), "Upload plain images"
    )
    drawn = main.step(
        "annotate",
        lambda: main.annotate(raw["version"], plain, project_name=f"digits {stamp}"),
        "Annotate, convert to COCO, freeze",
    )
    params = {
        "steps": round(STEPS_PER_MINUTE * minutes),
        "budget_minutes": TIMEOUT * minutes,  # on busy cores the same steps take longer
        "flip": 0,  # mirrored digits are other digits
    }
    training = main.step(
        "train",
        lambda: main.train(dataset["version"], f"digits_{stamp}", params, cpus=2, minutes=minutes),
        f"Train the detector: {minutes:g} min on free cores, at most {TIMEOUT * minutes:g} on busy ones",
    )
    model = main.step("register", lambda: main.model_of(training), "Find the model in the registry")
    evaluation = main.step(
        "evaluate", lambda: main.evaluate(model["id"], dataset["version"], split="test"), "Evaluate on the test split"
    )
    service = main.step("serve", lambda: main.serve(model["id"], f"digits_{stamp}"), "Start the endpoint")
    drawing = next(item for item in made if item.split == "test")
    metrics, picture = evaluation["metrics"], folder / "images" / drawing.name
    answer = main.step(
        "predict",
        lambda: main.predict(service["slug"], picture, threshold=metrics["threshold"]),
        "Predict one image",
    )
    result = verdict.judge(metrics["ap50"], training.get("metrics") or {}, minutes=minutes)
    return {
        "works": result.works,
        "verdict": result.headline,
        "why": result.why,
        "images": len(made),
        "annotations": sum(len(item.boxes) for item in made),
        "drawn_by_hand": drawn["shapes"],
        "job": {"id": training["job"], "state": training["state"]},
        "seconds": main.seconds,
        "map": metrics["map"],
        "ap50": metrics["ap50"],
        "model": f"{model['model_name']} v{model['number']}",
        "service": service["url"],
        "prediction": answer,
        "truth": len(drawing.boxes),
    }


def _researcher() -> str:
    """Make a person named demo who can only be used with this token, valid for a day."""
    person, made = User.objects.get_or_create(username="demo", defaults={"nickname": "Demo"})
    if made:
        person.set_unusable_password()
        person.save(update_fields=["password"])
    person.roles.add(Role.objects.get(name=USER))
    cluster = VirtualCluster.objects.open().order_by("pk").first()
    if cluster is None:
        sys.exit("No cluster exists. Create one on the Virtual clusters page first.")
    members.add(cluster, [person])
    _token, secret = tokens.issue(user=person, name="demo", expires_in=timedelta(days=1))
    return secret


def _screen(summary: dict[str, Any]) -> str:
    steps = "\n".join(f"    {name:<14}{seconds:7.1f} s" for name, seconds in summary["seconds"].items())
    predictions = summary["prediction"]["predictions"]
    return f"""
  {summary["verdict"]}
  {summary["why"]}
  What the demo did
    images        {summary["images"]} with {summary["annotations"]} boxes, {summary["drawn_by_hand"]} more drawn by hand
    training      job {summary["job"]["id"]}, {summary["job"]["state"]}
    model         {summary["model"]}
    test split    mAP {summary["map"]:.3f}, AP50 {summary["ap50"]:.3f}
    one image     {len(predictions)} found, {summary["truth"]} there
    service       {summary["service"]}
  Seconds
{steps}
"""
