"""An index in which rows without a value come first, on either database."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement
from django.db.models import Index, Model


class NullsFirstIndex(Index):
    """Begins with the rows whose first column is null: SQLite does so by itself, PostgreSQL when it is told."""

    def create_sql(
        self, model: type[Model], schema_editor: BaseDatabaseSchemaEditor, using: str = "", **kwargs: Any
    ) -> Statement:
        """Write the statement in the dialect of the database."""
        if schema_editor.connection.vendor == "postgresql":
            (first, _order), *others = self.fields_orders
            self.fields_orders = [(first, "NULLS FIRST"), *others]
        return super().create_sql(model, schema_editor, using=using, **kwargs)
