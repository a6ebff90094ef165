"""Notifications and deliveries keep a code and facts; these columns take the place of the ones with sentences."""

from django.db import migrations, models

from aiplatform.lib.message_field import MessageField


class Migration(migrations.Migration):
    dependencies = [("accounts", "0015_idempotency_record_registration_policy")]

    operations = [
        migrations.AddField("delivery", "language", models.CharField(blank=True, max_length=10)),
        migrations.AddField("delivery", "title_message", MessageField()),
        migrations.AddField("delivery", "text_message", MessageField()),
        migrations.AddField("delivery", "error_message", MessageField()),
        migrations.AddField("notification", "title_message", MessageField()),
        migrations.AddField("notification", "text_message", MessageField()),
    ]
