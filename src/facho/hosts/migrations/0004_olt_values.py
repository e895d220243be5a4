import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0003_scheduling'),
    ]

    operations = [
        migrations.CreateModel(
            name='OltData',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('oid', models.CharField(max_length=255, verbose_name='OID')),
                ('index', models.CharField(blank=True, help_text='Row of a table; empty: a single value.', max_length=128, verbose_name='index')),
                ('name', models.CharField(blank=True, max_length=60, verbose_name='name')),
                ('place', models.CharField(blank=True, max_length=60, verbose_name='place')),
                ('value', models.CharField(blank=True, help_text='In its unit; empty: what came cannot be true.', max_length=255, verbose_name='value')),
                ('unit', models.CharField(blank=True, max_length=20, verbose_name='unit')),
                ('raw', models.CharField(blank=True, max_length=255, verbose_name='raw value')),
                ('per_second', models.FloatField(blank=True, help_text='How fast a counter grows.', null=True, verbose_name='per second')),
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
            name='WaitingOnu',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('frame', models.PositiveSmallIntegerField(verbose_name='frame')),
                ('slot', models.PositiveSmallIntegerField(verbose_name='slot')),
                ('port', models.PositiveSmallIntegerField(verbose_name='port')),
                ('serial', models.CharField(max_length=32, verbose_name='serial')),
                ('model', models.CharField(blank=True, max_length=60, verbose_name='model')),
                ('first_seen_at', models.DateTimeField(verbose_name='waits since')),
                ('last_seen_at', models.DateTimeField(verbose_name='last seen')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='waiting_onus', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'waiting ONU',
                'verbose_name_plural': 'waiting ONUs',
                'db_table': 'waiting_onus',
                'ordering': ['-first_seen_at', 'id'],
                'constraints': [models.UniqueConstraint(fields=('olt', 'frame', 'slot', 'port', 'serial'), name='one_waiting_onu_per_port_and_serial')],
            },
        ),
    ]
