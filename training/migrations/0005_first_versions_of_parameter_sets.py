from django.db import migrations


def first_versions(apps, schema_editor):
    """What each set says now is its version 1."""
    sets = apps.get_model("training", "ParameterSet").objects.all()
    versions = apps.get_model("training", "ParameterSetVersion").objects
    versions.bulk_create(
        [
            versions.model(
                parameter_set_id=row.pk, number=row.number, params=row.params,
                made_by_id=row.owner_id, made_at=row.updated_at,
            )
            for row in sets.filter(versions=None)
        ],
        batch_size=500,
    )  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("training", "0004_parameter_set_versions")]

    operations = [migrations.RunPython(first_versions, migrations.RunPython.noop)]
