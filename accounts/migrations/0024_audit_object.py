from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0023_annotator_role")]
    operations = [
        migrations.AlterField(
            model_name="auditentry",
            name="target",
            field=models.CharField(blank=True, editable=False, max_length=200, verbose_name="object"),
        ),
    ]
