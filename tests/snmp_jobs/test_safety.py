"""How often is too often: the rule over columns and intervals, for jobs and nodes that are about to be saved."""

from collections.abc import Callable

import pytest
from django.core.exceptions import ValidationError

from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.snmp_jobs.safety import Limit, check_job, check_node, find_limit, find_live, reads_of
from factories import NOW, make_job, make_node, make_olt

HUAWEI = "huawei_smartax"
OPTICS_OID = "1.3.6.1.4.1.2011.6.128.1.1.2.51.1"


def job_of(vendor: str = HUAWEI, *, interval: int = 300, ignores: bool = False) -> SnmpJob:
    return SnmpJob(vendor=vendor, interval_seconds=interval, ignores_safe_interval=ignores)


def refusal(check: Callable[..., None], *arguments: object) -> list[str]:
    """Return the sentences with which a check refuses; none when it agrees."""
    try:
        check(*arguments)
    except ValidationError as error:
        return error.messages
    return []


def test_the_dearest_column_sets_the_limit() -> None:
    assert find_limit(HUAWEI, ["onu.run_state", "onu.rx_power", "onu.description"]) == Limit(1800, "onu.rx_power")
    assert find_limit(HUAWEI, ["onu.run_state"]) == Limit(300, "onu.run_state")


@pytest.mark.parametrize("vendor", load_definitions())
def test_the_limit_is_the_definitions_own(vendor: str) -> None:
    definition = load_definitions()[vendor]
    keys = list(definition.columns)

    limit = find_limit(vendor, keys)

    assert limit is not None
    assert limit.minimum_seconds == definition.safe_interval_seconds(keys)


@pytest.mark.parametrize(
    "oid", [OPTICS_OID, f"{OPTICS_OID}.4", f".{OPTICS_OID}.4.4194312448.2", "1.3.6.1.4.1.2011.6.128"]
)
def test_an_oid_of_the_operators_own_is_as_dear_as_the_column_it_reads(oid: str) -> None:
    limit = find_limit(HUAWEI, [oid])

    assert limit is not None
    assert limit.minimum_seconds == 1800
    assert find_live(HUAWEI, [oid])


@pytest.mark.parametrize("reads", [[], ["onu.horoscope"], ["1.3.6.1.4.1.99999.1"], ["not an oid"]])
def test_nothing_is_known_about_strange_things(reads: list[str]) -> None:
    assert find_limit(HUAWEI, reads) is None
    assert find_limit("acme", ["onu.rx_power"]) is None


def test_without_a_vendor_the_most_delicate_family_counts() -> None:
    strictest = max(
        definition.safe_interval_seconds(["onu.rx_power"])
        for definition in load_definitions().values()
        if definition.has_column("onu.rx_power")
    )

    assert find_limit("", ["onu.rx_power"]) == Limit(strictest, "onu.rx_power")
    assert find_limit("", ["sys.uptime"]) == Limit(60, "sys.uptime")


def test_an_interval_below_the_limit_is_refused_with_minimum_and_column() -> None:
    assert refusal(check_job, job_of(interval=300), ["onu.run_state", "onu.rx_power"]) == [
        "onu.rx_power must not be read more often than every 1800 s, and this would be every 300 s."
        " Choose a longer interval, or allow it on the job."
    ]


@pytest.mark.parametrize("interval", [1800, 1801, 86_400])
def test_an_interval_at_the_limit_or_above_is_safe(interval: int) -> None:
    assert refusal(check_job, job_of(interval=interval), ["onu.rx_power"]) == []


def test_an_operator_may_know_better() -> None:
    assert refusal(check_job, job_of(interval=5, ignores=True), ["onu.rx_power"]) == []


@pytest.mark.django_db
@pytest.mark.parametrize("ignores", [False, True])
def test_a_live_job_is_never_chained_whatever_is_allowed(ignores: bool) -> None:
    job = job_of(interval=86_400, ignores=ignores)
    job.master_job = make_job()

    assert refusal(check_job, job, ["onu.run_state", "onu.rx_power"]) == [
        "onu.rx_power is queried from each ONU and takes long: put it in a job of its own, not in a chain."
    ]


@pytest.mark.django_db
def test_a_chained_job_is_judged_by_its_masters_interval() -> None:
    master = make_job()
    SnmpJob.objects.filter(id=master.id).update(interval_seconds=60)
    master.refresh_from_db()
    job = job_of(interval=86_400)
    job.master_job = master

    [sentence] = refusal(check_job, job, ["onu.run_state"])

    assert "every 300 s, and this would be every 60 s" in sentence


