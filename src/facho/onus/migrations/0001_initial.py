import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('hosts', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Onu',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('onu_id', models.PositiveIntegerField(verbose_name='ONU id')),
                ('serial', models.CharField(blank=True, max_length=32, verbose_name='serial')),
                ('description', models.CharField(blank=True, max_length=255, verbose_name='description')),
                ('is_present', models.BooleanField(default=True, verbose_name='present')),
                ('first_seen_at', models.DateTimeField(verbose_name='first seen')),
                ('absent_since', models.DateTimeField(blank=True, null=True, verbose_name='absent since')),
                ('misses', models.PositiveSmallIntegerField(default=0)),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='onus', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'ONU',
                'verbose_name_plural': 'ONUs',
                'ordering': ['olt', 'pon_port', 'onu_id'],
            },
        ),
        migrations.CreateModel(
            name='OnuReading',
            fields=[
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='reading', serialize=False, to='onus.onu', verbose_name='ONU')),
                ('run_state', models.CharField(choices=[('unknown', 'unknown'), ('online', 'online'), ('offline', 'offline')], default='unknown', max_length=8, verbose_name='state')),
                ('last_down_cause', models.CharField(blank=True, max_length=20, verbose_name='last down cause')),
                ('distance_m', models.PositiveIntegerField(blank=True, null=True, verbose_name='distance (m)')),
                ('rx_power_cdbm', models.SmallIntegerField(blank=True, null=True, verbose_name='receive power (0.01 dBm)')),
                ('state_since', models.DateTimeField(blank=True, null=True, verbose_name='state since')),
                ('power_at', models.DateTimeField(blank=True, null=True, verbose_name='power read')),
            ],
            options={
                'verbose_name': 'ONU reading',
                'verbose_name_plural': 'ONU readings',
            },
        ),
        migrations.CreateModel(
            name='PonPort',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('frame', models.PositiveSmallIntegerField(verbose_name='frame')),
                ('slot', models.PositiveSmallIntegerField(verbose_name='slot')),
                ('port', models.PositiveSmallIntegerField(verbose_name='port')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pon_ports', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'PON port',
                'verbose_name_plural': 'PON ports',
                'ordering': ['olt', 'frame', 'slot', 'port'],
            },
        ),
        migrations.AddField(
            model_name='onu',
            name='pon_port',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='onus', to='onus.ponport', verbose_name='PON port'),
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
        migrations.AddConstraint(
            model_name='ponport',
            constraint=models.UniqueConstraint(fields=('olt', 'frame', 'slot', 'port'), name='one_row_per_pon_port'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['serial'], name='onu_serial'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['olt', 'serial'], name='onu_olt_serial'),
        ),
        migrations.AddConstraint(
            model_name='onu',
            constraint=models.UniqueConstraint(condition=models.Q(('is_present', True)), fields=('pon_port', 'onu_id'), name='one_present_onu_per_place'),
        ),
        migrations.AddConstraint(
            model_name='onu',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('absent_since__isnull', True), ('is_present', True)), models.Q(('absent_since__isnull', False), ('is_present', False)), _connector='OR'), name='absent_onu_has_a_time'),
        ),
    ]
