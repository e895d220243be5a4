import logging

import django.db.models.deletion
from django.conf import settings
from django.db import Error, migrations, models, transaction


logger = logging.getLogger(__name__)

TEXTS = (
    ('onu_texts', 'onus_onu', ('serial', 'mac', 'description', 'name')),
    ('onu_customer_texts', 'onu_customers', ('label', 'address', 'phone', 'notes', 'tags')),
)
# Most texts are of nothing but ASCII: those are only lowered.
FUNCTION = r"""
CREATE FUNCTION facho_fold(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT lower(CASE WHEN octet_length(value) = length(value) THEN value
ELSE regexp_replace(normalize(value, NFKD), '[\u0300-\u036f]', '', 'g') END)
$$
"""


def create_since_index(apps, schema_editor):
    nulls = ' NULLS FIRST' if schema_editor.connection.vendor == 'postgresql' else ''
    schema_editor.execute(
        f'CREATE INDEX "onu_reading_since" ON "onus_onureading" ("state_since"{nulls}, "onu_id")'
    )


def drop_since_index(apps, schema_editor):
    schema_editor.execute('DROP INDEX "onu_reading_since"')


def create_text_indexes(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute(FUNCTION)
        index_texts(schema_editor)


def index_texts(schema_editor):
    """Index the texts by their trigrams; a server that has none, or forbids them, searches without."""
    try:
        with transaction.atomic(using=schema_editor.connection.alias):
            schema_editor.execute('CREATE EXTENSION IF NOT EXISTS pg_trgm')
            for name, table, columns in TEXTS:
                texts = ', '.join(f'facho_fold({column}) gin_trgm_ops' for column in columns)
                schema_editor.execute(f'CREATE INDEX {name} ON {table} USING gin ({texts})')
    except Error as error:
        logger.warning('search.not_indexed reason=%s', type(error).__name__)


def drop_text_indexes(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        for name, _table, _columns in TEXTS:
            schema_editor.execute(f'DROP INDEX IF EXISTS {name}')
        schema_editor.execute('DROP FUNCTION facho_fold')


def store_outside(apps, schema_editor):
    """Keep PostgreSQL from compressing blocks once more."""
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute('ALTER TABLE "onu_data" ALTER COLUMN "block" SET STORAGE EXTERNAL')


class Migration(migrations.Migration):

    replaces = [('onus', '0001_initial'), ('onus', '0002_history'), ('onus', '0003_truth'), ('onus', '0004_search'), ('onus', '0005_event_kind'), ('onus', '0006_acknowledgement'), ('onus', '0007_missed_at'), ('onus', '0008_duplicate_mac'), ('onus', '0009_unknown_port'), ('onus', '0011_words'), ('onus', '0012_discovered_olts'), ('onus', '0010_folded_text'), ('onus', '0003_raw_values_in_blocks')]

    initial = True

    dependencies = [
        ('auth', '__first__'),
        ('hosts', '0001_squashed_0011_trap_addresses'),
    ]

    operations = [
        migrations.CreateModel(
            name='OltMemory',
            fields=[
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='memory', serialize=False, to='hosts.olt', verbose_name='OLT')),
                ('walked_at', models.DateTimeField(blank=True, null=True, verbose_name='last complete walk')),
                ('held_at', models.DateTimeField(blank=True, help_text='A walk missed most of the ONUs at once; it takes effect when the next walk confirms it.', null=True, verbose_name='walk held back')),
                ('states_at', models.DateTimeField(blank=True, null=True, verbose_name='states read')),
            ],
            options={
                'verbose_name': 'OLT polling state',
                'verbose_name_plural': 'OLT polling states',
                'db_table': 'olt_memory',
            },
        ),
        migrations.CreateModel(
            name='PonPort',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('frame', models.PositiveSmallIntegerField(verbose_name='frame')),
                ('slot', models.PositiveSmallIntegerField(verbose_name='slot')),
                ('port', models.PositiveSmallIntegerField(verbose_name='port')),
                ('is_known', models.BooleanField(db_default=True, default=True, verbose_name='known')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pon_ports', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'PON port',
                'verbose_name_plural': 'PON ports',
                'ordering': ['olt', 'frame', 'slot', 'port'],
                'constraints': [models.UniqueConstraint(fields=('olt', 'frame', 'slot', 'port'), name='one_row_per_pon_port')],
            },
        ),
        migrations.CreateModel(
            name='Onu',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('onu_id', models.PositiveIntegerField(verbose_name='ONU id')),
                ('serial', models.CharField(blank=True, max_length=32, verbose_name='serial')),
                ('mac', models.CharField(blank=True, max_length=17, verbose_name='hardware address')),
                ('description', models.CharField(blank=True, max_length=255, verbose_name='description')),
                ('name', models.CharField(blank=True, max_length=255, verbose_name='name')),
                ('model', models.CharField(blank=True, max_length=60, verbose_name='model')),
                ('firmware', models.CharField(blank=True, max_length=60, verbose_name='firmware')),
                ('admin_state', models.CharField(blank=True, choices=[('enabled', 'enabled'), ('disabled', 'disabled')], max_length=8, verbose_name='admin state')),
                ('is_present', models.BooleanField(default=True, verbose_name='present')),
                ('first_seen_at', models.DateTimeField(verbose_name='first seen')),
                ('absent_since', models.DateTimeField(blank=True, null=True, verbose_name='absent since')),
                ('misses', models.PositiveSmallIntegerField(default=0, verbose_name='misses')),
                ('missed_at', models.DateTimeField(blank=True, null=True, verbose_name='last miss')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='onus', to='hosts.olt', verbose_name='OLT')),
                ('pon_port', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='onus', to='onus.ponport', verbose_name='PON port')),
            ],
            options={
                'verbose_name': 'ONU',
                'verbose_name_plural': 'ONUs',
                'ordering': ['olt', 'pon_port', 'onu_id'],
                'indexes': [models.Index(fields=['serial', 'id'], name='onu_serial'), models.Index(fields=['olt', 'serial'], name='onu_olt_serial'), models.Index(fields=['description', 'id'], name='onu_description'), models.Index(fields=['first_seen_at', 'id'], name='onu_first_seen'), models.Index(condition=models.Q(('is_present', False)), fields=['absent_since'], name='onu_absent')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_present', True)), fields=('pon_port', 'onu_id'), name='one_present_onu_per_place'), models.CheckConstraint(condition=models.Q(models.Q(('absent_since__isnull', True), ('is_present', True)), models.Q(('absent_since__isnull', False), ('is_present', False)), _connector='OR'), name='absent_onu_has_a_time')],
            },
        ),
        migrations.CreateModel(
            name='HistoryPoll',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('port_group', models.BigIntegerField()),
                ('taken_at', models.DateTimeField()),
                ('data', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['port_group', 'taken_at'], name='history_poll_of_group'), models.Index(fields=['taken_at'], name='history_poll_oldest')],
            },
        ),
        migrations.CreateModel(
            name='Outage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('acknowledged_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='acknowledged')),
                ('acknowledgement', models.CharField(blank=True, db_default='', default='', max_length=500, verbose_name='note')),
                ('scope', models.CharField(choices=[('pon', 'PON port'), ('card', 'card'), ('olt', 'OLT'), ('network', "the poller's network")], max_length=8, verbose_name='scope')),
                ('frame', models.PositiveSmallIntegerField(default=0, verbose_name='frame')),
                ('slot', models.PositiveSmallIntegerField(default=0, verbose_name='slot')),
                ('port', models.PositiveSmallIntegerField(default=0, verbose_name='port')),
                ('cause', models.CharField(choices=[('power', 'no power at the customers'), ('fibre', 'fibre cut'), ('card', 'card failed'), ('olt', 'OLT does not answer'), ('network', 'the poller lost its network'), ('unknown', 'unknown cause')], max_length=8, verbose_name='probable cause')),
                ('started_at', models.DateTimeField(verbose_name='start')),
                ('resumed_at', models.DateTimeField(verbose_name='last start')),
                ('ended_at', models.DateTimeField(blank=True, null=True, verbose_name='end')),
                ('affected', models.PositiveIntegerField(verbose_name='ONUs affected')),
                ('down', models.PositiveIntegerField(verbose_name='ONUs down')),
                ('affected_olts', models.PositiveIntegerField(default=0, verbose_name='OLTs affected')),
                ('acknowledged_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='acknowledged by')),
                ('olt', models.ForeignKey(blank=True, db_index=False, help_text="Empty: the poller's network.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='outages', to='hosts.olt', verbose_name='OLT')),
                ('part_of', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='parts', to='onus.outage', verbose_name='part of')),
            ],
            options={
                'verbose_name': 'outage',
                'verbose_name_plural': 'outages',
                'db_table': 'outages',
                'ordering': ['-started_at', '-id'],
                'indexes': [models.Index(fields=['olt', 'ended_at'], name='outage_of_olt'), models.Index(fields=['ended_at'], name='outage_end'), models.Index(fields=['started_at'], name='outage_start')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('olt', 'scope', 'frame', 'slot', 'port'), name='one_open_outage_per_place'), models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True), ('olt__isnull', True)), fields=('scope',), name='one_open_outage_of_the_network'), models.CheckConstraint(condition=models.Q(models.Q(('olt__isnull', True), ('scope', 'network')), models.Q(models.Q(('scope', 'network'), _negated=True), ('olt__isnull', False)), _connector='OR'), name='outage_has_an_olt')],
            },
        ),
        migrations.CreateModel(
            name='OnuEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('onu_number', models.PositiveIntegerField(help_text="The ONU's number at the port, at that time.", verbose_name='ONU id')),
                ('at', models.DateTimeField(verbose_name='time')),
                ('kind', models.CharField(choices=[('new', 'new'), ('moved', 'moved'), ('gone', 'gone'), ('returned', 'returned'), ('duplicate_serial', 'duplicate serial'), ('duplicate_mac', 'duplicate hardware address'), ('calm', 'stable again'), ('up', 'went up'), ('down', 'went down'), ('flapping', 'flapping'), ('power_drop', 'light dropped'), ('power_rise', 'light rose'), ('description_changed', 'description changed')], max_length=20, verbose_name='event')),
                ('cause', models.CharField(blank=True, choices=[('los', 'loss of signal'), ('lof', 'loss of frame'), ('signal_fail', 'signal fail'), ('loss_of_ack', 'loss of acknowledgement'), ('loss_of_ploam', 'loss of PLOAM'), ('loss_of_key', 'loss of key'), ('dying_gasp', 'dying gasp'), ('power_off', 'power off'), ('deactivated', 'deactivated'), ('reset', 'reset'), ('auth_failed', 'authentication failed'), ('rogue', 'rogue ONU'), ('other', 'another cause'), ('unknown', 'unknown cause')], max_length=20, verbose_name='cause')),
                ('other_number', models.PositiveIntegerField(blank=True, null=True, verbose_name='other ONU id')),
                ('before', models.CharField(blank=True, max_length=255, verbose_name='before')),
                ('after', models.CharField(blank=True, max_length=255, verbose_name='after')),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='onu_events', to='hosts.olt', verbose_name='OLT')),
                ('onu', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='onus.onu', verbose_name='ONU')),
                ('other_port', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='events_elsewhere', to='onus.ponport', verbose_name='other PON port')),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='onus.ponport', verbose_name='PON port')),
            ],
            options={
                'verbose_name': 'ONU event',
                'verbose_name_plural': 'ONU events',
                'db_table': 'onu_events',
                'ordering': ['-at', '-id'],
                'indexes': [models.Index(fields=['onu', 'at'], name='onu_event_of_onu'), models.Index(fields=['pon_port', 'at'], name='onu_event_of_port'), models.Index(fields=['olt', 'at'], name='onu_event_of_olt'), models.Index(fields=['at'], name='onu_event_time'), models.Index(fields=['kind', 'at'], name='onu_event_of_kind'), models.Index(condition=models.Q(('other_port__isnull', False)), fields=['other_port', 'at'], name='onu_event_of_other_port')],
            },
        ),
        migrations.CreateModel(
            name='HistoryStay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('onu', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.onu')),
                ('pon_port', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'verbose_name': 'stay of an ONU at a port',
                'verbose_name_plural': 'stays of ONUs at ports',
                'constraints': [models.UniqueConstraint(fields=('onu', 'pon_port'), name='one_stay_per_onu_and_port')],
            },
        ),
        migrations.CreateModel(
            name='HistorySamples',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'verbose_name': 'day of measured values of ONUs',
                'verbose_name_plural': 'days of measured values of ONUs',
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='historysamples_oldest')],
                'constraints': [models.UniqueConstraint(fields=('pon_port', 'metric', 'ends_at'), name='one_historysamples_per_period')],
            },
        ),
        migrations.CreateModel(
            name='HistoryHours',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'verbose_name': 'day of hourly averages of ONUs',
                'verbose_name_plural': 'days of hourly averages of ONUs',
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='historyhours_oldest')],
                'constraints': [models.UniqueConstraint(fields=('pon_port', 'metric', 'ends_at'), name='one_historyhours_per_period')],
            },
        ),
        migrations.CreateModel(
            name='HistoryDays',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'verbose_name': 'month of daily averages of ONUs',
                'verbose_name_plural': 'months of daily averages of ONUs',
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='historydays_oldest')],
                'constraints': [models.UniqueConstraint(fields=('pon_port', 'metric', 'ends_at'), name='one_historydays_per_period')],
            },
        ),
        migrations.CreateModel(
            name='OnuCustomer',
            fields=[
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='customer', serialize=False, to='onus.onu', verbose_name='ONU')),
                ('label', models.CharField(blank=True, help_text='Name or number of the customer.', max_length=120, verbose_name='label')),
                ('address', models.CharField(blank=True, max_length=255, verbose_name='address')),
                ('phone', models.CharField(blank=True, max_length=40, verbose_name='phone')),
                ('notes', models.CharField(blank=True, max_length=1000, verbose_name='notes')),
                ('tags', models.CharField(blank=True, help_text='Separated by commas.', max_length=255, verbose_name='tags')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated')),
            ],
            options={
                'verbose_name': 'customer',
                'verbose_name_plural': 'customers',
                'db_table': 'onu_customers',
                'indexes': [models.Index(fields=['label'], name='onu_customer_label')],
            },
        ),
        migrations.CreateModel(
            name='OnuReading',
            fields=[
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='reading', serialize=False, to='onus.onu', verbose_name='ONU')),
                ('run_state', models.CharField(choices=[('unknown', 'unknown'), ('online', 'online'), ('offline', 'offline')], default='unknown', max_length=8, verbose_name='state')),
                ('state_since', models.DateTimeField(blank=True, null=True, verbose_name='state since')),
                ('last_down_cause', models.CharField(blank=True, choices=[('los', 'loss of signal'), ('lof', 'loss of frame'), ('signal_fail', 'signal fail'), ('loss_of_ack', 'loss of acknowledgement'), ('loss_of_ploam', 'loss of PLOAM'), ('loss_of_key', 'loss of key'), ('dying_gasp', 'dying gasp'), ('power_off', 'power off'), ('deactivated', 'deactivated'), ('reset', 'reset'), ('auth_failed', 'authentication failed'), ('rogue', 'rogue ONU'), ('other', 'another cause'), ('unknown', 'unknown cause')], max_length=20, verbose_name='last down cause')),
                ('last_up_at', models.DateTimeField(blank=True, null=True, verbose_name='last up')),
                ('last_down_at', models.DateTimeField(blank=True, null=True, verbose_name='last down')),
                ('distance_m', models.PositiveIntegerField(blank=True, null=True, verbose_name='distance (m)')),
                ('rx_power_cdbm', models.SmallIntegerField(blank=True, null=True, verbose_name='receive power (0.01 dBm)')),
                ('tx_power_cdbm', models.SmallIntegerField(blank=True, null=True, verbose_name='transmit power (0.01 dBm)')),
                ('olt_rx_power_cdbm', models.SmallIntegerField(blank=True, null=True, verbose_name='receive power at the OLT (0.01 dBm)')),
                ('temperature_tenths', models.SmallIntegerField(blank=True, null=True, verbose_name='temperature (0.1 °C)')),
                ('voltage_mv', models.PositiveIntegerField(blank=True, null=True, verbose_name='voltage (mV)')),
                ('bias_ua', models.PositiveIntegerField(blank=True, null=True, verbose_name='laser bias (µA)')),
                ('power_at', models.DateTimeField(blank=True, null=True, verbose_name='power read')),
                ('power_reference_cdbm', models.SmallIntegerField(blank=True, null=True)),
                ('power_reference_at', models.DateTimeField(blank=True, null=True)),
                ('flap_changes', models.PositiveSmallIntegerField(default=0)),
                ('flap_since', models.DateTimeField(blank=True, null=True)),
                ('outage', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='readings', to='onus.outage', verbose_name='latest outage')),
            ],
            options={
                'verbose_name': 'ONU reading',
                'verbose_name_plural': 'ONU readings',
                'indexes': [models.Index(fields=['run_state', 'rx_power_cdbm', 'onu'], name='onu_reading_state'), models.Index(fields=['rx_power_cdbm', 'onu'], name='onu_reading_power'), models.Index(condition=models.Q(('last_down_cause', ''), _negated=True), fields=['last_down_cause', 'run_state', 'onu'], name='onu_reading_cause'), models.Index(condition=models.Q(('outage__isnull', False)), fields=['outage'], name='onu_reading_outage')],
            },
        ),
        migrations.CreateModel(
            name='OnuData',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('oid', models.CharField(max_length=255, verbose_name='OID')),
                ('value', models.CharField(blank=True, max_length=255, verbose_name='value')),
                ('updated_at', models.DateTimeField(verbose_name='updated')),
                ('onu', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='data', to='onus.onu', verbose_name='ONU')),
            ],
            options={
                'verbose_name': 'ONU value',
                'verbose_name_plural': 'ONU values',
                'db_table': 'onu_data',
                'ordering': ['onu', 'oid'],
                'constraints': [models.UniqueConstraint(fields=('onu', 'oid'), name='one_value_per_onu_and_oid')],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunPython(
                    code=create_since_index,
                    reverse_code=drop_since_index,
                ),
            ],
            state_operations=[
                migrations.AddIndex(
                    model_name='onureading',
                    index=models.Index(fields=['state_since', 'onu'], name='onu_reading_since'),
                ),
            ],
        ),
        migrations.RunPython(
            code=create_text_indexes,
            reverse_code=drop_text_indexes,
        ),
        migrations.DeleteModel(
            name='OnuData',
        ),
        migrations.CreateModel(
            name='OnuData',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('oid', models.CharField(max_length=255, verbose_name='OID')),
                ('block', models.BinaryField()),
                ('onus', models.PositiveIntegerField(verbose_name='ONUs')),
                ('updated_at', models.DateTimeField(verbose_name='updated')),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='onu_data', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'ONU value',
                'verbose_name_plural': 'ONU values',
                'db_table': 'onu_data',
                'ordering': ['olt', 'oid'],
                'constraints': [models.UniqueConstraint(fields=('olt', 'oid'), name='one_block_per_olt_and_oid')],
            },
        ),
        migrations.RunPython(
            code=store_outside,
            reverse_code=migrations.RunPython.noop,
        ),
    ]
