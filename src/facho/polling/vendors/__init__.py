"""Says, as data, what each brand exposes and how to read it."""

from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import CostClass, Definition, Job, Polling, Refusal, Table
from facho.polling.vendors.index import Index, Place
from facho.polling.vendors.loader import definition, load_definitions
from facho.polling.vendors.recognition import recognise
from facho.polling.vendors.schema import DefinitionError
from facho.polling.vendors.values import Decoded, Reject
from facho.polling.vendors.vocabulary import (
    AdminState,
    Confidence,
    Cost,
    DownCause,
    PhaseState,
    QueryType,
    RunState,
    Scope,
    Unit,
)

__all__ = [
    "AdminState",
    "Column",
    "Confidence",
    "Cost",
    "CostClass",
    "Decoded",
    "Definition",
    "DefinitionError",
    "DownCause",
    "Index",
    "Job",
    "PhaseState",
    "Place",
    "Polling",
    "QueryType",
    "Refusal",
    "Reject",
    "RunState",
    "Scope",
    "Table",
    "Unit",
    "definition",
    "load_definitions",
    "recognise",
]
