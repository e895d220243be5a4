import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0004_processes_and_group'),
        ('onus', '0006_acknowledgement'),
    ]

    operations = [
        migrations.CreateModel(
            name='OnuRead',
            fields=[
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='onus.onu', verbose_name='ONU')),
                ('requested_at', models.DateTimeField(verbose_name='requested')),
                ('execution', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='onu_read', to='executions.execution', verbose_name='execution')),
            ],
            options={
                'verbose_name': 'read of an ONU',
                'verbose_name_plural': 'reads of ONUs',
                'db_table': 'onu_reads',
                'indexes': [models.Index(condition=models.Q(('execution__isnull', True)), fields=['requested_at'], name='onu_read_waiting')],
            },
        ),
    ]
