"""Indexes that PostgreSQL and SQLite write differently. Undo and apply it to make them again, e.g. with pg_trgm installed."""

import logging

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


class Migration(migrations.Migration):
    replaces = [('onus', '0010_folded_text')]

    dependencies = [('onus', '0001_squashed_0012_discovered_olts')]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddIndex(
                    model_name='onureading',
                    index=models.Index(fields=['state_since', 'onu'], name='onu_reading_since'),
                ),
            ],
            database_operations=[migrations.RunPython(create_since_index, drop_since_index)],
        ),
        migrations.RunPython(create_text_indexes, drop_text_indexes),
    ]
