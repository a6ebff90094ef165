"""Trainings and commands that were there before become runs, with the parameters of the trainings."""

import json
from secrets import token_hex

from django.db import migrations

from aiplatform.lib.secret_names import mask_params

AT_ONCE = 500


def record(apps, _editor):
    """Record each once; done twice it does the same."""
    run, param = apps.get_model("experiments", "Run"), apps.get_model("experiments", "Param")
    trainings, commands = apps.get_model("training", "TrainingJob"), apps.get_model("commands", "Command")
    params = dict(trainings.objects.values_list("job_id", "params"))
    jobs = [*params, *commands.objects.values_list("job_id", flat=True)]
    known = set(run.objects.values_list("job_id", flat=True))
    owners = apps.get_model("workers", "Job").objects.in_bulk
    new = sorted(set(jobs) - known)
    for first in range(0, len(new), AT_ONCE):
        found = owners(new[first : first + AT_ONCE])
        made = run.objects.bulk_create(
            run(uid=token_hex(16), job=job, owner_id=job.owner_id, created_at=job.created_at) for job in found.values()
        )
        param.objects.bulk_create(
            [
                param(run=row, key=str(key)[:250], text=_text(value), number=_number(value))
                for row in made
                for key, value in mask_params(params.get(row.job_id) or {}).items()
            ],
            batch_size=AT_ONCE,
        )


def _text(value):
    return value[:6000] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:6000]


def _number(value):
    if isinstance(value, str):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < 1e308 else None


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0001_runs"),
        ("training", "0007_training_defaults"),
        ("commands", "0003_more_launchers"),
    ]
    operations = [migrations.RunPython(record, migrations.RunPython.noop)]
