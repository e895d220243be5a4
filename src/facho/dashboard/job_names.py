"""What people call the jobs behind the task types under which runs and quotas are counted."""

from facho.snmp_jobs.models import SnmpJob


def load_job_names(olt_id: int | None = None) -> dict[str, str]:
    """Load the names of all jobs, or of those of one OLT, by task type; of several the oldest names it; one query."""
    jobs = SnmpJob.objects.order_by("-id").only("name", "slug", "query_type")
    if olt_id is not None:
        jobs = jobs.filter(nodes__workflow__olt_id=olt_id)
    return {job.task_type: job.name for job in jobs}
