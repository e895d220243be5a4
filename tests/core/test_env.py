"""Each variable is read once, typed; what cannot be read is named and replaced by its default."""

from pathlib import Path

import pytest

from facho.core.env import SETTINGS, Mode, Problem, count_engines, problem_with, read_environment


def test_an_empty_environment_gives_the_defaults() -> None:
    environment = read_environment({})

    assert environment["FACHO_MODE"] is Mode.EMBEDDED
    assert environment["FACHO_DATA_DIR"] == Path("facho-data")
    assert environment["FACHO_ALLOWED_HOSTS"] == ("localhost", "127.0.0.1", "[::1]")
    assert environment["FACHO_SECRET_KEY_FILE"] is None
    assert environment.problems == ()


def test_an_empty_value_means_the_default() -> None:
    assert read_environment({"FACHO_POLLERS": ""})["FACHO_POLLERS"] == 10


@pytest.mark.parametrize(("environ", "pollers"), [({}, 10), ({"FACHO_POLLERS": "25"}, 25)])
def test_there_are_ten_pollers_unless_configured(environ: dict[str, str], pollers: int) -> None:
    """S0-11, S2-11."""
    assert read_environment(environ)["FACHO_POLLERS"] == pollers


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("FACHO_MODE", "distributed", Mode.DISTRIBUTED),
        ("FACHO_POLLERS", "1", 1),
        ("FACHO_POLLERS", "25", 25),
        ("FACHO_LEASE_SECONDS", "2.5", 2.5),
        ("FACHO_LEASE_SECONDS", "86399.5", 86_399.5),
        ("FACHO_QUOTA_PERCENT", "100", 100),
        ("FACHO_COORDINATOR_SECONDS", "1", 1),
        ("FACHO_COORDINATOR_SECONDS", "60", 60),
        ("FACHO_HISTORY_DAYS", "36500", 36_500),
        ("FACHO_BEAT_CLEANUP_SECONDS", "2678400", 2_678_400),
        ("FACHO_BIND", "[::1]:9000", "[::1]:9000"),
        ("FACHO_ALLOWED_HOSTS", "a.example, b.example,", ("a.example", "b.example")),
        ("FACHO_TIME_ZONE", "America/Bogota", "America/Bogota"),
        ("FACHO_ENCRYPTION_KEYS_FILE", "/run/keys", Path("/run/keys")),
    ],
)
def test_a_value_is_read_into_its_type(name: str, text: str, value: object) -> None:
    environment = read_environment({name: text})

    assert environment[name] == value
    assert environment.problems == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FACHO_MODE", "cluster"),
        ("FACHO_DATA_DIR", "~no-such-user/data"),
        ("FACHO_POLLERS", "0"),
        ("FACHO_POLLERS", "many"),
        ("FACHO_ENGINES", "0"),
        ("FACHO_ENGINES", "all"),
        ("FACHO_LEASE_SECONDS", "-1"),
        ("FACHO_LEASE_SECONDS", "0"),
        ("FACHO_LEASE_SECONDS", "86400"),
        ("FACHO_LEASE_SECONDS", "nan"),
        ("FACHO_QUOTA_PERCENT", "101"),
        ("FACHO_COORDINATOR_SECONDS", "0.9"),
        ("FACHO_COORDINATOR_SECONDS", "61"),
        ("FACHO_HISTORY_DAYS", "36501"),
        ("FACHO_BEAT_CLEANUP_SECONDS", "2678401"),
        ("FACHO_SUSPENDED_RETURN", "nobody"),
        ("FACHO_BIND", "8000"),
        ("FACHO_BIND", "127.0.0.1:70000"),
        ("FACHO_BIND", "127.0.0.1:+80"),
        ("FACHO_LANGUAGE", "fr"),
        ("FACHO_LOG_LEVEL", "LOUD"),
        ("FACHO_TIME_ZONE", "Mars/Olympus"),
        ("FACHO_TIME_ZONE", "America"),
        ("FACHO_TIME_ZONE", "../etc/passwd"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_and_replaced(name: str, text: str) -> None:
    environment = read_environment({name: text})

    assert environment.problems == (problem_with(name),)
    assert environment[name] == read_environment({})[name]


def test_every_problem_is_reported_at_once() -> None:
    environment = read_environment({"FACHO_POLLERS": "x", "FACHO_LANGUAGE": "x"})

    assert environment.problems == (
        Problem("FACHO_POLLERS", "a whole number from 1"),
        Problem("FACHO_LANGUAGE", "es, en or pt-br"),
    )


@pytest.mark.parametrize(
    ("environ", "cores", "expected"),
    [
        ({}, 2, 2),
        ({}, 64, 8),
        ({"FACHO_POLLERS": "3"}, 64, 3),
        ({"FACHO_ENGINES": "12", "FACHO_POLLERS": "20"}, 2, 12),
        ({"FACHO_ENGINES": "12"}, 2, 1),
        ({"FACHO_MODE": "distributed"}, 4, 1),
    ],
)
def test_engines_are_as_many_as_cores_unless_said_otherwise(environ: dict[str, str], cores: int, expected: int) -> None:
    assert count_engines(read_environment(environ), cores=cores, can_share=True) == expected


def test_sqlite_has_one_engine() -> None:
    assert count_engines(read_environment({"FACHO_ENGINES": "4"}), cores=4, can_share=False) == 1


def test_a_misspelt_name_is_noticed_and_a_foreign_one_is_not() -> None:
    environment = read_environment({"FACHO_POLERS": "5", "PATH": "/bin"})

    assert environment.unknown_names == ("FACHO_POLERS",)


def test_names_are_declared_once() -> None:
    names = [setting.name for setting in SETTINGS]

    assert len(names) == len(set(names))
