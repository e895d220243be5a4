
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('snmp_jobs', '0005_constraint_messages'),
    ]

    operations = [
        migrations.CreateModel(
            name='SkippedSlot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slot_at', models.DateTimeField(verbose_name='slot')),
                ('reason', models.CharField(choices=[('olt_busy', 'the OLT was busy with other work'), ('no_poller', 'every poller was busy'), ('own_run', 'its own run was still going on'), ('olt_unreachable', 'the OLT did not answer'), ('suspended', 'suspended after failures'), ('paused', 'paused for maintenance'), ('out_of_hours', 'its hours were over'), ('not_polling', 'Facho was not polling'), ('clock', 'the clock was set')], max_length=20, verbose_name='reason')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='skipped_slots', to='snmp_jobs.workflownode', verbose_name='node')),
            ],
            options={
                'verbose_name': 'skipped slot',
                'verbose_name_plural': 'skipped slots',
                'db_table': 'skipped_slots',
                'ordering': ['-slot_at'],
                'indexes': [models.Index(fields=['slot_at'], name='skipped_slot_at')],
                'constraints': [models.UniqueConstraint(fields=('node', 'slot_at'), name='a_slot_is_skipped_once')],
            },
        ),
    ]
