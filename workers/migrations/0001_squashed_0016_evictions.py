"""Clusters, machines, jobs, alarms and history: the first sixteen migrations in one.

Left out is the step that a new database does not need: the move of cards per cluster into quotas (0006).
A database that has some of the sixteen goes on by them.
"""

import datetime
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


def add_default_cluster(apps, schema_editor):
    """One cluster with everything in it, so that a bare machine works at once."""
    apps.get_model("workers", "VirtualCluster").objects.get_or_create(name="default")


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('workers', '0001_initial'),
        ('workers', '0002_default_cluster'),
        ('workers', '0003_shares_and_bounds'),
        ('workers', '0004_nodes_join_and_leave'),
        ('workers', '0005_cluster_quotas_and_bounds'),
        ('workers', '0006_move_gpu_quotas'),
        ('workers', '0007_gpu_quotas_moved'),
        ('workers', '0008_alarms_and_history'),
        ('workers', '0009_more_time'),
        ('workers', '0010_a_card_may_fail'),
        ('workers', '0011_idle_cards'),
        ('workers', '0012_logs_know_their_length'),
        ('workers', '0013_resource_groups'),
        ('workers', '0014_listening_without_a_gap'),
        ('workers', '0015_attempt_sandbox'),
        ('workers', '0016_evictions'),
    ]

    dependencies = [
        ('accounts', '0007_notifications'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AlarmAddress',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(choices=[('mail', 'Mail'), ('webhook', 'Webhook')], default='mail', max_length=8, verbose_name='way')),
                ('target', models.CharField(max_length=500, verbose_name='address')),
                ('least', models.CharField(choices=[('info', 'Note'), ('warning', 'Warning'), ('critical', 'Critical')], default='warning', max_length=8, verbose_name='from severity')),
                ('enabled', models.BooleanField(default=True, verbose_name='on')),
                ('secret', models.CharField(blank=True, editable=False, max_length=64)),
                ('made_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                'ordering': ['channel', 'target'],
                'constraints': [models.UniqueConstraint(fields=('channel', 'target'), name='alarm_address_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='AlarmRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(editable=False, max_length=30, unique=True)),
                ('enabled', models.BooleanField(default=True, verbose_name='on')),
                ('severity', models.CharField(choices=[('info', 'Note'), ('warning', 'Warning'), ('critical', 'Critical')], default='warning', max_length=8, verbose_name='severity')),
                ('threshold', models.FloatField(default=0.0, verbose_name='threshold')),
                ('for_s', models.PositiveIntegerField(default=0, verbose_name='must last (s)')),
                ('send', models.BooleanField(default=True, verbose_name='mail and webhooks')),
            ],
            options={
                'ordering': ['pk'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Alarm',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alarms', to='workers.alarmrule')),
                ('subject', models.CharField(max_length=120)),
                ('severity', models.CharField(choices=[('info', 'Note'), ('warning', 'Warning'), ('critical', 'Critical')], max_length=8)),
                ('value', models.FloatField(default=0.0)),
                ('facts', models.JSONField(default=dict)),
                ('seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('raised_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('told_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('rule', 'subject'), name='alarm_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='AlarmSilence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rule', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='silences', to='workers.alarmrule')),
                ('subject', models.CharField(blank=True, max_length=120)),
                ('until', models.DateTimeField()),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('made_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['until'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Lease',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=30, unique=True)),
                ('holder', models.CharField(max_length=100)),
                ('epoch', models.PositiveBigIntegerField(default=0)),
                ('renewed_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('watched_since', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Node',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True)),
                ('state', models.CharField(choices=[('live', 'Live'), ('suspect', 'Suspect'), ('unreachable', 'Unreachable'), ('lost', 'Lost'), ('draining', 'Draining'), ('removed', 'Removed')], default='live', max_length=12)),
                ('drain', models.BooleanField(default=False)),
                ('machine', models.CharField(blank=True, max_length=64)),
                ('boot_id', models.CharField(blank=True, max_length=40)),
                ('heartbeat_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('address', models.CharField(default='127.0.0.1', max_length=100)),
                ('cpu_cores', models.PositiveIntegerField(default=1)),
                ('memory_mib', models.PositiveIntegerField(default=0)),
                ('sandbox_tier', models.PositiveSmallIntegerField(default=0)),
                ('evicts', models.BooleanField(default=False)),
                ('evict_can', models.JSONField(default=dict)),
                ('evict_proof', models.JSONField(default=dict)),
                ('facts', models.JSONField(default=dict)),
                ('joined_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['name'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Device',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='devices', to='workers.node')),
                ('kind', models.CharField(choices=[('gpu', 'GPU'), ('npu', 'NPU'), ('cpu', 'CPU')], max_length=8)),
                ('index', models.PositiveSmallIntegerField(default=0)),
                ('uuid', models.CharField(blank=True, max_length=80)),
                ('model', models.CharField(blank=True, max_length=100)),
                ('memory_mib', models.PositiveIntegerField(default=0)),
                ('capacity', models.PositiveIntegerField(default=8)),
                ('used', models.PositiveIntegerField(default=0)),
                ('group', models.PositiveSmallIntegerField(default=0)),
                ('health', models.CharField(choices=[('ok', 'OK'), ('gone', 'Gone'), ('sick', 'Sick'), ('external', 'External process')], default='ok', max_length=8)),
                ('health_note', models.CharField(blank=True, max_length=300)),
                ('parent', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('simulated', models.BooleanField(default=False)),
                ('sample', models.JSONField(default=dict)),
            ],
            options={
                'ordering': ['node', 'kind', 'index'],
                'constraints': [models.UniqueConstraint(fields=('node', 'kind', 'index'), name='device_once_per_node'), models.CheckConstraint(condition=models.Q(('used__lte', models.F('capacity'))), name='device_never_over_capacity')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='JoinToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('prefix', models.CharField(max_length=16)),
                ('made_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('made_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('node', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to='workers.node')),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='NodeEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='story', to='workers.node')),
                ('device', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='story', to='workers.device')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('event', models.CharField(db_index=True, max_length=30)),
                ('sentence', models.CharField(blank=True, max_length=300)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='NodeSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='samples', to='workers.node')),
                ('step', models.PositiveSmallIntegerField()),
                ('at', models.DateTimeField()),
                ('cpu', models.FloatField(null=True)),
                ('memory', models.FloatField(null=True)),
                ('disk', models.FloatField(null=True)),
                ('net_in', models.FloatField(null=True)),
                ('net_out', models.FloatField(null=True)),
                ('gpus', models.FloatField(default=0.0)),
                ('gpus_held', models.FloatField(default=0.0)),
                ('gpu_util', models.FloatField(null=True)),
                ('gpu_memory', models.FloatField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['step', 'at'], name='node_samples')],
                'constraints': [models.UniqueConstraint(fields=('node', 'step', 'at'), name='node_sample_once')],
            },
        ),
        migrations.CreateModel(
            name='ResourceGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=50, unique=True, verbose_name='name')),
                ('kinds', models.JSONField(default=list, verbose_name='kinds of jobs')),
                ('nodes', models.ManyToManyField(related_name='resource_groups', to='workers.node', verbose_name='machines')),
            ],
            options={
                'ordering': ['name'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='ResourceWindow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='windows', to='workers.resourcegroup')),
                ('weekdays', models.JSONField(default=list)),
                ('begins', models.TimeField()),
                ('ends', models.TimeField()),
            ],
            options={
                'ordering': ['pk'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='VirtualCluster',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=50, verbose_name='name')),
                ('jobs_per_user', models.PositiveIntegerField(blank=True, help_text='Empty: no limit.', null=True, verbose_name='running jobs per person')),
                ('environments_per_user', models.PositiveIntegerField(blank=True, help_text='Empty: no limit.', null=True, verbose_name='running environments per person')),
                ('max_runtime', models.DurationField(blank=True, help_text='Jobs end after this time. Empty: no limit.', null=True, verbose_name='maximum run time')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('closed_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('closed_at', None)), fields=('name',), name='cluster_name_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ClusterDevice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quotas', to='workers.virtualcluster')),
                ('kind', models.CharField(max_length=8, verbose_name='device kind')),
                ('guaranteed', models.PositiveIntegerField(blank=True, help_text="Cards of the cluster's own. Empty: no limit.", null=True, verbose_name='guaranteed')),
                ('borrows', models.BooleanField(default=False, verbose_name='borrows idle cards')),
                ('per_user', models.PositiveIntegerField(blank=True, help_text='Cards one person may use at once. Empty: no limit.', null=True, verbose_name='per person')),
            ],
            options={
                'ordering': ['cluster', 'kind'],
                'constraints': [models.UniqueConstraint(fields=('cluster', 'kind'), name='quota_once_per_kind')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ClusterGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='group_links', to='workers.virtualcluster')),
                ('group', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cluster_links', to='accounts.usergroup')),
                ('added_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('cluster', 'group'), name='cluster_group_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ClusterSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='samples', to='workers.virtualcluster')),
                ('step', models.PositiveSmallIntegerField()),
                ('at', models.DateTimeField()),
                ('gpus', models.FloatField(default=0.0)),
                ('running', models.FloatField(default=0.0)),
                ('waiting', models.FloatField(default=0.0)),
            ],
            options={
                'indexes': [models.Index(fields=['step', 'at'], name='cluster_samples')],
                'constraints': [models.UniqueConstraint(fields=('cluster', 'step', 'at'), name='cluster_sample_once')],
            },
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(db_index=True, max_length=20)),
                ('name', models.CharField(max_length=100)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to=settings.AUTH_USER_MODEL)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='workers.virtualcluster')),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('assigned', 'Assigned'), ('starting', 'Starting'), ('running', 'Running'), ('frozen', 'Paused'), ('stopping', 'Stopping'), ('finishing', 'Finishing'), ('preempting', 'Making room'), ('succeeded', 'Completed'), ('finished_early', 'Finished early'), ('failed', 'Failed'), ('stopped', 'Stopped'), ('lost', 'Lost')], default='queued', editable=False, max_length=16)),
                ('desired', models.CharField(choices=[('run', 'Run'), ('freeze', 'Pause'), ('stop', 'Stop'), ('finish', 'Finish now'), ('release', 'Make room'), ('evict', 'Leave its cards for a while')], default='run', editable=False, max_length=8)),
                ('attempt_number', models.PositiveIntegerField(default=0, editable=False)),
                ('reason', models.CharField(blank=True, choices=[('', ''), ('done', 'The program ended by itself'), ('user_code', 'The program failed'), ('out_of_memory', 'The program ran out of memory'), ('max_runtime', 'The maximum run time was reached'), ('node_lost', 'The machine stopped answering'), ('device_failed', 'A card of the job failed'), ('supervisor_lost', 'The process that looks after the job was killed'), ('launch_failed', 'The job could not be started'), ('preempted', 'More important work needed the devices'), ('evicted', 'More important work needed the devices for a while'), ('gang_partner', 'Another part of the job ended'), ('idle', 'It left its devices unused'), ('owner', 'Its owner ended it'), ('operator', 'An operator ended it')], editable=False, max_length=20)),
                ('sentence', models.CharField(blank=True, editable=False, max_length=300)),
                ('nodes', models.PositiveSmallIntegerField(default=1)),
                ('gpus_per_node', models.PositiveSmallIntegerField(default=0)),
                ('device_kind', models.CharField(default='gpu', max_length=8)),
                ('share', models.PositiveSmallIntegerField(default=8)),
                ('card_memory_mib', models.PositiveIntegerField(default=0)),
                ('memory_mib', models.PositiveIntegerField(default=0)),
                ('cpus', models.FloatField(default=1.0)),
                ('priority', models.SmallIntegerField(default=0)),
                ('preemptible', models.BooleanField(default=False)),
                ('max_runtime', models.DurationField(blank=True, null=True)),
                ('more_time', models.DurationField(default=datetime.timedelta, editable=False)),
                ('restart', models.CharField(choices=[('never', 'Never'), ('on_failure', 'On failure, with growing pauses')], default='never', max_length=12)),
                ('spec', models.JSONField(default=dict)),
                ('resume_from', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('queued_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('makes_room_for', models.PositiveBigIntegerField(blank=True, editable=False, null=True)),
                ('not_before', models.DateTimeField(blank=True, null=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('published_attempt', models.PositiveIntegerField(default=0, editable=False)),
                ('wait_code', models.CharField(blank=True, max_length=30)),
                ('wait_args', models.JSONField(blank=True, default=dict)),
                ('position', models.PositiveIntegerField(blank=True, null=True)),
                ('eta', models.DateTimeField(blank=True, null=True)),
                ('progress', models.FloatField(blank=True, null=True)),
                ('eta_s', models.FloatField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state', 'queued')), fields=['-priority', 'queued_at'], name='job_queue'), models.Index(fields=['state', 'kind'], name='job_state_kind')],
                'constraints': [models.CheckConstraint(condition=models.Q(('nodes__gte', 1)), name='job_has_a_node'), models.CheckConstraint(condition=models.Q(('cpus__gt', 0)), name='job_has_cpu'), models.CheckConstraint(condition=models.Q(('share__gte', 1), ('share__lte', 8)), name='job_has_a_share')],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='workers.job')),
                ('number', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('assigned', 'Assigned'), ('starting', 'Starting'), ('running', 'Running'), ('frozen', 'Paused'), ('stopping', 'Stopping'), ('finishing', 'Finishing'), ('preempting', 'Making room'), ('succeeded', 'Completed'), ('finished_early', 'Finished early'), ('failed', 'Failed'), ('stopped', 'Stopped'), ('lost', 'Lost')], default='assigned', editable=False, max_length=16)),
                ('reason', models.CharField(blank=True, choices=[('', ''), ('done', 'The program ended by itself'), ('user_code', 'The program failed'), ('out_of_memory', 'The program ran out of memory'), ('max_runtime', 'The maximum run time was reached'), ('node_lost', 'The machine stopped answering'), ('device_failed', 'A card of the job failed'), ('supervisor_lost', 'The process that looks after the job was killed'), ('launch_failed', 'The job could not be started'), ('preempted', 'More important work needed the devices'), ('evicted', 'More important work needed the devices for a while'), ('gang_partner', 'Another part of the job ended'), ('idle', 'It left its devices unused'), ('owner', 'Its owner ended it'), ('operator', 'An operator ended it')], max_length=20)),
                ('sentence', models.CharField(blank=True, max_length=300)),
                ('exit_code', models.IntegerField(blank=True, null=True)),
                ('checkpoint_in', models.CharField(blank=True, max_length=500)),
                ('assigned_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('busy_at', models.DateTimeField(blank=True, null=True)),
                ('idle_warned_at', models.DateTimeField(blank=True, null=True)),
                ('sandbox_tier', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('image', models.CharField(blank=True, max_length=300)),
                ('evicted_at', models.DateTimeField(blank=True, null=True)),
                ('back_at', models.DateTimeField(blank=True, null=True)),
                ('away_s', models.FloatField(default=0.0)),
                ('kept_why', models.CharField(blank=True, max_length=300)),
                ('log_bytes', models.PositiveBigIntegerField(default=0)),
                ('metrics_cursor', models.PositiveBigIntegerField(default=0)),
            ],
            options={
                'ordering': ['job', 'number'],
                'constraints': [models.UniqueConstraint(fields=('job', 'number'), name='attempt_number_once'), models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('job',), name='one_live_attempt_per_job')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Allocation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='allocations', to='workers.attempt')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='allocations', to='workers.node')),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='allocations', to='workers.device')),
                ('rank', models.PositiveSmallIntegerField(default=0)),
                ('share', models.PositiveSmallIntegerField(default=8)),
                ('port', models.PositiveIntegerField(blank=True, null=True)),
                ('released_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('released_at', None)), fields=['node'], name='allocation_live')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('port__isnull', False), ('released_at', None)), fields=('node', 'port'), name='port_leased_once')],
            },
        ),
        migrations.CreateModel(
            name='JobEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='story', to='workers.job')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('attempt', models.PositiveIntegerField()),
                ('event', models.CharField(max_length=20)),
                ('state', models.CharField(max_length=16)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('sentence', models.CharField(blank=True, max_length=300)),
            ],
            options={
                'ordering': ['pk'],
                'indexes': [models.Index(fields=['job', 'id'], name='story_of_job')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='JobLimit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='job_limits', to='workers.virtualcluster')),
                ('kind', models.CharField(max_length=8, verbose_name='device kind')),
                ('cpus_min', models.FloatField(default=2.0, verbose_name='least cores')),
                ('cpus_max', models.FloatField(default=22.0, verbose_name='most cores')),
                ('memory_min_mib', models.PositiveIntegerField(default=400, verbose_name='least memory (MiB)')),
                ('memory_max_mib', models.PositiveIntegerField(default=81920, verbose_name='most memory (MiB)')),
            ],
            options={
                'ordering': ['cluster', 'kind'],
                'constraints': [models.UniqueConstraint(fields=('cluster', 'kind'), name='job_limit_once_per_kind'), models.CheckConstraint(condition=models.Q(('cpus_min__lte', models.F('cpus_max'))), name='job_limit_cpus_in_order'), models.CheckConstraint(condition=models.Q(('memory_min_mib__lte', models.F('memory_max_mib'))), name='job_limit_memory_in_order')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='workers.virtualcluster')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('is_current', models.BooleanField(default=False)),
                ('direct', models.BooleanField(default=True, editable=False)),
                ('administers', models.BooleanField(default=False, verbose_name='administers the cluster')),
                ('added_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('cluster', 'user'), name='membership_once'), models.UniqueConstraint(condition=models.Q(('is_current', True)), fields=('user',), name='one_current_cluster')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='MetricPoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='metrics', to='workers.attempt')),
                ('key', models.CharField(max_length=60)),
                ('step', models.BigIntegerField()),
                ('value', models.FloatField()),
                ('at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['attempt', 'key', 'step'], name='curve')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='TimeRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='time_requests', to='workers.job')),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('span', models.DurationField()),
                ('reason', models.CharField(max_length=300)),
                ('answer', models.CharField(choices=[('open', 'Waits for an answer'), ('granted', 'Granted'), ('denied', 'Denied')], default='open', max_length=8)),
                ('answered_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('answered_at', models.DateTimeField(blank=True, null=True)),
                ('word', models.CharField(blank=True, max_length=300)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('answer', 'open')), fields=('job',), name='one_open_time_request')],
                'indexes': [],
            },
        ),
        migrations.AddField(
            model_name='VirtualCluster',
            name='groups',
            field=models.ManyToManyField(related_name='clusters', through='workers.ClusterGroup', to='accounts.usergroup'),
        ),
        migrations.AddField(
            model_name='VirtualCluster',
            name='members',
            field=models.ManyToManyField(related_name='clusters', through='workers.Membership', to=settings.AUTH_USER_MODEL),
        ),
        migrations.RunPython(add_default_cluster, migrations.RunPython.noop),
    ]
