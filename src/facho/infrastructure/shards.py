"""Selects the rows of one engine's OLTs, in SQL."""

from django.db.models import F, Q
from django.db.models.functions import Mod
from django.db.models.lookups import Exact

from facho.polling.domain.shard import Shard


def in_shard(column: str, shard: Shard) -> Q:
    """Match rows whose OLT, named by `column`, is the shard's; a single engine asks for nothing more than before."""
    return Q() if shard.is_whole else Q(Exact(Mod(F(column), shard.count), shard.remainder))
