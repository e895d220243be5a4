from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('snmp_jobs', '0006_skipped_slots'),
    ]

    operations = [
        migrations.AddField(
            model_name='snmpjoboid',
            name='keeps_history',
            field=models.BooleanField(default=False, help_text='Of numbers; of a counter, how fast it grows. Columns about ONUs need no wish.', verbose_name='keep history'),
        ),
    ]
