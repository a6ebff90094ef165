import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0008_formats_of_exports"), ("datasets", "0009_import_options")]

    operations = [
        migrations.AddField(
            "export",
            "dataset",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="datasets.dataset",
            ),
        ),
    ]
