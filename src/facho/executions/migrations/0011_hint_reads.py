import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0010_hidden_onus'),
        ('hosts', '0001_squashed_0010_discovered_at'),
    ]

    operations = [
        migrations.AlterField(
            model_name='execution',
            name='origin',
            field=models.CharField(choices=[('schedule', 'schedule'), ('manual', 'by hand'), ('probe', 'probe'), ('trap', 'trap')], default='schedule', max_length=10, verbose_name='origin'),
        ),
        migrations.CreateModel(
            name='HintRead',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('frame', models.PositiveSmallIntegerField(verbose_name='frame')),
                ('slot', models.PositiveSmallIntegerField(verbose_name='slot')),
                ('port', models.PositiveSmallIntegerField(verbose_name='port')),
                ('is_whole', models.BooleanField(default=False, verbose_name='all states')),
                ('onu_number', models.PositiveIntegerField(blank=True, help_text='Empty: the whole port.', null=True, verbose_name='ONU id')),
                ('wanted_at', models.DateTimeField(blank=True, null=True, verbose_name='wanted')),
                ('not_before', models.DateTimeField(verbose_name='not before')),
                ('asked_at', models.DateTimeField(blank=True, null=True, verbose_name='last read')),
                ('execution', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='hint_read', to='executions.execution', verbose_name='execution')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'read after a trap',
                'verbose_name_plural': 'reads after traps',
                'db_table': 'hint_reads',
                'indexes': [models.Index(condition=models.Q(('wanted_at__isnull', False)), fields=['wanted_at'], name='hint_read_waiting')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'frame', 'slot', 'port', 'is_whole'), name='one_hint_read_per_olt_and_port')],
            },
        ),
    ]
