from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workers', '0035_job_phase_counter'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='disk_bytes',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='max_disk_bytes',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='virtualcluster',
            name='default_disk_bytes',
            field=models.PositiveBigIntegerField(blank=True, help_text='Of jobs that request none, on each node. Leave empty to use the maximum.', null=True, verbose_name='default disk limit (bytes)'),
        ),
        migrations.AddField(
            model_name='virtualcluster',
            name='max_disk_bytes',
            field=models.PositiveBigIntegerField(blank=True, help_text='The most that a job can request on each node. Leave empty for no limit.', null=True, verbose_name='maximum disk limit (bytes)'),
        ),
        migrations.AddConstraint(
            model_name='virtualcluster',
            constraint=models.CheckConstraint(condition=models.Q(('default_disk_bytes', None), ('max_disk_bytes', None), ('default_disk_bytes__lte', models.F('max_disk_bytes')), _connector='OR'), name='cluster_disk_limits_in_order'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('done', 'The program ended by itself'), ('user_code', 'The program failed'), ('out_of_memory', 'The program ran out of memory'), ('max_runtime', 'The maximum run time was reached'), ('disk_limit', 'The disk limit was exceeded'), ('node_lost', 'The machine stopped answering'), ('device_failed', 'A card of the job failed'), ('supervisor_lost', 'The process that looks after the job was killed'), ('launch_failed', 'The job could not be started'), ('preempted', 'More important work needed the devices'), ('evicted', 'More important work needed the devices for a while'), ('gang_partner', 'Another part of the job ended'), ('idle', 'It left its devices unused'), ('pause_over', 'It stayed paused for too long'), ('suspended', 'It gave its devices back, to go on later'), ('dependency', 'A job that it was to follow did not complete'), ('refused', 'Its start was refused'), ('pruned', 'Other trials of its study are better'), ('owner', 'Its owner ended it'), ('operator', 'An operator ended it')], max_length=20),
        ),
        migrations.AlterField(
            model_name='job',
            name='reason',
            field=models.CharField(blank=True, choices=[('', ''), ('done', 'The program ended by itself'), ('user_code', 'The program failed'), ('out_of_memory', 'The program ran out of memory'), ('max_runtime', 'The maximum run time was reached'), ('disk_limit', 'The disk limit was exceeded'), ('node_lost', 'The machine stopped answering'), ('device_failed', 'A card of the job failed'), ('supervisor_lost', 'The process that looks after the job was killed'), ('launch_failed', 'The job could not be started'), ('preempted', 'More important work needed the devices'), ('evicted', 'More important work needed the devices for a while'), ('gang_partner', 'Another part of the job ended'), ('idle', 'It left its devices unused'), ('pause_over', 'It stayed paused for too long'), ('suspended', 'It gave its devices back, to go on later'), ('dependency', 'A job that it was to follow did not complete'), ('refused', 'Its start was refused'), ('pruned', 'Other trials of its study are better'), ('owner', 'Its owner ended it'), ('operator', 'An operator ended it')], editable=False, max_length=20),
        ),
    ]
