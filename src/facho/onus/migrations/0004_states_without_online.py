"""Leaves ONUs online out of PostgreSQL's index of states: they are nearly all, and their light moves with every poll."""

from django.db import migrations, models

NAME = 'onu_reading_state'
COLUMNS = '"onus_onureading" ("run_state", "rx_power_cdbm", "onu_id")'


def create_state_index(apps, schema_editor, where=" WHERE run_state <> 'online'"):
    """SQLite would not use a partial index for a value that is bound, and writes only indexes whose columns change."""
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute(f'DROP INDEX "{NAME}"')
        schema_editor.execute(f'CREATE INDEX "{NAME}" ON {COLUMNS}{where}')


def create_whole_index(apps, schema_editor):
    create_state_index(apps, schema_editor, where='')


class Migration(migrations.Migration):
    dependencies = [('onus', '0001_squashed_0003_raw_values_in_blocks')]
    operations = [
        migrations.RunPython(create_state_index, create_whole_index),
        migrations.AddField(
            model_name='outage',
            name='breaks',
            field=models.JSONField(blank=True, default=list, editable=False, verbose_name='breaks'),
        ),
    ]
