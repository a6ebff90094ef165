"""Columns of aiplatform.lib.claims: the last sign of life instead of the end of the lease."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [
        ("datasets", "0004_annotation_kinds_are_registered"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="import", name="import_sweep"),
        migrations.RenameField(model_name="import", old_name="lease_key", new_name="holder"),
        migrations.AlterField(
            model_name="import", name="holder", field=models.CharField(blank=True, max_length=100)
        ),
        migrations.RenameField(model_name="import", old_name="lease_until", new_name="renewed_at"),
        migrations.AddIndex(
            model_name="import",
            index=models.Index(
                condition=Q(("state__in", ["waiting", "checking", "committing"])),
                fields=["renewed_at"],
                name="import_sweep",
            ),
        ),
    ]