@pytest.mark.django_db
def test_a_master_that_gets_faster_takes_its_chain_along() -> None:
    master, member = make_job(columns=()), make_job(columns=("onu.run_state",))
    SnmpJob.objects.filter(id=member.id).update(master_job=master)
    master.interval_seconds = 60

    [sentence] = refusal(check_job, master, [])
    SnmpJob.objects.filter(id=member.id).update(ignores_safe_interval=True)

    assert sentence.startswith("onu.run_state must not")
    assert refusal(check_job, master, []) == []


@pytest.mark.django_db
def test_a_job_that_joins_a_chain_is_judged_by_the_pace_of_its_masters_nodes() -> None:
    master = make_node(job=make_job(columns=()), interval_seconds=60)
    node = make_node(master.workflow.olt, make_job(columns=("onu.run_state",)), interval_seconds=300)
    make_node(make_olt(), node.job, interval_seconds=300)

    node.job.master_job = master.job
    [sentence] = refusal(check_job, node.job, ["onu.run_state"])
    node.job.master_job = None

    assert f"OLT {master.workflow.olt.name} has it every 60 s" in sentence
    assert refusal(check_job, node.job, ["onu.run_state"]) == []


@pytest.mark.django_db
def test_a_job_that_gets_dearer_is_refused_while_a_node_runs_it_too_often() -> None:
    node = make_node(interval_seconds=300)
    node.job.interval_seconds = 1800

    [sentence] = refusal(check_job, node.job, ["onu.rx_power"])
    WorkflowNode.objects.update(enabled=False)

    assert f"OLT {node.workflow.olt.name} has it every 300 s" in sentence
    assert refusal(check_job, node.job, ["onu.rx_power"]) == []


@pytest.mark.django_db
def test_a_node_is_judged_by_the_family_of_its_olt() -> None:
    job = make_job(columns=("onu.rx_power",))
    SnmpJob.objects.filter(id=job.id).update(vendor="")

    on_huawei = make_node(make_olt(vendor=HUAWEI), job, interval_seconds=1800)
    on_zte = make_node(make_olt(vendor="zte_c300_c320"), job, interval_seconds=1800)

    assert refusal(check_node, on_huawei) == []
    assert "every 3600 s" in refusal(check_node, on_zte)[0]


@pytest.mark.django_db
def test_a_node_of_an_olt_yet_unknown_is_judged_by_its_jobs_family() -> None:
    node = make_node(make_olt(vendor=""), make_job(columns=("onu.rx_power",)), interval_seconds=300)

    assert "every 1800 s" in refusal(check_node, node)[0]


@pytest.mark.django_db
def test_a_node_takes_along_what_is_chained_to_it() -> None:
    master = make_node(job=make_job(columns=()), interval_seconds=60)
    member = WorkflowNode.objects.create(
        workflow=master.workflow,
        job=make_job(columns=("onu.run_state",)),
        interval_seconds=300,
        is_chain_node=True,
        master_node=master,
    )

    assert refusal(check_node, master) == refusal(check_node, member) != []
    WorkflowNode.objects.filter(id=member.id).update(enabled=False)
    assert refusal(check_node, master) == []


@pytest.mark.django_db
def test_a_node_of_a_live_job_is_never_chained() -> None:
    master = make_node()
    live = make_job(columns=("onu.rx_power",))
    live.master_job = master.job
    node = WorkflowNode(workflow=master.workflow, job=live, interval_seconds=3600, master_node=master)

    assert "in a job of its own" in refusal(check_node, node)[0]


@pytest.mark.django_db
@pytest.mark.parametrize("vendor", load_definitions())
def test_every_vendors_ready_made_jobs_are_safe(vendor: str) -> None:
    apply_ready_made_jobs(make_olt(vendor=vendor), now=NOW)

    assert [refusal(check_job, job, reads_of(job)) for job in SnmpJob.objects.all() if job.vendor == vendor] == [
        [] for _ in load_definitions()[vendor].jobs
    ]
    assert all(refusal(check_node, node) == [] for node in WorkflowNode.objects.all())


def test_every_family_asks_for_patience_with_live_columns() -> None:
    for definition in load_definitions().values():
        classes = definition.polling.classes
        assert classes[Cost.LIVE].min_interval_seconds >= 1800 > classes[Cost.STATE].min_interval_seconds
