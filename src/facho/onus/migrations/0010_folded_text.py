import logging

from django.db import Error, migrations, transaction

logger = logging.getLogger(__name__)

TEXTS = (
    ('onu_texts', 'onus_onu', ('serial', 'mac', 'description', 'name')),
    ('onu_customer_texts', 'onu_customers', ('label', 'address', 'phone', 'notes', 'tags')),
)
# Most texts are of nothing but ASCII, and cost no more than capitals did.
FUNCTION = r"""
CREATE FUNCTION facho_fold(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT lower(CASE WHEN octet_length(value) = length(value) THEN value
ELSE regexp_replace(normalize(value, NFKD), '[\u0300-\u036f]', '', 'g') END)
$$
"""


def index_texts(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute(FUNCTION)
        index_by('facho_fold', schema_editor)


def index_capitals(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        index_by('UPPER', schema_editor)
        schema_editor.execute('DROP FUNCTION facho_fold')


def index_by(function, schema_editor):
    """Index the texts by the trigrams of a function; a server that has none, or forbids them, searches without."""
    for name, _table, _columns in TEXTS:
        schema_editor.execute(f'DROP INDEX IF EXISTS {name}')
    try:
        with transaction.atomic(using=schema_editor.connection.alias):
            schema_editor.execute('CREATE EXTENSION IF NOT EXISTS pg_trgm')
            for name, table, columns in TEXTS:
                texts = ', '.join(f'{function}({column}) gin_trgm_ops' for column in columns)
                schema_editor.execute(f'CREATE INDEX {name} ON {table} USING gin ({texts})')
    except Error as error:
        logger.warning('search.not_indexed reason=%s', type(error).__name__)


class Migration(migrations.Migration):
    dependencies = [
        ('onus', '0009_unknown_port'),
    ]

    operations = [
        migrations.RunPython(index_texts, index_capitals),
    ]
