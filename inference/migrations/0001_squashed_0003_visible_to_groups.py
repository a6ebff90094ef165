"""Models, evaluations and services: the first three migrations in one."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('inference', '0001_initial'),
        ('inference', '0002_service_outlives_its_model'),
        ('inference', '0003_visible_to_groups'),
    ]

    dependencies = [
        ('datasets', '0001_initial'),
        ('workers', '0002_default_cluster'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Model',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9_]+\\Z', 'Letters, digits and underscore only.')], verbose_name='name')),
                ('description', models.CharField(blank=True, max_length=500, verbose_name='description')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='models', to=settings.AUTH_USER_MODEL)),
                ('visibility', models.CharField(choices=[('private', 'Private'), ('group', 'My groups'), ('public', 'Public')], default='private', max_length=8, verbose_name='visible to')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='model_name_once_per_owner')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ModelVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='inference.model')),
                ('number', models.PositiveIntegerField()),
                ('task', models.CharField(choices=[('detection', 'Detection'), ('classification', 'Classification'), ('tensor', 'Tensors only'), ('weights', 'Weights only')], max_length=15)),
                ('source', models.CharField(choices=[('training', 'Training'), ('upload', 'Upload')], max_length=8)),
                ('architecture', models.CharField(blank=True, max_length=100)),
                ('preset', models.CharField(blank=True, max_length=50)),
                ('classes', models.JSONField(default=list)),
                ('metrics', models.JSONField(default=dict)),
                ('params', models.JSONField(default=dict)),
                ('facts', models.JSONField(default=dict)),
                ('files', models.JSONField(default=list)),
                ('size_bytes', models.PositiveBigIntegerField(default=0)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('job', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='model_versions', to='workers.job')),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('dataset_version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='models', to='datasets.datasetversion')),
                ('dataset_label', models.CharField(blank=True, max_length=80)),
                ('code_label', models.CharField(blank=True, max_length=300)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(fields=('model', 'number'), name='model_version_number_once'), models.UniqueConstraint(condition=models.Q(('job__isnull', False)), fields=('job', 'attempt'), name='model_once_per_attempt')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Evaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='evaluation', to='workers.job')),
                ('model_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='evaluations', to='inference.modelversion')),
                ('model_label', models.CharField(max_length=120)),
                ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='evaluations', to='datasets.datasetversion')),
                ('version_label', models.CharField(max_length=80)),
                ('split', models.CharField(blank=True, max_length=10, verbose_name='split')),
                ('task', models.CharField(max_length=15)),
                ('params', models.JSONField(default=dict)),
                ('metrics', models.JSONField(default=dict)),
                ('published_attempt', models.PositiveIntegerField(default=0)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Service',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=50, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9_]+\\Z', 'Letters, digits and underscore only.')], verbose_name='name')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('description', models.CharField(blank=True, max_length=200, verbose_name='description')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='services', to=settings.AUTH_USER_MODEL)),
                ('visibility', models.CharField(choices=[('private', 'Private'), ('group', 'My groups'), ('public', 'Public')], default='private', max_length=8, verbose_name='who may call it')),
                ('model_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='services', to='inference.modelversion')),
                ('model_label', models.CharField(blank=True, max_length=130)),
                ('job', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='services', to='workers.job')),
                ('ready_attempt', models.PositiveIntegerField(default=0)),
                ('options', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='service_name_once_per_owner')],
                'indexes': [],
            },
        ),
    ]
