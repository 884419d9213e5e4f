from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0010_workers_queues_keep_their_policy")]

    operations = [
        migrations.AlterModelOptions(
            name="halt",
            options={
                "default_permissions": ("view",),
                "permissions": [("stop_sends", "Can stop all sends, and let them go on")],
            },
        ),
    ]
