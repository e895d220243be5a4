import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('hosts', '0001_initial'), ('hosts', '0002_learned_size'), ('hosts', '0003_scheduling'), ('hosts', '0004_olt_values'), ('hosts', '0005_poller_group'), ('hosts', '0006_value_history'), ('hosts', '0007_olt_group'), ('hosts', '0008_words'), ('hosts', '0009_bind_secrets'), ('hosts', '0010_discovered_at'), ('hosts', '0011_trap_addresses')]

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Brand',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
            ],
            options={
                'verbose_name': 'brand',
                'verbose_name_plural': 'brands',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='HistoryOid',
            fields=[
                ('number', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ('oid', models.CharField(max_length=255, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name='OltGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
            ],
            options={
                'verbose_name': 'OLT group',
                'verbose_name_plural': 'OLT groups',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='OltHistoryPoll',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('port_group', models.BigIntegerField(db_column='olt_group')),
                ('taken_at', models.DateTimeField()),
                ('data', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['port_group', 'taken_at'], name='olt_history_poll_of_group'), models.Index(fields=['taken_at'], name='olt_history_poll_oldest')],
            },
        ),
        migrations.CreateModel(
            name='OltModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, verbose_name='name')),
                ('brand', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='models', to='hosts.brand', verbose_name='brand')),
            ],
            options={
                'verbose_name': 'OLT model',
                'verbose_name_plural': 'OLT models',
                'ordering': ['brand__name', 'name'],
            },
        ),
        migrations.CreateModel(
            name='Olt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, verbose_name='name')),
                ('host', models.CharField(help_text='Name or address, as the operator wrote it.', max_length=253, verbose_name='host')),
                ('address', models.GenericIPAddressField(verbose_name='resolved address')),
                ('port', models.PositiveIntegerField(default=161, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(65535)], verbose_name='UDP port')),
                ('vendor', models.CharField(blank=True, help_text='Empty until recognised.', max_length=60, verbose_name='vendor definition')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('snmp_version', models.CharField(choices=[('1', 'SNMPv1'), ('2c', 'SNMPv2c'), ('3', 'SNMPv3')], default='2c', max_length=2, verbose_name='SNMP version')),
                ('community', models.TextField(blank=True, default='', verbose_name='community')),
                ('v3_user', models.CharField(blank=True, max_length=64, verbose_name='SNMPv3 user')),
                ('v3_auth_protocol', models.CharField(blank=True, max_length=10, verbose_name='authentication protocol')),
                ('v3_auth_key', models.TextField(blank=True, default='', verbose_name='authentication key')),
                ('v3_priv_protocol', models.CharField(blank=True, max_length=10, verbose_name='privacy protocol')),
                ('v3_priv_key', models.TextField(blank=True, default='', verbose_name='privacy key')),
                ('max_in_flight', models.PositiveSmallIntegerField(blank=True, help_text='Empty: what the vendor definition says.', null=True, verbose_name='requests in flight')),
                ('packets_per_second', models.PositiveIntegerField(blank=True, null=True, verbose_name='packets per second')),
                ('poller_group', models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='poller group')),
                ('reachability', models.CharField(choices=[('unknown', 'unknown'), ('up', 'answers'), ('down', 'does not answer')], default='unknown', editable=False, max_length=10, verbose_name='reachability')),
                ('probes_done', models.PositiveSmallIntegerField(default=0, editable=False, verbose_name='unanswered probes')),
                ('next_probe_at', models.DateTimeField(editable=False, null=True, verbose_name='next probe')),
                ('consecutive_failures', models.PositiveIntegerField(default=0, editable=False, verbose_name='failures in a row')),
                ('last_answer_at', models.DateTimeField(editable=False, null=True, verbose_name='last answer')),
                ('last_error', models.CharField(blank=True, editable=False, max_length=300, verbose_name='last error')),
                ('sys_name', models.CharField(blank=True, editable=False, max_length=255, verbose_name='system name')),
                ('sys_descr', models.CharField(blank=True, editable=False, max_length=255, verbose_name='system description')),
                ('sys_object_id', models.CharField(blank=True, editable=False, max_length=255, verbose_name='system OID')),
                ('discovered_at', models.DateTimeField(editable=False, null=True, verbose_name='first discovered')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated')),
                ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='olts', to='hosts.oltgroup', verbose_name='group')),
                ('model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='olts', to='hosts.oltmodel', verbose_name='model')),
            ],
            options={
                'verbose_name': 'OLT',
                'verbose_name_plural': 'OLTs',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Pause',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('starts_at', models.DateTimeField(verbose_name='from')),
                ('ends_at', models.DateTimeField(verbose_name='to')),
                ('note', models.CharField(blank=True, max_length=200, verbose_name='note')),
                ('olt', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='pauses', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'pause',
                'verbose_name_plural': 'pauses',
                'ordering': ['-starts_at'],
            },
        ),
        migrations.CreateModel(
            name='WaitingOnu',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('frame', models.PositiveSmallIntegerField(verbose_name='frame')),
                ('slot', models.PositiveSmallIntegerField(verbose_name='slot')),
                ('port', models.PositiveSmallIntegerField(verbose_name='port')),
                ('serial', models.CharField(max_length=32, verbose_name='serial')),
                ('model', models.CharField(blank=True, max_length=60, verbose_name='model')),
                ('first_seen_at', models.DateTimeField(verbose_name='waiting since')),
                ('last_seen_at', models.DateTimeField(verbose_name='last seen')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='waiting_onus', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'waiting ONU',
                'verbose_name_plural': 'waiting ONUs',
                'db_table': 'waiting_onus',
                'ordering': ['-first_seen_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='LearnedSize',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(max_length=255, verbose_name='columns')),
                ('rows', models.PositiveSmallIntegerField(verbose_name='rows')),
                ('updated_at', models.DateTimeField(verbose_name='updated')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='learned_sizes', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'learned size',
                'verbose_name_plural': 'learned sizes',
                'ordering': ['olt', 'subject'],
                'constraints': [models.UniqueConstraint(fields=('olt', 'subject'), name='one_learned_size_per_olt_and_columns'), models.CheckConstraint(condition=models.Q(('rows__gte', 1)), name='learned_size_is_positive')],
            },
        ),
        migrations.CreateModel(
            name='HistoryRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.CharField(blank=True, max_length=128)),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'verbose_name': "row of an OLT's tables",
                'verbose_name_plural': "rows of OLTs' tables",
                'constraints': [models.UniqueConstraint(fields=('olt', 'index'), name='one_history_row_per_olt_and_index')],
            },
        ),
        migrations.CreateModel(
            name='OltData',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('oid', models.CharField(max_length=255, verbose_name='OID')),
                ('index', models.CharField(blank=True, help_text='Row of a table; empty: a single value.', max_length=128, verbose_name='index')),
                ('name', models.CharField(blank=True, max_length=60, verbose_name='name')),
                ('place', models.CharField(blank=True, max_length=60, verbose_name='place')),
                ('value', models.CharField(blank=True, help_text='In its unit; empty if the device sent an impossible value.', max_length=255, verbose_name='value')),
                ('unit', models.CharField(blank=True, max_length=20, verbose_name='unit')),
                ('raw', models.CharField(blank=True, max_length=255, verbose_name='raw value')),
                ('per_second', models.FloatField(blank=True, help_text='Rate of the counter.', null=True, verbose_name='per second')),
                ('updated_at', models.DateTimeField(verbose_name='read')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='data', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'OLT value',
                'verbose_name_plural': 'OLT values',
                'db_table': 'olt_data',
                'ordering': ['olt', 'name', 'oid', 'id'],
                'constraints': [models.UniqueConstraint(fields=('olt', 'oid', 'index'), name='one_value_per_olt_oid_and_index')],
            },
        ),
        migrations.CreateModel(
            name='OltHistoryDays',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'verbose_name': 'month of daily averages of OLTs',
                'verbose_name_plural': 'months of daily averages of OLTs',
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='olthistorydays_oldest')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'metric', 'ends_at'), name='one_olthistorydays_per_period')],
            },
        ),
        migrations.CreateModel(
            name='OltHistoryHours',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'verbose_name': 'day of hourly averages of OLTs',
                'verbose_name_plural': 'days of hourly averages of OLTs',
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='olthistoryhours_oldest')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'metric', 'ends_at'), name='one_olthistoryhours_per_period')],
            },
        ),
        migrations.CreateModel(
            name='OltHistorySamples',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'verbose_name': 'day of measured values of OLTs',
                'verbose_name_plural': 'days of measured values of OLTs',
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='olthistorysamples_oldest')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'metric', 'ends_at'), name='one_olthistorysamples_per_period')],
            },
        ),
        migrations.AddConstraint(
            model_name='oltmodel',
            constraint=models.UniqueConstraint(fields=('brand', 'name'), name='one_model_name_per_brand'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.UniqueConstraint(fields=('address', 'port'), name='one_olt_per_address_and_port', violation_error_message='Another OLT already has this address and port.'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.CheckConstraint(condition=models.Q(('port__gte', 1), ('port__lte', 65535)), name='olt_port_is_a_port'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.CheckConstraint(condition=models.Q(('snmp_version__in', ['1', '2c', '3'])), name='olt_snmp_version_is_known'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.CheckConstraint(condition=models.Q(('max_in_flight__isnull', True), ('max_in_flight__gte', 1), _connector='OR'), name='olt_in_flight_is_positive'),
        ),
        migrations.AddIndex(
            model_name='pause',
            index=models.Index(fields=['ends_at'], name='pause_end'),
        ),
        migrations.AddConstraint(
            model_name='pause',
            constraint=models.CheckConstraint(condition=models.Q(('ends_at__gt', models.F('starts_at'))), name='pause_ends_after_start'),
        ),
        migrations.AddConstraint(
            model_name='waitingonu',
            constraint=models.UniqueConstraint(fields=('olt', 'frame', 'slot', 'port', 'serial'), name='one_waiting_onu_per_port_and_serial'),
        ),
        migrations.AddField(
            model_name='olt',
            name='trap_addresses',
            field=models.CharField(blank=True, db_default='', default='', help_text='Addresses that its traps come from besides its own, separated by commas.', max_length=200, verbose_name='further trap addresses'),
        ),
    ]
