"""Say of versions that trainings left which version they began with, and which they learned after."""

import re

from django.db import migrations

NAMED = re.compile(r"(?P<owner>[^/]+)/(?P<name>[^/]+) v(?P<number>\d{1,9})")
PARTS = (("parent", "weights"), ("teacher", "teacher"))


def forwards(apps, schema_editor):
    versions = apps.get_model("inference", "ModelVersion").objects
    params = dict(apps.get_model("training", "TrainingJob").objects.values_list("job_id", "params"))
    for version in versions.filter(source="training", job__isnull=False).iterator():
        changed = []
        for column, name in PARTS:
            words = str((params.get(version.job_id) or {}).get(name) or "")
            if not words:
                continue
            setattr(version, f"{column}_label", words[:220])
            changed.append(f"{column}_label")
            parts = NAMED.fullmatch(words)
            found = parts and versions.filter(
                model__owner__username=parts["owner"], model__name=parts["name"], number=int(parts["number"])
            ).first()
            if found and found.pk != version.pk:
                setattr(version, column, found)
                changed.append(column)
        if changed:
            version.save(update_fields=changed)


class Migration(migrations.Migration):
    dependencies = [("inference", "0006_registry"), ("training", "0007_training_defaults")]

    operations = [migrations.RunPython(forwards, migrations.RunPython.noop)]
