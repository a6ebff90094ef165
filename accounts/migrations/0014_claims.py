"""Columns of aiplatform.lib.claims."""

from django.db import migrations, models

HOLDER = models.CharField(blank=True, max_length=100, default="")


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0013_identities"),
    ]

    operations = [
        migrations.AddField(model_name="delivery", name="holder", field=HOLDER, preserve_default=False),
        migrations.RenameField(model_name="delivery", old_name="claimed_at", new_name="renewed_at"),
        migrations.AddField(model_name="peopleimport", name="holder", field=HOLDER, preserve_default=False),
        migrations.RenameField(model_name="peopleimport", old_name="touched_at", new_name="renewed_at"),
        migrations.AlterField(
            model_name="peopleimport", name="renewed_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="peopleimport", name="tries", field=models.PositiveSmallIntegerField(default=0)
        ),
        migrations.AddField(model_name="keptanswer", name="holder", field=HOLDER, preserve_default=False),
        migrations.AddField(
            model_name="keptanswer", name="renewed_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="keptanswer", name="tries", field=models.PositiveSmallIntegerField(default=0)
        ),
    ]
