from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("datasets", "0008_versions_split_anew")]

    operations = [
        migrations.AddField("import", "options", models.JSONField(default=dict)),
        migrations.AddField("import", "creates_dataset", models.BooleanField(default=False)),
        migrations.AlterField("import", "format", models.CharField(blank=True, max_length=20)),
        migrations.AlterField("import", "wanted", models.CharField(blank=True, max_length=20)),
    ]
