import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('snmp_jobs', '0001_initial'), ('snmp_jobs', '0002_safe_interval'), ('snmp_jobs', '0003_scheduling'), ('snmp_jobs', '0004_wish_index'), ('snmp_jobs', '0005_constraint_messages'), ('snmp_jobs', '0006_skipped_slots'), ('snmp_jobs', '0007_keeps_history'), ('snmp_jobs', '0008_slots_of_a_gap'), ('snmp_jobs', '0009_first_discovery')]

    initial = True

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
    ]

    operations = [
        migrations.CreateModel(
            name='SnmpJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, verbose_name='name')),
                ('slug', models.SlugField(max_length=40, verbose_name='slug')),
                ('vendor', models.CharField(blank=True, help_text='Empty: fits every OLT.', max_length=60, verbose_name='vendor definition')),
                ('query_type', models.CharField(choices=[('discovery', 'discovery'), ('get', 'get'), ('walk', 'walk'), ('table', 'table'), ('bulk', 'bulk')], max_length=10, verbose_name='query type')),
                ('interval_seconds', models.PositiveIntegerField(default=300, verbose_name='suggested interval (s)')),
                ('ignores_safe_interval', models.BooleanField(default=False, help_text="Only if you know that these OLTs can bear it: the vendors' minimum intervals are then not enforced.", verbose_name='poll more often than is safe')),
                ('cadence', models.CharField(choices=[('fixed_rate', 'on the grid'), ('fixed_delay', 'after the end of the last run')], default='fixed_rate', max_length=12, verbose_name='cadence')),
                ('priority', models.PositiveSmallIntegerField(default=50, help_text='0 to 100, larger first.', validators=[django.core.validators.MaxValueValidator(100)], verbose_name='priority')),
                ('max_attempts', models.PositiveSmallIntegerField(default=3, validators=[django.core.validators.MinValueValidator(1)], verbose_name='attempts')),
                ('hours_from', models.TimeField(blank=True, help_text='Local time; empty: always.', null=True, verbose_name='may run from')),
                ('hours_to', models.TimeField(blank=True, null=True, verbose_name='may run until')),
                ('retry_delay_seconds', models.PositiveIntegerField(default=120, verbose_name='delay between attempts (s)')),
                ('chain_condition', models.CharField(choices=[('always', "whatever the master's result"), ('on_success', 'only after success')], default='always', max_length=12, verbose_name='chain condition')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('brand', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='hosts.brand', verbose_name='brand')),
                ('master_job', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='chain_jobs', to='snmp_jobs.snmpjob', verbose_name='runs after')),
            ],
            options={
                'verbose_name': 'SNMP job',
                'verbose_name_plural': 'SNMP jobs',
                'db_table': 'snmp_jobs',
                'ordering': ['vendor', 'slug'],
                'constraints': [models.UniqueConstraint(fields=('vendor', 'slug'), name='one_job_slug_per_vendor'), models.CheckConstraint(condition=models.Q(('interval_seconds__gte', 1)), name='job_interval_is_positive', violation_error_message='The interval is at least one second.'), models.CheckConstraint(condition=models.Q(('priority__lte', 100)), name='job_priority_up_to_100', violation_error_message='The priority is from 0 to 100.'), models.CheckConstraint(condition=models.Q(('max_attempts__gte', 1)), name='job_tries_at_least_once', violation_error_message='A run has at least one attempt.'), models.CheckConstraint(condition=models.Q(models.Q(('hours_from__isnull', True), ('hours_to__isnull', True)), models.Q(('hours_from__isnull', False), ('hours_to__isnull', False)), _connector='OR'), name='job_hours_come_in_pairs', violation_error_message='Set both hours, or neither.'), models.CheckConstraint(condition=models.Q(('query_type__in', ['discovery', 'get', 'walk', 'table', 'bulk'])), name='job_query_type_is_known')],
            },
        ),
        migrations.CreateModel(
            name='SnmpJobOid',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField(default=0, verbose_name='position')),
                ('column_key', models.CharField(blank=True, max_length=60, verbose_name='definition column')),
                ('oid', models.CharField(blank=True, max_length=255, verbose_name='OID')),
                ('name', models.CharField(blank=True, max_length=60, verbose_name='name')),
                ('unit', models.CharField(blank=True, max_length=20, verbose_name='unit')),
                ('keeps_history', models.BooleanField(default=False, help_text='For numbers; for counters, their rate. Columns about ONUs keep it anyway.', verbose_name='keep history')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='oids', to='snmp_jobs.snmpjob', verbose_name='job')),
            ],
            options={
                'verbose_name': 'job OID',
                'verbose_name_plural': 'job OIDs',
                'db_table': 'snmp_job_oids',
                'ordering': ['job', 'position', 'id'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('column_key', ''), models.Q(('oid', ''), _negated=True)), models.Q(models.Q(('column_key', ''), _negated=True), ('oid', '')), _connector='OR'), name='job_oid_is_a_column_or_an_oid', violation_error_message='Give either a column of the definition or an OID.'), models.UniqueConstraint(fields=('job', 'column_key', 'oid'), name='job_reads_an_oid_once')],
            },
        ),
        migrations.CreateModel(
            name='Workflow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='workflow', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'workflow',
                'verbose_name_plural': 'workflows',
            },
        ),
        migrations.CreateModel(
            name='WorkflowNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('interval_seconds', models.PositiveIntegerField(verbose_name='interval (s)')),
                ('offset_seconds', models.PositiveIntegerField(default=0, verbose_name='offset on the grid (s)')),
                ('priority', models.PositiveSmallIntegerField(default=50, validators=[django.core.validators.MaxValueValidator(100)], verbose_name='priority')),
                ('is_chain_node', models.BooleanField(default=False, verbose_name='chained')),
                ('next_run_at', models.DateTimeField(blank=True, null=True, verbose_name='next run')),
                ('last_run_at', models.DateTimeField(blank=True, null=True, verbose_name='last run')),
                ('run_requested_at', models.DateTimeField(blank=True, null=True, verbose_name='run requested')),
                ('slots_skipped', models.PositiveIntegerField(default=0, verbose_name='skipped slots')),
                ('consecutive_failures', models.PositiveIntegerField(default=0, verbose_name='failures in a row')),
                ('suspended_at', models.DateTimeField(blank=True, null=True, verbose_name='suspended')),
                ('suspend_reason', models.CharField(blank=True, max_length=30, verbose_name='reason of suspension')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nodes', to='snmp_jobs.snmpjob', verbose_name='job')),
                ('master_node', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='chain_nodes', to='snmp_jobs.workflownode', verbose_name='master')),
                ('workflow', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nodes', to='snmp_jobs.workflow', verbose_name='workflow')),
            ],
            options={
                'verbose_name': 'node',
                'verbose_name_plural': 'nodes',
                'db_table': 'snmp_job_hosts',
                'ordering': ['workflow', 'id'],
                'indexes': [models.Index(fields=['next_run_at'], name='node_next_run_at'), models.Index(condition=models.Q(('run_requested_at__isnull', False)), fields=['run_requested_at'], name='node_run_requested')],
                'constraints': [models.UniqueConstraint(fields=('workflow', 'job'), name='one_node_per_job_and_olt'), models.CheckConstraint(condition=models.Q(('interval_seconds__gte', 1)), name='node_interval_is_positive', violation_error_message='The interval is at least one second.'), models.CheckConstraint(condition=models.Q(('priority__lte', 100)), name='node_priority_up_to_100', violation_error_message='The priority is from 0 to 100.'), models.CheckConstraint(condition=models.Q(models.Q(('is_chain_node', False), ('master_node__isnull', True)), models.Q(('is_chain_node', True), ('master_node__isnull', False)), _connector='OR'), name='chain_node_has_a_master'), models.CheckConstraint(condition=models.Q(('is_chain_node', False), models.Q(('next_run_at__isnull', True), ('run_requested_at__isnull', True)), _connector='OR'), name='chain_node_has_no_schedule'), models.CheckConstraint(condition=models.Q(models.Q(('suspend_reason', ''), ('suspended_at__isnull', True)), models.Q(('suspended_at__isnull', False), models.Q(('suspend_reason', ''), _negated=True)), _connector='OR'), name='suspension_has_a_reason')],
            },
        ),
        migrations.CreateModel(
            name='SkippedSlot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slot_at', models.DateTimeField(verbose_name='slot')),
                ('reason', models.CharField(choices=[('olt_busy', 'the OLT was busy with other work'), ('no_poller', 'every poller was busy'), ('own_run', 'its previous run had not ended'), ('olt_unreachable', 'the OLT did not answer'), ('suspended', 'suspended after failures'), ('paused', 'paused for maintenance'), ('out_of_hours', 'its hours were over'), ('not_polling', 'Facho was not polling'), ('clock', 'the clock was set'), ('rescheduled', 'its schedule was changed'), ('first_discovery', 'its OLT was not discovered yet'), ('no_discovery', 'no discovery of its OLT could run')], max_length=20, verbose_name='reason')),
                ('first_slot_at', models.DateTimeField(blank=True, null=True, verbose_name='first slot')),
                ('count', models.PositiveIntegerField(db_default=1, default=1, verbose_name='number of slots')),
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
