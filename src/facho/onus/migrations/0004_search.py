import logging

from django.db import Error, migrations, models, transaction

import facho.onus.indexes

logger = logging.getLogger(__name__)

# As `icontains` asks: in capitals.
TEXTS = (
    ('onu_texts', 'onus_onu', ('serial', 'mac', 'description', 'name')),
    ('onu_customer_texts', 'onu_customers', ('label', 'address', 'phone', 'notes', 'tags')),
)
# The inventory writes a reading with each ONU; lists count on it.
MISSING_READINGS = """
INSERT INTO onus_onureading (onu_id, run_state, last_down_cause, flap_changes)
SELECT id, 'unknown', '', 0 FROM onus_onu
WHERE NOT EXISTS (SELECT 1 FROM onus_onureading WHERE onus_onureading.onu_id = onus_onu.id)
"""


def create_text_indexes(apps, schema_editor):
    """Index the texts by their trigrams; a server that does not have them, or forbids them, searches without."""
    if schema_editor.connection.vendor != 'postgresql':
        return
    try:
        with transaction.atomic(using=schema_editor.connection.alias):
            schema_editor.execute('CREATE EXTENSION IF NOT EXISTS pg_trgm')
            for name, table, columns in TEXTS:
                capitals = ', '.join(f'UPPER({column}) gin_trgm_ops' for column in columns)
                schema_editor.execute(f'CREATE INDEX {name} ON {table} USING gin ({capitals})')
    except Error as error:
        logger.warning('search.not_indexed reason=%s', type(error).__name__)


def drop_text_indexes(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        for name, _table, _columns in TEXTS:
            schema_editor.execute(f'DROP INDEX IF EXISTS {name}')


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0003_truth'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='onu',
            name='onu_serial',
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['serial', 'id'], name='onu_serial'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['description', 'id'], name='onu_description'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['first_seen_at', 'id'], name='onu_first_seen'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(condition=models.Q(('is_present', False)), fields=['absent_since'], name='onu_absent'),
        ),
        migrations.AddIndex(
            model_name='onureading',
            index=models.Index(fields=['run_state', 'rx_power_cdbm', 'onu'], name='onu_reading_state'),
        ),
        migrations.AddIndex(
            model_name='onureading',
            index=models.Index(fields=['rx_power_cdbm', 'onu'], name='onu_reading_power'),
        ),
        migrations.AddIndex(
            model_name='onureading',
            index=models.Index(condition=models.Q(('last_down_cause', ''), _negated=True), fields=['last_down_cause', 'run_state', 'onu'], name='onu_reading_cause'),
        ),
        migrations.AddIndex(
            model_name='onureading',
            index=facho.onus.indexes.NullsFirstIndex(fields=['state_since', 'onu'], name='onu_reading_since'),
        ),
        migrations.RunPython(create_text_indexes, drop_text_indexes),
        # Last: PostgreSQL alters no table whose rows still have to be checked.
        migrations.RunSQL(MISSING_READINGS, migrations.RunSQL.noop),
    ]
