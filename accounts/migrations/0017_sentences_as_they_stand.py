"""What was written is kept as it stands; workers/migrations/0019 makes codes and facts of what it knows."""

from django.db import migrations

AT_ONCE = 1000


def _as_it_stands(text):
    return {"code": "text", "facts": {"text": text}} if text else {}


def keep(apps, schema_editor):
    for name, columns in (("Notification", ("title", "text")), ("Delivery", ("title", "text", "error"))):
        rows = apps.get_model("accounts", name).objects
        waiting = []
        for row in rows.iterator(chunk_size=AT_ONCE):
            for column in columns:
                setattr(row, f"{column}_message", _as_it_stands(getattr(row, column)))
            waiting.append(row)
            if len(waiting) == AT_ONCE:
                rows.bulk_update(waiting, [f"{column}_message" for column in columns])
                waiting = []
        rows.bulk_update(waiting, [f"{column}_message" for column in columns])


class Migration(migrations.Migration):
    dependencies = [("accounts", "0016_messages")]

    operations = [migrations.RunPython(keep, migrations.RunPython.noop)]
