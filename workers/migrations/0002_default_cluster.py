"""One cluster with everything in it, so that a bare machine works at once."""

from django.db import migrations


def add(apps, schema_editor):
    apps.get_model("workers", "VirtualCluster").objects.get_or_create(name="default")


class Migration(migrations.Migration):
    dependencies = [("workers", "0001_initial")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
