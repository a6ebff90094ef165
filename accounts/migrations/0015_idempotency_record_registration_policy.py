from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0014_claims"),
    ]

    operations = [
        migrations.RenameModel("KeptAnswer", "IdempotencyRecord"),
        migrations.RemoveConstraint("DoorRules", "one_row_of_door_rules"),
        migrations.RenameModel("DoorRules", "RegistrationPolicy"),
        migrations.AddConstraint(
            "RegistrationPolicy",
            models.CheckConstraint(condition=models.Q(("id", 1)), name="one_registration_policy"),
        ),
    ]
