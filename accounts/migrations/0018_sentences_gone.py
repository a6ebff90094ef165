from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0017_sentences_as_they_stand")]

    operations = [
        operation
        for model, columns in (("notification", ("title", "text")), ("delivery", ("title", "text", "error")))
        for column in columns
        for operation in (
            migrations.RemoveField(model, column),
            migrations.RenameField(model, f"{column}_message", column),
        )
    ]
