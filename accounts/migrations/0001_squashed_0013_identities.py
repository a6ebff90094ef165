"""People, roles, tokens, sign-in and notifications: the first thirteen migrations in one.

Left out are their steps that a new database does not need: the first administrator of a platform that ran already
(0006). A database that has some of the thirteen goes on by them.
"""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.models import reserved_names
from accounts.access.permissions import ANNOTATOR, PRESET_ROLES, SYSTEM_ADMIN, USER

DESCRIPTIONS = {
    SYSTEM_ADMIN: "Everything, including people and clusters",
    USER: "The whole platform but people and clusters",
    ANNOTATOR: "Annotate images, nothing else",
}


def add_preset_roles(apps, schema_editor):
    role = apps.get_model("accounts", "Role")
    for name, actions in PRESET_ROLES.items():
        role.objects.update_or_create(
            name=name,
            defaults={"preset": True, "description": DESCRIPTIONS[name], "actions": sorted(a.value for a in actions)},
        )


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('accounts', '0001_initial'),
        ('accounts', '0002_preset_roles'),
        ('accounts', '0003_kept_answers'),
        ('accounts', '0004_username_any_case'),
        ('accounts', '0005_audit_trail_and_first_administrator'),
        ('accounts', '0006_first_administrator'),
        ('accounts', '0007_notifications'),
        ('accounts', '0008_people_from_files_and_deleted_accounts'),
        ('accounts', '0009_doors'),
        ('accounts', '0010_groups_that_share'),
        ('accounts', '0011_own_keys_of_the_annotator'),
        ('accounts', '0012_language_of_the_browser'),
        ('accounts', '0013_identities'),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False, verbose_name='time')),
                ('actor_id', models.BigIntegerField(db_index=True, editable=False, null=True)),
                ('actor', models.CharField(blank=True, editable=False, max_length=100, verbose_name='who')),
                ('behind', models.CharField(blank=True, editable=False, max_length=100, verbose_name='acting for them')),
                ('verb', models.CharField(db_index=True, editable=False, max_length=50, verbose_name='act')),
                ('target_kind', models.CharField(blank=True, editable=False, max_length=50)),
                ('target_id', models.CharField(blank=True, editable=False, max_length=50)),
                ('target', models.CharField(blank=True, editable=False, max_length=200, verbose_name='what')),
                ('facts', models.JSONField(default=dict, editable=False, verbose_name='facts')),
                ('address', models.CharField(blank=True, editable=False, max_length=45, verbose_name='address')),
                ('request_id', models.CharField(blank=True, editable=False, max_length=64)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['target_kind', 'target_id'], name='audit_of_a_thing')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=200, unique=True)),
                ('channel', models.CharField(choices=[('mail', 'Mail'), ('webhook', 'Webhook')], max_length=8)),
                ('target', models.CharField(max_length=500)),
                ('secret', models.CharField(blank=True, max_length=64)),
                ('kind', models.CharField(max_length=30)),
                ('title', models.CharField(max_length=200)),
                ('text', models.CharField(blank=True, max_length=1000)),
                ('url', models.CharField(blank=True, max_length=500)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('sending', 'Sending'), ('sent', 'Sent'), ('failed', 'Failed')], default='waiting', max_length=8)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('not_before', models.DateTimeField(default=django.utils.timezone.now)),
                ('claimed_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('error', models.CharField(blank=True, max_length=300)),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'ordering': ['-pk'],
                'indexes': [models.Index(condition=models.Q(('state__in', ['waiting', 'sending'])), fields=['not_before'], name='delivery_due')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='DoorRules',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('registration', models.CharField(choices=[('closed', 'Closed: administrators make accounts'), ('open', 'Open: who registers may sign in and waits for a role'), ('approval', 'With approval: who registers waits until an administrator lets them in')], max_length=8, verbose_name='registration')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_row_of_door_rules')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Role',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=50, unique=True, verbose_name='name')),
                ('description', models.CharField(blank=True, max_length=200, verbose_name='description')),
                ('preset', models.BooleanField(default=False, editable=False, verbose_name='preset')),
                ('actions', models.JSONField(default=list, verbose_name='actions')),
            ],
            options={
                'ordering': ['-preset', 'name'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='UserGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=50, unique=True, verbose_name='name')),
                ('description', models.CharField(max_length=200, verbose_name='description')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('django_group', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='people_group', to='auth.group')),
                ('roles', models.ManyToManyField(blank=True, related_name='user_groups', to='accounts.role', verbose_name='roles')),
            ],
            options={
                'ordering': ['name'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('username', models.CharField(max_length=50, unique=True, validators=[django.core.validators.RegexValidator('^[\\w.@+-]+\\Z', 'Letters, digits and . @ + - _ only.'), reserved_names.check_username], verbose_name='username')),
                ('nickname', models.CharField(blank=True, max_length=50, verbose_name='nickname')),
                ('phone', models.CharField(blank=True, max_length=30, verbose_name='phone')),
                ('language', models.CharField(blank=True, max_length=10, verbose_name='language')),
                ('heard_language', models.CharField(blank=True, editable=False, max_length=10)),
                ('time_zone', models.CharField(blank=True, max_length=50, verbose_name='time zone')),
                ('theme', models.CharField(blank=True, max_length=5, verbose_name='theme')),
                ('refresh_s', models.PositiveSmallIntegerField(default=5, verbose_name='refresh interval (s)')),
                ('annotator_keys', models.JSONField(blank=True, default=dict, editable=False)),
                ('must_change_password', models.BooleanField(default=False)),
                ('awaiting', models.BooleanField(default=False, editable=False)),
                ('deleted_at', models.DateTimeField(editable=False, null=True)),
                ('first', models.BooleanField(default=False, editable=False)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                ('roles', models.ManyToManyField(blank=True, related_name='users', to='accounts.role', verbose_name='roles')),
                ('user_groups', models.ManyToManyField(blank=True, related_name='users', to='accounts.usergroup', verbose_name='user groups')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('username'), name='username_once_in_any_case')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=50, verbose_name='name')),
                ('prefix', models.CharField(db_index=True, max_length=12)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('scope', models.CharField(choices=[('read', 'Read only'), ('write', 'Read and write')], default='write', max_length=5)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-created_at'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Identity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to=settings.AUTH_USER_MODEL)),
                ('issuer', models.CharField(max_length=300)),
                ('subject', models.CharField(max_length=300)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('used_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='identity_names_one_person')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='KeptAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('key', models.CharField(max_length=100)),
                ('digest', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(default=0)),
                ('body', models.JSONField(null=True)),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'key'), name='idempotency_key_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='NoticeChoices',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='notice_choices', to=settings.AUTH_USER_MODEL)),
                ('mail', models.JSONField(default=list)),
                ('webhook', models.JSONField(default=list)),
                ('webhook_url', models.CharField(blank=True, max_length=500, verbose_name='webhook address')),
                ('webhook_secret', models.CharField(blank=True, editable=False, max_length=64)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to=settings.AUTH_USER_MODEL)),
                ('kind', models.CharField(max_length=30)),
                ('key', models.CharField(max_length=120)),
                ('title', models.CharField(max_length=200)),
                ('text', models.CharField(blank=True, max_length=1000)),
                ('url', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('read_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(condition=models.Q(('read_at', None)), fields=['user'], name='notification_unread')],
                'constraints': [models.UniqueConstraint(fields=('user', 'kind', 'key'), name='told_once')],
            },
        ),
        migrations.CreateModel(
            name='OneTimeLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('purpose', models.CharField(choices=[('first_admin', 'First administrator'), ('password', 'Set a password')], max_length=12)),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='PeopleImport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=100)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done')], default='waiting', max_length=7)),
                ('rows', models.JSONField(default=list)),
                ('clusters', models.JSONField(default=list)),
                ('report', models.JSONField(default=list)),
                ('nonce', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('touched_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='RecoveryCode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recovery_codes', to=settings.AUTH_USER_MODEL)),
                ('digest', models.CharField(max_length=64)),
                ('used_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'digest'), name='recovery_code_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='SecondFactor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='second_factor', to=settings.AUTH_USER_MODEL)),
                ('nonce', models.CharField(max_length=64)),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('last_step', models.BigIntegerField(default=0)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='SshKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ssh_keys', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=50, verbose_name='name')),
                ('kind', models.CharField(max_length=50)),
                ('line', models.TextField()),
                ('fingerprint', models.CharField(max_length=60, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='UserSession',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signed_in_sessions', to=settings.AUTH_USER_MODEL)),
                ('session_key', models.CharField(max_length=40, unique=True)),
                ('device', models.CharField(blank=True, max_length=100)),
                ('address', models.CharField(blank=True, max_length=45)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('seen_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-seen_at'],
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.RunPython(add_preset_roles, migrations.RunPython.noop),
    ]
