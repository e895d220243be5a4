"""Run a node now, once: the pollers' own endpoint with an idempotency key."""

from drf_spectacular.utils import extend_schema, extend_schema_view

from facho.api.idempotency import KEY_PARAMETER, Idempotent
from facho.zabbix_pollers.serializers import RunSerializer
from facho.zabbix_pollers.views import RunNodeView


@extend_schema_view(
    post=extend_schema(
        description="Ask for a run of a master and its chain as soon as the OLT is free.",
        parameters=[KEY_PARAMETER],
        request=None,
        responses={202: RunSerializer},
        operation_id="pollers_run_node",
        tags=["pollers"],
    )
)
class RunNodeOnceView(Idempotent, RunNodeView):
    """Run a node now; a repeated request under one key asks for one run."""
