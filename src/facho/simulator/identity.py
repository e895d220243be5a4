"""What a simulated OLT says about itself, so that its family is recognised."""

from dataclasses import dataclass

from facho.polling.snmp.oid import Oid
from facho.polling.vendors.definition import Definition, Recognition

NO_OBJECT_ID: Oid = (0, 0)


@dataclass(frozen=True, slots=True)
class Identity:
    """Values of sysObjectID and sysDescr."""

    object_id: Oid
    description: str


def identity_of(definition: Definition, number: int) -> Identity:
    """Choose a model of the family; OLTs of different numbers are different models."""
    rules = definition.recognition
    ids = tuple(rules.models) or rules.prefixes or (NO_OBJECT_ID,)
    object_id = ids[number % len(ids)]
    model = rules.models.get(object_id, definition.title)
    return Identity(object_id, _description(rules, model) or f"{definition.brand} {model}")


def _description(rules: Recognition, model: str) -> str | None:
    """Return a text that the family's pattern accepts: a model's name, or what the pattern literally looks for."""
    if rules.description is None:
        return None
    literal = rules.description.pattern.strip("^$").replace("\\", "")
    return next((text for text in (model, literal) if rules.description.search(text)), None)
