"""Rename the preset role "Annotation person" to "Annotator".

Preset roles cannot be renamed by users and are looked up by name. A custom role that is called "Annotator" already
gets a number, so that it neither becomes the preset role nor changes its permissions.
"""

from itertools import count

from django.db import migrations

OLD, NEW = "Annotation person", "Annotator"


def rename(apps, schema_editor, old=OLD, new=NEW):
    role = apps.get_model("accounts", "Role")
    roles = role.objects.using(schema_editor.connection.alias)
    preset = roles.filter(name=old, preset=True).first()
    if preset is None:
        return
    custom = roles.filter(name=new).first()
    if custom is not None and custom.preset:  # a partial `migrate` of this version has created it
        for holder in (*preset.users.all(), *preset.user_groups.all()):
            holder.roles.add(custom)
        preset.delete()
        return
    if custom is not None:
        names = (f"{new} {number}" for number in count(2))
        custom.name = next(name for name in names if not roles.filter(name=name).exists())
        custom.save(update_fields=["name"])
    preset.name = new
    preset.save(update_fields=["name"])


def restore(apps, schema_editor):
    rename(apps, schema_editor, old=NEW, new=OLD)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0022_guide")]
    operations = [migrations.RunPython(rename, restore)]
