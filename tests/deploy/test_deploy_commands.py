"""Everything that `deploy/` starts exists, takes the options that it is given, and together reads every queue."""

import shlex
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import click
import pytest
from celery.bin import beat, worker
from celery.bin.base import CLIContext
from deploy_files import PARTS, PROGRAMS, compose_command, read_compose, supervisor_command, unit_command
from django.conf import settings

from facho.core.celery import app
from facho.core.cli.main import build_parser
from facho.core.product import MIGRATE

Command = Callable[[str], list[str]]
WAYS: dict[str, Command] = {
    "systemd": lambda part: unit_command(f"facho-{part}"),
    "supervisor": supervisor_command,
    "compose": compose_command,
}
CELERY = {"worker": worker.worker, "beat": beat.beat}
# Nobody listens to what workers tell each other, and every word of it costs Redis.
QUIET = ("without_gossip", "without_mingle", "without_heartbeat")


def options_of(command: list[str]) -> dict[str, Any]:
    """Parse as Celery does, without starting anything."""
    program, named, quiet, name, *arguments = command
    # Its banner would be text in a log of JSON.
    assert (PurePath(program).name, named, quiet) == ("celery", "--app=facho.core", "--quiet")
    context = click.Context(CELERY[name], obj=CLIContext(app=app, no_color=True, workdir=None))
    CELERY[name].parse_args(context, arguments)
    return context.params


def queues_of(command: list[str]) -> list[str]:
    queues: list[str] = options_of(command)["queues"]
    return queues


@pytest.mark.parametrize("way", WAYS)
def test_every_part_is_a_command_that_exists(way: str) -> None:
    for part in PARTS:
        program, *arguments = WAYS[way](part)
        if PurePath(program).name == "facho":
            assert build_parser().parse_args(arguments).handler
        else:
            assert options_of(WAYS[way](part))


@pytest.mark.parametrize("way", WAYS)
def test_the_workers_read_every_queue_and_each_queue_once(way: str) -> None:
    queues = [queue for part in ("worker", "beat-worker") for queue in queues_of(WAYS[way](part))]

    assert sorted(queues) == sorted(settings.CELERY_TASK_QUEUES)
    assert queues_of(WAYS[way]("beat-worker")) == ["zabbix_scheduler"]


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_has_a_slot_for_every_poller_and_keeps_quiet(way: str) -> None:
    """Without a number on the command line the setting counts, which follows FACHO_POLLERS."""
    options = options_of(WAYS[way]("worker"))

    assert options["concurrency"] == settings.CELERY_WORKER_CONCURRENCY > settings.FACHO_POLLERS
    assert not [word for word in WAYS[way]("worker") if word.startswith(("-c", "--concurrency"))]
    assert all(options[name] for name in QUIET)


def test_the_worker_of_a_group_reads_the_queues_of_its_group() -> None:
    plain, of_group = queues_of(unit_command("facho-worker")), queues_of(unit_command("facho-worker@"))

    assert of_group == [f"{queue}.%i" for queue in plain]


def test_the_same_is_started_in_every_way() -> None:
    for part in PARTS:
        expected = WAYS["compose"](part)
        for way in ("systemd", "supervisor"):
            program, *arguments = WAYS[way](part)
            assert [program.removeprefix(PROGRAMS), *arguments] == expected


def test_the_database_is_brought_up_to_date_before_anything_starts() -> None:
    """S0-44: migrations, and an entry of the supervisor for the scheduler."""
    services = read_compose()["services"]

    assert shlex.join(services["migrate"]["command"]) == MIGRATE
    assert all("migrate" in services[part]["depends_on"] for part in PARTS)
    assert supervisor_command("scheduler") == [f"{PROGRAMS}facho", "scheduler"]
