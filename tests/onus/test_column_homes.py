"""Every value that a definition offers about ONUs is read by a ready-made job and lands in a column of its own."""

import pytest

from facho.onus.store import CAUSE, DESCRIPTION, ONU_COLUMNS, READING_COLUMNS, STATE
from facho.polling.vendors.definition import OLT_NAME, SERIAL, Definition
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.snmp_get import olt_values

HOMES = {column.key for column in (*ONU_COLUMNS, *READING_COLUMNS)} | {SERIAL, DESCRIPTION, STATE, CAUSE}
# Tells where an ONU is, and nothing of it.
PLACES = {OLT_NAME}
OF_WAITING_ONUS = {olt_values.SERIAL, olt_values.MODEL, *olt_values.PORT_COLUMNS.values()}
FAMILIES = [family for family in load_definitions().values() if family.onu_indexes]


@pytest.fixture(params=FAMILIES, ids=lambda family: family.key)
def family(request: pytest.FixtureRequest) -> Definition:
    return request.param  # type: ignore[no-any-return]


def asked(family: Definition, scope: Scope) -> set[str]:
    keys = {key for job in family.jobs for key in job.columns}
    return {key for key in keys if family.column(key).index.scope is scope}


def test_no_column_of_a_ready_made_job_is_dropped(family: Definition) -> None:
    assert asked(family, Scope.ONU) <= HOMES | PLACES
    assert asked(family, Scope.AUTOFIND) <= OF_WAITING_ONUS


def test_whatever_has_a_column_is_read_where_the_family_offers_it(family: Definition) -> None:
    read = {column.key for key in asked(family, Scope.ONU) for column in family.readings(key)}

    assert HOMES & family.columns.keys() <= read


def test_a_state_is_read_with_its_cause(family: Definition) -> None:
    for job in family.jobs:
        read = {column.key for key in job.columns for column in family.readings(key)}
        assert STATE not in read or CAUSE in read or not family.has_column(CAUSE)
