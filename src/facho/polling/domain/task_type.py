"""What kind of question a job asks, its rank within an OLT, and the name under which its quota is kept."""

from enum import StrEnum


class QueryType(StrEnum):
    """How a job reads the device."""

    DISCOVERY = "discovery"
    GET = "get"
    WALK = "walk"
    TABLE = "table"
    BULK = "bulk"


# Larger goes first among the nodes of one OLT that keeps up (decision D11).
RANK: dict[QueryType, int] = {
    QueryType.DISCOVERY: 90,
    QueryType.GET: 40,
    QueryType.WALK: 30,
    QueryType.TABLE: 20,
    QueryType.BULK: 10,
}


def task_type(query_type: QueryType, slug: str) -> str:
    """Name the quota unit: every discovery is one, other jobs are told apart by their slug."""
    return QueryType.DISCOVERY.value if query_type is QueryType.DISCOVERY else f"{query_type.value}_{slug}"
