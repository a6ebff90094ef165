"""Jobs and attempts get a column; existing rows are rewritten."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workers", "__latest__")]
    operations = [
        migrations.RunSQL("ALTER TABLE workers_job ADD COLUMN next_note varchar(20) NOT NULL DEFAULT ''"),
        migrations.RunSQL("ALTER TABLE workers_attempt ADD COLUMN next_note varchar(20) NOT NULL DEFAULT ''"),
        migrations.RunSQL("UPDATE workers_job SET next_note = 'upgraded'"),
    ]
