"""The oldest administrator of a platform that runs already is its first one."""

from django.db import migrations

from accounts.access.permissions import SYSTEM_ADMIN


def mark(apps, schema_editor):
    user = apps.get_model("accounts", "User")
    oldest = user.objects.filter(roles__name=SYSTEM_ADMIN, is_active=True).order_by("date_joined", "pk").first()
    if oldest is not None and not user.objects.filter(first=True).exists():
        user.objects.filter(pk=oldest.pk).update(first=True)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_audit_trail_and_first_administrator")]
    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
