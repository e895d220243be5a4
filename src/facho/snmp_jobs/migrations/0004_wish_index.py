from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('snmp_jobs', '0003_scheduling'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='workflownode',
            index=models.Index(condition=models.Q(('run_requested_at__isnull', False)), fields=['run_requested_at'], name='node_run_requested'),
        ),
    ]
