"""Annotation projects, images, shapes, roles and reviews: the first two migrations in one."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('annotation', '0001_annotation'),
        ('annotation', '0002_roles_and_review'),
    ]

    dependencies = [
        ('datasets', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AnnotationProject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=15, verbose_name='name')),
                ('intro', models.CharField(max_length=50, validators=[django.core.validators.MinLengthValidator(10), django.core.validators.MaxLengthValidator(50)], verbose_name='introduction')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='owned_annotation_projects', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name': 'annotation project',
                'verbose_name_plural': 'annotation projects',
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='annotation_project_once_per_owner')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='AnnotationSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sets', to='annotation.annotationproject', verbose_name='project')),
                ('name', models.CharField(max_length=25, verbose_name='name')),
                ('intro', models.CharField(max_length=50, verbose_name='introduction')),
                ('visibility', models.CharField(choices=[('private', 'Members of the project'), ('public', 'Everyone who may annotate')], default='private', max_length=8, verbose_name='open to')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='annotation_sets', to='datasets.datasetversion', verbose_name='source')),
                ('kind', models.CharField(choices=[('image', 'Images')], default='image', max_length=8, verbose_name='type')),
                ('filled', models.BooleanField(default=False, editable=False)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name': 'annotation dataset',
                'verbose_name_plural': 'annotation datasets',
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='annotation_set_once_per_project')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Export',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exports', to='annotation.annotationset')),
                ('target', models.CharField(choices=[('coco', 'COCO (boxes and polygons)')], default='coco', max_length=8, verbose_name='format')),
                ('state', models.CharField(choices=[('queued', 'Waiting'), ('converting', 'Converting'), ('success', 'Converted'), ('failed', 'Failed')], default='queued', editable=False, max_length=10)),
                ('make_version', models.BooleanField(default=True)),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='datasets.datasetversion')),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('path', models.CharField(blank=True, max_length=500)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('size_bytes', models.PositiveBigIntegerField(default=0)),
                ('images', models.PositiveIntegerField(default=0)),
                ('annotations', models.PositiveIntegerField(default=0)),
                ('left_out', models.PositiveIntegerField(default=0)),
                ('detail', models.CharField(blank=True, max_length=500)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('alive_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'conversion',
                'verbose_name_plural': 'conversions',
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['queued', 'converting'])), fields=('set',), name='one_conversion_at_a_time')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ImageTask',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='annotation.annotationset')),
                ('asset', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='datasets.asset')),
                ('number', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('new', 'New'), ('in_progress', 'In progress'), ('submitted', 'Submitted'), ('rejected', 'Sent back'), ('accepted', 'Accepted')], default='new', max_length=11)),
                ('empty', models.BooleanField(default=False)),
                ('shape_count', models.PositiveIntegerField(default=0)),
                ('rev', models.PositiveIntegerField(default=0)),
                ('updated_at', models.DateTimeField(blank=True, null=True)),
                ('updated_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submitted_at', models.DateTimeField(blank=True, null=True)),
                ('remark', models.CharField(blank=True, max_length=500)),
            ],
            options={
                'verbose_name': 'image',
                'verbose_name_plural': 'images',
                'ordering': ['set', 'number'],
                'indexes': [models.Index(fields=['set', 'state', 'number'], name='image_task_state')],
                'constraints': [models.UniqueConstraint(fields=('set', 'number'), name='image_task_number_once'), models.UniqueConstraint(fields=('set', 'asset'), name='image_task_asset_once')],
            },
        ),
        migrations.CreateModel(
            name='LabelClass',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='annotation.annotationset')),
                ('coco_id', models.PositiveIntegerField()),
                ('name', models.CharField(max_length=50, verbose_name='name')),
                ('supercategory', models.CharField(max_length=50, verbose_name='parent type')),
                ('shape', models.CharField(choices=[('polygon', 'Polygon'), ('bbox', 'Box')], default='polygon', max_length=8, verbose_name='drawn as')),
                ('colour', models.CharField(max_length=7, validators=[django.core.validators.RegexValidator('^#[0-9a-f]{6}\\Z', 'A colour like #1c7ed6.')], verbose_name='colour')),
                ('retired', models.BooleanField(default=False, editable=False)),
            ],
            options={
                'verbose_name': 'class',
                'verbose_name_plural': 'classes',
                'ordering': ['coco_id'],
                'constraints': [models.UniqueConstraint(fields=('set', 'coco_id'), name='label_id_once_per_set'), models.UniqueConstraint(condition=models.Q(('retired', False)), fields=('set', 'name'), name='label_name_once_per_set'), models.CheckConstraint(condition=models.Q(('coco_id__gte', 1)), name='label_ids_count_from_one')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ProjectMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='annotation.annotationproject')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='annotation_memberships', to=settings.AUTH_USER_MODEL)),
                ('role', models.CharField(choices=[('viewer', 'Viewer'), ('annotator', 'Annotator'), ('reviewer', 'Reviewer'), ('manager', 'Manager')], default='annotator', max_length=9, verbose_name='role')),
                ('added_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'user'), name='annotation_member_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Review',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reviews', to='annotation.imagetask')),
                ('verdict', models.CharField(choices=[('accepted', 'Accepted'), ('rejected', 'Sent back')], max_length=8)),
                ('comment', models.CharField(blank=True, max_length=500)),
                ('rev', models.PositiveIntegerField()),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name': 'review',
                'verbose_name_plural': 'reviews',
                'ordering': ['-id'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Shape',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shapes', to='annotation.imagetask')),
                ('uuid', models.UUIDField()),
                ('label', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='shapes', to='annotation.labelclass')),
                ('kind', models.CharField(choices=[('bbox', 'Box'), ('polygon', 'Polygon')], max_length=8)),
                ('rings', models.JSONField()),
                ('x', models.FloatField()),
                ('y', models.FloatField()),
                ('width', models.FloatField()),
                ('height', models.FloatField()),
                ('area', models.FloatField()),
                ('source', models.CharField(choices=[('manual', 'Drawn'), ('model', 'Suggested by a model')], default='manual', max_length=8)),
                ('rev', models.PositiveIntegerField(default=1)),
                ('deleted', models.BooleanField(default=False)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('updated_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('task', 'uuid'), name='shape_uuid_once_per_image'), models.CheckConstraint(condition=models.Q(('area__gt', 0)), name='shape_covers_something')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ShapeEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='annotation.imagetask')),
                ('uuid', models.UUIDField()),
                ('shape', models.UUIDField()),
                ('op', models.CharField(choices=[('put', 'Drawn or changed'), ('delete', 'Deleted')], max_length=6)),
                ('rev', models.PositiveIntegerField()),
                ('data', models.JSONField(null=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('task', 'uuid'), name='shape_event_once'), models.UniqueConstraint(fields=('task', 'shape', 'rev'), name='shape_revision_once')],
                'indexes': [],
            },
        ),
        migrations.AddField(
            model_name='AnnotationProject',
            name='members',
            field=models.ManyToManyField(related_name='annotation_projects', through='annotation.ProjectMember', through_fields=('project', 'user'), to=settings.AUTH_USER_MODEL),
        ),
    ]
