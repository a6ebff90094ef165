from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workers", "0019_sentences_become_messages")]

    operations = [
        migrations.RemoveField("job", "sentence"),
        migrations.RemoveField("attempt", "sentence"),
        migrations.RemoveField("jobevent", "sentence"),
        migrations.RemoveField("nodeevent", "sentence"),
        migrations.RemoveField("device", "health_note"),
    ]
