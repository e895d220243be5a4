"""Contract number, coordinates and searchable phone digits of customers; an index of all texts on SQLite, too."""

import logging

import django.db.models.functions.text
from django.db import Error, migrations, models, transaction

logger = logging.getLogger(__name__)

# The index of a table's texts on SQLite, the table, its key, and its texts.
TEXTS = (
    ('onu_text_index', 'onus_onu', 'id', ('serial', 'mac', 'description', 'name', 'model')),
    (
        'onu_customer_text_index',
        'onu_customers',
        'onu_id',
        ('label', 'address', 'phone', 'notes', 'tags', 'contract', 'phone_digits'),
    ),
)
# What PostgreSQL has no trigrams of yet.
MORE_TRIGRAMS = (
    ('onu_model_texts', 'onus_onu', ('model',)),
    ('onu_customer_more_texts', 'onu_customers', ('contract', 'phone_digits')),
)


def index_texts(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        index_by_trigrams(schema_editor)
    else:
        for index, table, key, columns in TEXTS:
            index_table(schema_editor, index, table, key, columns)


def index_table(schema_editor, index, table, key, columns):
    """Keep a full-text index by triggers, so that no writer can forget it."""

    def row(pattern):
        return ', '.join(pattern.format(column) for column in columns)

    names, folded = row('{0}'), row('facho_fold(new.{0})')
    triggers = {
        'added': f'INSERT ON {table} BEGIN INSERT INTO {index}(rowid, {names}) VALUES (new.{key}, {folded}); END',
        'changed': (
            f'UPDATE OF {names} ON {table} WHEN ({row("old.{0}")}) IS NOT ({row("new.{0}")}) BEGIN '
            f'UPDATE {index} SET {row("{0} = facho_fold(new.{0})")} WHERE rowid = new.{key}; END'
        ),
        'deleted': f'DELETE ON {table} BEGIN DELETE FROM {index} WHERE rowid = old.{key}; END',
    }
    schema_editor.execute(f"CREATE VIRTUAL TABLE {index} USING fts5({names}, tokenize='trigram')", None)
    schema_editor.execute(
        f'INSERT INTO {index}(rowid, {names}) SELECT {key}, {row("facho_fold({0})")} FROM {table}', None
    )
    for name, rest in triggers.items():
        schema_editor.execute(f'CREATE TRIGGER {index}_{name} AFTER {rest}', None)


def index_by_trigrams(schema_editor):
    """Index by trigrams; a server that has none, or forbids them, searches without."""
    try:
        with transaction.atomic(using=schema_editor.connection.alias):
            for name, table, columns in MORE_TRIGRAMS:
                texts = ', '.join(f'facho_fold({column}) gin_trgm_ops' for column in columns)
                schema_editor.execute(f'CREATE INDEX {name} ON {table} USING gin ({texts})')
    except Error as error:
        logger.warning('search.not_indexed reason=%s', type(error).__name__)


def drop_index(apps, schema_editor):
    if schema_editor.connection.vendor == 'postgresql':
        for name, _table, _columns in MORE_TRIGRAMS:
            schema_editor.execute(f'DROP INDEX IF EXISTS {name}')
        return
    for index, _table, _key, _columns in TEXTS:
        for name in ('added', 'changed', 'deleted'):
            schema_editor.execute(f'DROP TRIGGER IF EXISTS {index}_{name}')
        schema_editor.execute(f'DROP TABLE {index}')


# ONUs online are nearly all, and their light moves with every poll: they stay out of PostgreSQL's index of states.
STATE_INDEX = 'onu_reading_state'
STATE_COLUMNS = '"onus_onureading" ("run_state", "rx_power_cdbm", "onu_id")'


def create_state_index(apps, schema_editor, where=" WHERE run_state <> 'online'"):
    """SQLite would not use a partial index for a value that is bound, and writes only indexes whose columns change."""
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute(f'DROP INDEX "{STATE_INDEX}"')
        schema_editor.execute(f'CREATE INDEX "{STATE_INDEX}" ON {STATE_COLUMNS}{where}')


def create_whole_index(apps, schema_editor):
    create_state_index(apps, schema_editor, where='')


class Migration(migrations.Migration):

    replaces = [('onus', '0004_states_without_online'), ('onus', '0005_customers_and_texts')]

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
        ('onus', '0001_squashed_0003_raw_values_in_blocks'),
    ]

    operations = [
        migrations.RunPython(create_state_index, create_whole_index),
        migrations.AddField(
            model_name='outage',
            name='breaks',
            field=models.JSONField(blank=True, default=list, editable=False, verbose_name='breaks'),
        ),
        migrations.AddField(
            model_name='onucustomer',
            name='contract',
            field=models.CharField(blank=True, db_default='', default='', max_length=60, verbose_name='contract number'),
        ),
        migrations.AddField(
            model_name='onucustomer',
            name='latitude',
            field=models.FloatField(blank=True, null=True, verbose_name='latitude'),
        ),
        migrations.AddField(
            model_name='onucustomer',
            name='longitude',
            field=models.FloatField(blank=True, null=True, verbose_name='longitude'),
        ),
        migrations.AddField(
            model_name='onucustomer',
            name='phone_digits',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(models.F('phone'), models.Value(' '), models.Value('')), models.Value('-'), models.Value('')), models.Value('('), models.Value('')), models.Value(')'), models.Value('')), models.Value('+'), models.Value('')), models.Value('.'), models.Value('')), models.Value('/'), models.Value('')), output_field=models.CharField(max_length=40)),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(condition=models.Q(('mac', ''), _negated=True), fields=['mac', 'id'], name='onu_mac'),
        ),
        migrations.AddConstraint(
            model_name='onucustomer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('latitude__isnull', True), ('longitude__isnull', True)), models.Q(('latitude__range', (-90, 90)), ('longitude__range', (-180, 180))), _connector='OR'), name='customer_is_on_earth'),
        ),
        migrations.RunPython(index_texts, drop_index),
    ]
