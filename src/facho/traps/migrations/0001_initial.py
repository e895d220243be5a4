import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
        ('onus', '0001_squashed_0003_raw_values_in_blocks'),
    ]

    operations = [
        migrations.CreateModel(
            name='OltTraps',
            fields=[
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='trap_sums', serialize=False, to='hosts.olt')),
                ('heard', models.PositiveBigIntegerField(default=0, verbose_name='heard')),
                ('last_heard_at', models.DateTimeField(verbose_name='last heard')),
                ('engine_id', models.CharField(blank=True, max_length=64, verbose_name='engine id')),
                ('engine_boots', models.PositiveBigIntegerField(default=0)),
                ('engine_time', models.PositiveBigIntegerField(default=0)),
            ],
            options={
                'verbose_name': 'traps of an OLT',
                'verbose_name_plural': 'traps of OLTs',
            },
        ),
        migrations.CreateModel(
            name='TrapReceiver',
            fields=[
                ('name', models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name='name')),
                ('engine_id', models.CharField(max_length=64, verbose_name='engine id')),
                ('engine_boots', models.PositiveIntegerField(default=0)),
                ('started_at', models.DateTimeField(verbose_name='started')),
                ('seen_at', models.DateTimeField(verbose_name='seen')),
                ('heard', models.PositiveBigIntegerField(default=0, verbose_name='heard')),
                ('dropped', models.PositiveBigIntegerField(default=0, verbose_name='dropped')),
            ],
            options={
                'verbose_name': 'trap receiver',
                'verbose_name_plural': 'trap receivers',
            },
        ),
        migrations.CreateModel(
            name='TrapSwitch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_on', models.BooleanField(default=False, verbose_name='traps are heard')),
            ],
            options={
                'verbose_name': 'trap switch',
                'verbose_name_plural': 'trap switches',
            },
        ),
        migrations.CreateModel(
            name='Trap',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('heard_at', models.DateTimeField(verbose_name='heard')),
                ('oid', models.CharField(max_length=255, verbose_name='OID')),
                ('name', models.CharField(blank=True, max_length=120, verbose_name='name')),
                ('meaning', models.CharField(choices=[('onu_down', 'ONU down'), ('onu_up', 'ONU up'), ('onu_los', 'loss of signal of an ONU'), ('onu_dying_gasp', 'dying gasp'), ('onu_discovered', 'ONU found'), ('pon_los', 'loss of signal of a PON port'), ('pon_down', 'PON port down'), ('pon_up', 'PON port up'), ('board_down', 'card down'), ('board_up', 'card up'), ('device_restart', 'restart'), ('optical_warning', 'optical warning'), ('power', 'power'), ('fan', 'fan'), ('temperature', 'temperature'), ('other', 'other')], max_length=20, verbose_name='meaning')),
                ('is_end', models.BooleanField(default=False, verbose_name='ends a condition')),
                ('frame', models.PositiveIntegerField(blank=True, null=True, verbose_name='frame')),
                ('slot', models.PositiveIntegerField(blank=True, null=True, verbose_name='slot')),
                ('port', models.PositiveIntegerField(blank=True, null=True, verbose_name='port')),
                ('onu_number', models.PositiveIntegerField(blank=True, null=True, verbose_name='ONU id')),
                ('serial', models.CharField(blank=True, max_length=32, verbose_name='serial')),
                ('values', models.JSONField(blank=True, null=True, verbose_name='values')),
                ('fingerprint', models.CharField(blank=True, max_length=32, null=True)),
                ('repeats', models.PositiveIntegerField(default=0, verbose_name='repeats')),
                ('outcome', models.CharField(blank=True, choices=[('', 'being read'), ('confirmed', 'confirmed'), ('not_confirmed', 'not confirmed'), ('not_read', 'not read')], max_length=15, verbose_name='outcome')),
                ('settled_at', models.DateTimeField(blank=True, null=True, verbose_name='read')),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='traps', to='hosts.olt', verbose_name='OLT')),
                ('onu', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='traps', to='onus.onu')),
                ('pon_port', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='traps', to='onus.ponport')),
            ],
            options={
                'verbose_name': 'trap',
                'verbose_name_plural': 'traps',
                'db_table': 'traps',
                'ordering': ['-heard_at', '-id'],
                'indexes': [models.Index(fields=['heard_at'], name='trap_heard'), models.Index(fields=['olt', 'heard_at'], name='trap_of_olt'), models.Index(condition=models.Q(('onu__isnull', False)), fields=['onu', 'heard_at'], name='trap_of_onu'), models.Index(condition=models.Q(('pon_port__isnull', False)), fields=['pon_port', 'heard_at'], name='trap_of_port'), models.Index(condition=models.Q(('onu__isnull', False), ('outcome', '')), fields=['heard_at'], name='trap_open')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'fingerprint'), name='one_row_per_trap')],
            },
        ),
        migrations.CreateModel(
            name='TrapSender',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.GenericIPAddressField(verbose_name='address')),
                ('reason', models.CharField(choices=[('unknown_sender', 'not the address of an OLT'), ('ambiguous', 'several OLTs have this address'), ('rate', 'too many at once'), ('malformed', 'not valid SNMP'), ('version', 'another SNMP version'), ('community', 'wrong community'), ('user', 'unknown SNMPv3 user'), ('level', "less protected than the OLT's credentials"), ('signature', 'wrong signature'), ('time', 'outside the time window')], max_length=15, verbose_name='reason')),
                ('count', models.PositiveBigIntegerField(default=0, verbose_name='number')),
                ('first_heard_at', models.DateTimeField(verbose_name='first heard')),
                ('last_heard_at', models.DateTimeField(verbose_name='last heard')),
                ('olt', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'verbose_name': 'sender of rejected traps',
                'verbose_name_plural': 'senders of rejected traps',
                'db_table': 'trap_senders',
                'ordering': ['-last_heard_at'],
                'indexes': [models.Index(fields=['last_heard_at'], name='trap_sender_heard')],
                'constraints': [models.UniqueConstraint(fields=('address', 'reason'), name='one_sender_per_address_and_reason')],
            },
        ),
    ]
