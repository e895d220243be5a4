"""What a simulated OLT says about itself, so that its family is recognised."""

from dataclasses import dataclass

from facho.polling.snmp.oid import Oid
from facho.polling.vendors.definition import Definition

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
    # Where a family is known by its description, the pattern without its anchors is the text that it looks for.
    text = rules.description.pattern.strip("^$").replace("\\", "") if rules.description else definition.title
    return Identity(object_id, text)
