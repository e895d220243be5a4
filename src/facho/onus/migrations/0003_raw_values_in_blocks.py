"""Keeps the raw values of an OLT's ONUs in one row per OID. The rows of before are dropped: the next polls read them again."""

import django.db.models.deletion
from django.db import migrations, models


def store_outside(apps, schema_editor):
    """Keep PostgreSQL from compressing blocks once more."""
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute('ALTER TABLE "onu_data" ALTER COLUMN "block" SET STORAGE EXTERNAL')


class Migration(migrations.Migration):
    dependencies = [('hosts', '0001_squashed_0010_discovered_at'), ('onus', '0002_search_indexes')]
    operations = [
        migrations.DeleteModel(name='OnuData'),
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
        migrations.RunPython(store_outside, migrations.RunPython.noop),
    ]
