
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0002_scheduling'),
        ('hosts', '0003_scheduling'),
        ('snmp_jobs', '0006_skipped_slots'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='execution',
            index=models.Index(fields=['olt', 'slot_at'], name='execution_olt_slot'),
        ),
    ]
