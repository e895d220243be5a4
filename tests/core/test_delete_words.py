"""Whoever deletes an OLT reads what goes with it, and reads it in words."""

from collections.abc import Iterator

from django.db.models import CASCADE, Model
from django.utils.functional import Promise

from facho.hosts.models import Olt


def test_everything_that_goes_with_an_olt_has_a_name_for_people() -> None:
    # What only joins two others has Django's words.
    gone = {model for model in go_with(Olt, set()) if not model._meta.auto_created}

    nameless = {model for model in gone if not isinstance(model._meta.verbose_name_plural, Promise)}
    names = [str(model._meta.verbose_name_plural) for model in gone]
    assert nameless == set()
    assert len(set(names)) == len(names)


def go_with(model: type[Model], known: set[type[Model]]) -> Iterator[type[Model]]:
    """Give each kind of row that is deleted with those of a model."""
    for relation in model._meta.get_fields(include_hidden=True):
        related = relation.related_model
        if relation.auto_created and getattr(relation, "on_delete", None) is CASCADE and related not in known:
            known.add(related)
            yield related
            yield from go_with(related, known)
