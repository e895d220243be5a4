import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0004_olt_values'),
        ('onus', '0002_history'),
    ]

    operations = [
        migrations.CreateModel(
            name='OltMemory',
            fields=[
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='memory', serialize=False, to='hosts.olt', verbose_name='OLT')),
                ('walked_at', models.DateTimeField(blank=True, null=True, verbose_name='last complete walk')),
                ('held_at', models.DateTimeField(blank=True, help_text='A walk lost most of the ONUs at once; it is believed when the next one confirms it.', null=True, verbose_name='walk held back')),
                ('states_at', models.DateTimeField(blank=True, null=True, verbose_name='states read')),
            ],
            options={
                'verbose_name': 'memory of an OLT',
                'verbose_name_plural': 'memories of OLTs',
                'db_table': 'olt_memory',
            },
        ),
        migrations.AddField(
            model_name='onu',
            name='admin_state',
            field=models.CharField(blank=True, choices=[('enabled', 'enabled'), ('disabled', 'disabled')], max_length=8, verbose_name='admin state'),
        ),
        migrations.AddField(
            model_name='onu',
            name='firmware',
            field=models.CharField(blank=True, max_length=60, verbose_name='firmware'),
        ),
        migrations.AddField(
            model_name='onu',
            name='mac',
            field=models.CharField(blank=True, max_length=17, verbose_name='hardware address'),
        ),
        migrations.AddField(
            model_name='onu',
            name='model',
            field=models.CharField(blank=True, max_length=60, verbose_name='model'),
        ),
        migrations.AddField(
            model_name='onu',
            name='name',
            field=models.CharField(blank=True, max_length=255, verbose_name='name'),
        ),
        migrations.AddField(
            model_name='onureading',
            name='bias_ua',
            field=models.PositiveIntegerField(blank=True, null=True, verbose_name='laser bias (µA)'),
        ),
        migrations.AddField(
            model_name='onureading',
            name='flap_changes',
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='onureading',
            name='flap_since',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='onureading',
            name='last_down_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='last down'),
        ),
        migrations.AddField(
            model_name='onureading',
            name='last_up_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='last up'),
        ),
        migrations.AddField(
            model_name='onureading',
            name='olt_rx_power_cdbm',
            field=models.SmallIntegerField(blank=True, null=True, verbose_name='receive power at the OLT (0.01 dBm)'),
        ),
        migrations.AddField(
            model_name='onureading',
            name='power_reference_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='onureading',
            name='power_reference_cdbm',
            field=models.SmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='onureading',
            name='temperature_tenths',
            field=models.SmallIntegerField(blank=True, null=True, verbose_name='temperature (0.1 °C)'),
        ),
        migrations.AddField(
            model_name='onureading',
            name='tx_power_cdbm',
            field=models.SmallIntegerField(blank=True, null=True, verbose_name='transmit power (0.01 dBm)'),
        ),
        migrations.AddField(
            model_name='onureading',
            name='voltage_mv',
            field=models.PositiveIntegerField(blank=True, null=True, verbose_name='voltage (mV)'),
        ),
        migrations.AlterField(
            model_name='onu',
            name='misses',
            field=models.PositiveSmallIntegerField(default=0, verbose_name='misses'),
        ),
        migrations.AlterField(
            model_name='onureading',
            name='last_down_cause',
            field=models.CharField(blank=True, choices=[('los', 'loss of signal'), ('lof', 'loss of frame'), ('signal_fail', 'signal fail'), ('loss_of_ack', 'loss of acknowledgement'), ('loss_of_ploam', 'loss of PLOAM'), ('loss_of_key', 'loss of key'), ('dying_gasp', 'dying gasp'), ('power_off', 'power off'), ('deactivated', 'deactivated'), ('reset', 'reset'), ('auth_failed', 'authentication failed'), ('rogue', 'rogue ONU'), ('other', 'another cause'), ('unknown', 'unknown cause')], max_length=20, verbose_name='last down cause'),
        ),
        migrations.CreateModel(
            name='OnuCustomer',
            fields=[
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='customer', serialize=False, to='onus.onu', verbose_name='ONU')),
                ('label', models.CharField(blank=True, help_text='Name or number of the customer.', max_length=120, verbose_name='label')),
                ('address', models.CharField(blank=True, max_length=255, verbose_name='address')),
                ('phone', models.CharField(blank=True, max_length=40, verbose_name='phone')),
                ('notes', models.CharField(blank=True, max_length=1000, verbose_name='notes')),
                ('tags', models.CharField(blank=True, help_text='Words, separated by commas.', max_length=255, verbose_name='tags')),
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
            name='OnuEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('onu_number', models.PositiveIntegerField(help_text="The ONU's number at the port, at that time.", verbose_name='ONU id')),
                ('at', models.DateTimeField(verbose_name='time')),
                ('kind', models.CharField(choices=[('new', 'new'), ('moved', 'moved'), ('gone', 'gone'), ('returned', 'returned'), ('duplicate_serial', 'duplicate serial'), ('calm', 'calm again'), ('up', 'went up'), ('down', 'went down'), ('flapping', 'flapping'), ('power_drop', 'light dropped'), ('power_rise', 'light rose'), ('description_changed', 'description changed')], max_length=20, verbose_name='event')),
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
            },
        ),
        migrations.CreateModel(
            name='Outage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
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
                ('olt', models.ForeignKey(blank=True, db_index=False, help_text="Empty: the poller's network.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='outages', to='hosts.olt', verbose_name='OLT')),
                ('part_of', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='parts', to='onus.outage', verbose_name='part of')),
            ],
            options={
                'verbose_name': 'outage',
                'verbose_name_plural': 'outages',
                'db_table': 'outages',
                'ordering': ['-started_at', '-id'],
            },
        ),
        migrations.AddField(
            model_name='onureading',
            name='outage',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='readings', to='onus.outage', verbose_name='latest outage'),
        ),
        migrations.AddIndex(
            model_name='onureading',
            index=models.Index(condition=models.Q(('outage__isnull', False)), fields=['outage'], name='onu_reading_outage'),
        ),
        migrations.AddIndex(
            model_name='onuevent',
            index=models.Index(fields=['onu', 'at'], name='onu_event_of_onu'),
        ),
        migrations.AddIndex(
            model_name='onuevent',
            index=models.Index(fields=['pon_port', 'at'], name='onu_event_of_port'),
        ),
        migrations.AddIndex(
            model_name='onuevent',
            index=models.Index(fields=['olt', 'at'], name='onu_event_of_olt'),
        ),
        migrations.AddIndex(
            model_name='onuevent',
            index=models.Index(fields=['at'], name='onu_event_time'),
        ),
        migrations.AddIndex(
            model_name='onuevent',
            index=models.Index(condition=models.Q(('other_port__isnull', False)), fields=['other_port', 'at'], name='onu_event_of_other_port'),
        ),
        migrations.AddIndex(
            model_name='outage',
            index=models.Index(fields=['olt', 'ended_at'], name='outage_of_olt'),
        ),
        migrations.AddIndex(
            model_name='outage',
            index=models.Index(fields=['ended_at'], name='outage_end'),
        ),
        migrations.AddIndex(
            model_name='outage',
            index=models.Index(fields=['started_at'], name='outage_start'),
        ),
        migrations.AddConstraint(
            model_name='outage',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('olt', 'scope', 'frame', 'slot', 'port'), name='one_open_outage_per_place'),
        ),
        migrations.AddConstraint(
            model_name='outage',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True), ('olt__isnull', True)), fields=('scope',), name='one_open_outage_of_the_network'),
        ),
        migrations.AddConstraint(
            model_name='outage',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('olt__isnull', True), ('scope', 'network')), models.Q(models.Q(('scope', 'network'), _negated=True), ('olt__isnull', False)), _connector='OR'), name='outage_has_an_olt'),
        ),
    ]
