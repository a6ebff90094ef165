from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workers", "0037_plain_texts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="phase",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", ""),
                    ("loading", "Loading the model"),
                    ("packing", "Preparing data"),
                    ("masks", "Preparing masks"),
                    ("learning", "Training"),
                    ("converting", "Converting"),
                    ("calibrating", "Calibrating"),
                    ("searching", "Finding sensitive layers"),
                    ("scoring", "Evaluating"),
                    ("altered", "Evaluating altered images"),
                    ("computing", "Computing metrics"),
                    ("predicting", "Predicting"),
                    ("measuring", "Measuring speed"),
                    ("exporting", "Exporting the model"),
                ],
                editable=False,
                max_length=12,
            ),
        ),
    ]
