"""Data sets, versions, imports and uploads: the first three migrations in one."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('datasets', '0001_initial'),
        ('datasets', '0002_import_wishes'),
        ('datasets', '0003_visible_to_groups'),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Dataset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=25, verbose_name='name')),
                ('intro', models.CharField(max_length=50, verbose_name='introduction')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='datasets', to=settings.AUTH_USER_MODEL)),
                ('visibility', models.CharField(choices=[('private', 'Private'), ('group', 'My groups'), ('public', 'Public')], default='private', max_length=8, verbose_name='visible to')),
                ('source', models.CharField(choices=[('upload', 'Upload in the browser'), ('server', 'Data already on the server')], default='upload', max_length=8, verbose_name='source')),
                ('server_path', models.CharField(blank=True, max_length=500, verbose_name='path on the server')),
                ('deleting', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='dataset_name_once_per_owner')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='DatasetVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('dataset', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='datasets.dataset')),
                ('number', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('importing', 'Importing'), ('ready', 'Ready'), ('failed', 'Failed')], default='importing', max_length=10)),
                ('task', models.CharField(choices=[('none', 'Not annotated'), ('detection', 'Boxes and polygons'), ('classification', 'One class per image')], default='none', max_length=15)),
                ('annotated', models.BooleanField(default=False, verbose_name='annotated')),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='datasets.datasetversion')),
                ('note', models.CharField(blank=True, max_length=200)),
                ('root', models.CharField(blank=True, max_length=500)),
                ('images_root', models.CharField(blank=True, max_length=500)),
                ('classes', models.JSONField(default=list)),
                ('splits', models.JSONField(default=dict)),
                ('image_count', models.PositiveIntegerField(default=0)),
                ('annotation_count', models.PositiveIntegerField(default=0)),
                ('size_bytes', models.PositiveBigIntegerField(default=0)),
                ('manifest_sha256', models.CharField(blank=True, max_length=64)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(fields=('dataset', 'number'), name='version_number_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Asset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assets', to='datasets.datasetversion')),
                ('path', models.CharField(max_length=500)),
                ('sha256', models.CharField(max_length=64)),
                ('width', models.PositiveIntegerField()),
                ('height', models.PositiveIntegerField()),
                ('split', models.CharField(blank=True, max_length=10)),
                ('label', models.IntegerField(blank=True, null=True)),
                ('shapes', models.JSONField(default=list)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['version', 'split', 'id'], name='asset_split')],
                'constraints': [models.UniqueConstraint(fields=('version', 'path'), name='asset_path_once')],
            },
        ),
        migrations.CreateModel(
            name='AssetClass',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('asset', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='class_rows', to='datasets.asset')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='datasets.datasetversion')),
                ('class_id', models.IntegerField()),
            ],
            options={
                'indexes': [models.Index(fields=['version', 'class_id', 'asset'], name='asset_by_class')],
                'constraints': [models.UniqueConstraint(fields=('asset', 'class_id'), name='asset_class_once')],
            },
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to=settings.AUTH_USER_MODEL)),
                ('filename', models.CharField(blank=True, max_length=255)),
                ('length', models.PositiveBigIntegerField()),
                ('state', models.CharField(choices=[('open', 'Uploading'), ('done', 'Uploaded'), ('used', 'Imported')], default='open', max_length=5)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('metadata', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state', 'open')), fields=['expires_at'], name='upload_expiry')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('dataset', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='datasets.dataset')),
                ('upload', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='imports', to='datasets.upload')),
                ('server_path', models.CharField(blank=True, max_length=500)),
                ('annotated', models.BooleanField(default=False)),
                ('wanted', models.CharField(blank=True, max_length=10)),
                ('agreed', models.BooleanField(default=False)),
                ('state', models.CharField(choices=[('waiting', 'Waiting for a worker'), ('checking', 'Reading and checking'), ('reported', 'Ready to import'), ('committing', 'Importing'), ('done', 'Imported'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='waiting', max_length=10)),
                ('phase', models.CharField(blank=True, max_length=20)),
                ('done', models.PositiveBigIntegerField(default=0)),
                ('total', models.PositiveBigIntegerField(default=0)),
                ('format', models.CharField(blank=True, max_length=10)),
                ('report', models.JSONField(default=dict)),
                ('error', models.CharField(blank=True, max_length=500)),
                ('version', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='origin', to='datasets.datasetversion')),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('lease_key', models.CharField(blank=True, max_length=32)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(condition=models.Q(('state__in', ['waiting', 'checking', 'committing'])), fields=['lease_until'], name='import_sweep')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'checking', 'reported', 'committing'])), fields=('dataset',), name='one_open_import_per_dataset')],
            },
        ),
    ]
