import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workers', '0028_dependency_outputs'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='metrics_step',
            field=models.BigIntegerField(default=0),
        ),
        migrations.CreateModel(
            name='Curve',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=60)),
                ('count', models.PositiveBigIntegerField()),
                ('step', models.BigIntegerField()),
                ('value', models.FloatField()),
                ('at', models.DateTimeField()),
                ('lowest', models.FloatField()),
                ('lowest_step', models.BigIntegerField()),
                ('highest', models.FloatField()),
                ('highest_step', models.BigIntegerField()),
                ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='curves', to='workers.attempt')),
            ],
        ),
        migrations.AddConstraint(
            model_name='curve',
            constraint=models.UniqueConstraint(fields=('attempt', 'key'), name='curve_once'),
        ),
    ]
