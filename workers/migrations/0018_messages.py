"""Jobs, attempts, their and the machines' event logs, and cards keep a code and facts instead of sentences."""

from django.db import migrations

from aiplatform.lib.message_field import MessageField


class Migration(migrations.Migration):
    dependencies = [("workers", "0017_words")]

    operations = [
        migrations.AddField("job", "message", MessageField(editable=False)),
        migrations.AddField("attempt", "message", MessageField()),
        migrations.AddField("jobevent", "message", MessageField()),
        migrations.AddField("nodeevent", "message", MessageField()),
        migrations.AddField("device", "health_message", MessageField()),
    ]
