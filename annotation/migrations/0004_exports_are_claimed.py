"""Columns of aiplatform.lib.claims."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("annotation", "0003_shape_kinds"),
    ]

    operations = [
        migrations.AddField(
            model_name="export",
            name="holder",
            field=models.CharField(blank=True, editable=False, max_length=100, default=""),
            preserve_default=False,
        ),
        migrations.RenameField(model_name="export", old_name="alive_at", new_name="renewed_at"),
        migrations.AlterField(
            model_name="export",
            name="renewed_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
