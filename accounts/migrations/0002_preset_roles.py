"""The three roles every installation has."""

from django.db import migrations

from accounts.access.permissions import ANNOTATOR, PRESET_ROLES, SYSTEM_ADMIN, USER

DESCRIPTIONS = {
    SYSTEM_ADMIN: "Everything, including people and clusters",
    USER: "The whole platform but people and clusters",
    ANNOTATOR: "Annotate images, nothing else",
}


def add(apps, schema_editor):
    role = apps.get_model("accounts", "Role")
    for name, actions in PRESET_ROLES.items():
        role.objects.update_or_create(
            name=name,
            defaults={"preset": True, "description": DESCRIPTIONS[name], "actions": sorted(a.value for a in actions)},
        )


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
