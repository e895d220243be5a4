import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('executions', '0001_initial'), ('executions', '0002_scheduling'), ('executions', '0003_slot_index'), ('executions', '0004_processes_and_group'), ('executions', '0005_onu_read'), ('executions', '0006_words'), ('executions', '0007_too_much_data'), ('executions', '0008_nothing_to_ask'), ('executions', '0009_progress_of_a_run'), ('executions', '0010_hidden_onus'), ('executions', '0011_hint_reads')]

    initial = True

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
        ('onus', '0001_squashed_0003_raw_values_in_blocks'),
        ('snmp_jobs', '0001_squashed_0009_first_discovery'),
    ]

    operations = [
        migrations.CreateModel(
            name='OltToken',
            fields=[
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='hosts.olt')),
                ('token', models.BigIntegerField(default=0)),
            ],
            options={
                'verbose_name': 'run counter of an OLT',
                'verbose_name_plural': 'run counters of OLTs',
            },
        ),
        migrations.CreateModel(
            name='ProductProcess',
            fields=[
                ('owner', models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name='owner')),
                ('version', models.CharField(max_length=40, verbose_name='version')),
                ('groups', models.JSONField(default=list, verbose_name='groups')),
                ('slots', models.PositiveIntegerField(default=0, verbose_name='slots')),
                ('started_at', models.DateTimeField(verbose_name='started')),
                ('seen_at', models.DateTimeField(verbose_name='seen')),
                ('clock_at', models.DateTimeField(verbose_name='its clock')),
                ('completed', models.PositiveBigIntegerField(default=0, verbose_name='completed')),
                ('completed_at', models.DateTimeField(blank=True, null=True, verbose_name='last completed')),
            ],
            options={
                'verbose_name': 'process',
                'verbose_name_plural': 'processes',
                'ordering': ['owner'],
            },
        ),
        migrations.CreateModel(
            name='Execution',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task_type', models.CharField(max_length=50, verbose_name='task type')),
                ('origin', models.CharField(choices=[('schedule', 'schedule'), ('manual', 'by hand'), ('probe', 'probe'), ('trap', 'trap')], default='schedule', max_length=10, verbose_name='origin')),
                ('status', models.CharField(choices=[('PENDING', 'pending'), ('RUNNING', 'running'), ('WAITING', 'waiting'), ('SUCCESS', 'success'), ('FAILED', 'failed'), ('INTERRUPTED', 'interrupted'), ('SKIPPED', 'skipped')], max_length=12, verbose_name='status')),
                ('slot_at', models.DateTimeField(blank=True, null=True, verbose_name='slot')),
                ('attempt', models.PositiveSmallIntegerField(default=1, verbose_name='attempt')),
                ('poller_id', models.PositiveIntegerField(blank=True, null=True, verbose_name='poller')),
                ('poller_group', models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='poller group')),
                ('chain_position', models.PositiveSmallIntegerField(default=0, verbose_name='position in the chain')),
                ('address', models.GenericIPAddressField(verbose_name='address')),
                ('port', models.PositiveIntegerField(verbose_name='UDP port')),
                ('token', models.BigIntegerField(verbose_name='fencing token')),
                ('owner', models.CharField(blank=True, max_length=100, verbose_name='owner')),
                ('lease_counter', models.PositiveBigIntegerField(default=0)),
                ('cancel_requested_at', models.DateTimeField(blank=True, null=True, verbose_name='cancel requested')),
                ('resume_at', models.DateTimeField(blank=True, null=True, verbose_name='resumes')),
                ('cursor', models.JSONField(blank=True, null=True)),
                ('created_at', models.DateTimeField(verbose_name='claimed')),
                ('started_at', models.DateTimeField(blank=True, null=True, verbose_name='started')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished')),
                ('duration_ms', models.PositiveIntegerField(default=0, verbose_name='duration (ms)')),
                ('failure_kind', models.CharField(blank=True, max_length=12, verbose_name='failure')),
                ('error', models.CharField(blank=True, max_length=300, verbose_name='error')),
                ('result', models.JSONField(blank=True, null=True, verbose_name='result')),
                ('master_execution', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='chain_executions', to='executions.execution', verbose_name='master')),
                ('node', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='executions', to='snmp_jobs.workflownode', verbose_name='node')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='executions', to='hosts.olt', verbose_name='OLT')),
                ('progress', models.JSONField(blank=True, null=True, verbose_name='progress')),
            ],
            options={
                'verbose_name': 'execution',
                'verbose_name_plural': 'executions',
                'db_table': 'snmp_executions',
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['olt', '-created_at'], name='execution_olt_created'), models.Index(fields=['node', '-created_at'], name='execution_node_created'), models.Index(fields=['created_at'], name='execution_created'), models.Index(fields=['olt', 'slot_at'], name='execution_olt_slot'), models.Index(fields=['finished_at'], name='execution_finished'), models.Index(condition=models.Q(('status', 'WAITING')), fields=['resume_at'], name='execution_waiting')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['PENDING', 'RUNNING'])), fields=('olt',), name='one_active_execution_per_olt'), models.UniqueConstraint(condition=models.Q(('status__in', ['PENDING', 'RUNNING'])), fields=('address', 'port'), name='one_active_execution_per_device'), models.UniqueConstraint(condition=models.Q(('status__in', ['PENDING', 'RUNNING'])), fields=('poller_id',), name='one_active_execution_per_poller'), models.UniqueConstraint(condition=models.Q(('slot_at__isnull', False)), fields=('node', 'slot_at'), name='one_execution_per_slot'), models.CheckConstraint(condition=models.Q(('status__in', ['PENDING', 'RUNNING', 'WAITING', 'SUCCESS', 'FAILED', 'INTERRUPTED', 'SKIPPED'])), name='execution_status_is_known'), models.CheckConstraint(condition=models.Q(models.Q(('status__in', ['FAILED', 'INTERRUPTED', 'SKIPPED', 'SUCCESS']), ('finished_at__isnull', False)), models.Q(models.Q(('status__in', ['FAILED', 'INTERRUPTED', 'SKIPPED', 'SUCCESS']), _negated=True), ('finished_at__isnull', True)), _connector='OR'), name='execution_is_finished_when_terminal'), models.CheckConstraint(condition=models.Q(models.Q(('chain_position', 0), ('master_execution__isnull', True)), models.Q(('chain_position__gte', 1), ('master_execution__isnull', False)), _connector='OR'), name='execution_chain_has_a_position'), models.CheckConstraint(condition=models.Q(('attempt__gte', 1)), name='execution_attempts_count_from_1'), models.CheckConstraint(condition=models.Q(('failure_kind__in', ['', 'timeout', 'refused', 'auth', 'tooBig', 'malformed', 'loop', 'tooMuch', 'missing', 'noOnus', 'hiddenOnus', 'cancelled', 'internal'])), name='execution_failure_is_known')],
            },
        ),
        migrations.CreateModel(
            name='ExecutionAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(verbose_name='number')),
                ('status', models.CharField(choices=[('PENDING', 'pending'), ('RUNNING', 'running'), ('WAITING', 'waiting'), ('SUCCESS', 'success'), ('FAILED', 'failed'), ('INTERRUPTED', 'interrupted'), ('SKIPPED', 'skipped')], max_length=12, verbose_name='status')),
                ('started_at', models.DateTimeField(verbose_name='started')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished')),
                ('failure_kind', models.CharField(blank=True, max_length=12, verbose_name='failure')),
                ('error', models.CharField(blank=True, max_length=300, verbose_name='error')),
                ('execution', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='executions.execution', verbose_name='execution')),
            ],
            options={
                'verbose_name': 'attempt',
                'verbose_name_plural': 'attempts',
                'db_table': 'execution_attempts',
                'ordering': ['execution', 'number'],
                'constraints': [models.UniqueConstraint(fields=('execution', 'number'), name='one_row_per_attempt'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='attempts_count_from_1')],
            },
        ),
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
