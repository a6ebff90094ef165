from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workers', '0034_mps'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='phase_done',
            field=models.BigIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='phase_total',
            field=models.BigIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='phase_times',
            field=models.JSONField(blank=True, default=dict, editable=False),
        ),
        migrations.AlterField(
            model_name='job',
            name='phase',
            field=models.CharField(blank=True, choices=[('', ''), ('packing', 'Preparing data'), ('masks', 'Preparing masks'), ('learning', 'Training'), ('converting', 'Converting'), ('calibrating', 'Calibrating'), ('searching', 'Finding sensitive layers'), ('scoring', 'Evaluating'), ('altered', 'Evaluating altered images'), ('computing', 'Computing metrics'), ('predicting', 'Predicting'), ('measuring', 'Measuring speed'), ('exporting', 'Exporting the model')], editable=False, max_length=12),
        ),
    ]
