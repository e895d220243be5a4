"""Gives the test run a world of its own: a throw-away data folder, its secrets and its database.

Nothing of the user's environment is read. `--database postgresql` runs the tests that touch a database on a
private PostgreSQL server; the default runs everything on a SQLite file, as the embedded product does.
"""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings as django_settings
from django.utils import translation
from hypothesis import Phase, is_hypothesis_test
from hypothesis import settings as hypothesis_settings
from tools.tiers import PUSH, REST, TESTS, WITHOUT_DATABASE, tiers_of

from facho.core import data_folder
from facho.core.env import PREFIX, read_environment
from servers.emptying import empty_quickly
from servers.postgresql import private_postgresql
from servers.product_folder import create_database, migrated_file, share

if TYPE_CHECKING:
    from django.test import Client

    from servers.modes import Polling
    from servers.redis import RedisServer

SETTINGS_MODULE = "facho.core.settings"
FOREIGN_NAMES = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
# A test with one of these speaks to the database of the run, whichever that is.
DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "product_environ"}

_world = ExitStack()
atexit.register(_world.close)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Choose the database and set Django up on it, before any other conftest imports a model."""
    parser.addoption(
        "--database", choices=["sqlite", "postgresql"], default="sqlite", help="what the tests run on (default: sqlite)"
    )
    parser.addoption("--tier", choices=[PUSH, REST], help="what `make test` (push) or `make test-all` (rest) runs")
    parser.addoption("--migrated", type=Path, help="a folder for migrated databases, which several runs may share")
    config: pytest.Config = pluginmanager.getplugin("pytestconfig")
    _enter_world(parser.parse_known_args(list(config.invocation_params.args)).database)


def pytest_configure(config: pytest.Config) -> None:
    """Keep hypothesis honest: a slow example is no failure, and the same code has the same examples everywhere."""
    if migrated := config.getoption("--migrated"):
        share(migrated)
    # The rest has ten times as many for each property, and other ones.
    examples = 10 if config.getoption("--tier") == PUSH else 100
    hypothesis_settings.register_profile("facho", deadline=None, derandomize=True, max_examples=examples)
    hypothesis_settings.register_profile("explore", deadline=None, print_blob=True)
    # Whether anything fails is all that mutations ask: the smallest example would take minutes.
    found = [Phase.explicit, Phase.generate]
    hypothesis_settings.register_profile("mutations", deadline=None, derandomize=True, phases=found)
    hypothesis_settings.load_profile(config.getoption("--hypothesis-profile") or "facho")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started and remove what was written."""
    _world.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to each run its part; the lanes of both tiers together leave nothing out."""
    for item in items:
        if "product_environ" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)  # it starts processes
        if _folder(item) in WITHOUT_DATABASE and _touches_database(item):
            raise pytest.UsageError(f"{item.nodeid} touches a database: tools/tiers.py says that nothing there does")
    database, tier = config.getoption("--database"), config.getoption("--tier")
    belongs = _touches_database if database == "postgresql" else _runs_anywhere
    kept = [item for item in items if belongs(item) and (tier is None or tier in _tiers(item, database))]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> Iterator[None]:
    """Begin with a migrated database; a file, since threads, processes and WAL exist in the product."""
    default = django_settings.DATABASES["default"]
    with pytest.MonkeyPatch.context() as monkeypatch:
        if "sqlite" in default["ENGINE"]:
            default["TEST"]["NAME"] = str(Path(default["NAME"]).with_name("test.sqlite3"))
            shutil.copyfile(migrated_file(), default["TEST"]["NAME"])
        else:
            create_database(os.environ["DATABASE_URL"], f"test_{default['NAME']}")
        empty_quickly(monkeypatch)
        yield


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Take the database that was made already, and leave it to the end of the world, which takes its folder along."""
    return True


@pytest.fixture(autouse=True)
def own_language() -> Iterator[None]:
    """Forget the language of the test's last request, which would stay for the tests after it."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def own_waiting_polls() -> Iterator[None]:
    """Forget the polls that the test added: their rows are gone, and the next test begins with none."""
    yield
    if history := sys.modules.get("facho.onus.history"):
        history.ADDED.clear()


@pytest.fixture
def product_environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a product process of its own: an empty data folder and an empty database."""
    environ = {**os.environ, "FACHO_DATA_DIR": str(tmp_path / "facho-data")}
    url = environ.get("DATABASE_URL")
    if not url:
        yield environ
        return
    name = f"product_{os.urandom(6).hex()}"
    with psycopg.connect(urlsplit(url)._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield {**environ, "DATABASE_URL": urlsplit(url)._replace(path=f"/{name}").geturl()}
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def administrator(db: None) -> "Client":
    """Somebody who may do everything in the admin, and reads English."""
    from django.test import Client

    from api.rows import make_user
    from facho.accounts.roles import Role

    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN))
    return client


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator["RedisServer"]:
    """A Redis server of the run's own."""
    from servers.redis import private_redis

    with private_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(params=["embedded", pytest.param("distributed", marks=[pytest.mark.postgresql, pytest.mark.thorough])])
def polling(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["Polling"]:
    """What polls in a test that holds in both modes; the distributed one needs PostgreSQL, and seconds to start."""
    from servers.cluster import cluster_on_test_database
    from servers.modes import DistributedPolling, EmbeddedPolling

    if request.param == "embedded":
        yield EmbeddedPolling()
        return
    with cluster_on_test_database(request.getfixturevalue("redis_server"), tmp_path / "cluster") as cluster:
        yield DistributedPolling(cluster)


def _enter_world(database: str) -> None:
    if django_settings.configured:
        raise pytest.UsageError("DJANGO_SETTINGS_MODULE is set: unset it, the tests bring their own environment")
    for name in list(os.environ):
        if name.startswith(PREFIX) or name in FOREIGN_NAMES:
            del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="facho-tests-"))
    _world.callback(shutil.rmtree, folder, ignore_errors=True)
    os.environ["FACHO_DATA_DIR"] = str(folder / "data")
    # Tests read the texts as the source writes them; what the operator reads first is Spanish.
    os.environ["FACHO_LANGUAGE"] = "en"
    # As on SQLite, however many cores the machine has; tests of several engines ask for them.
    os.environ["FACHO_ENGINES"] = "1"
    # Off by default; on here, so that the tests that walk all addresses meet what is behind them.
    os.environ["FACHO_SMARTOLT_API"] = "on"
    os.environ["FACHO_ONU_METRICS"] = "1000"
    if database == "postgresql":
        os.environ["DATABASE_URL"] = _world.enter_context(private_postgresql(folder))
    environment = read_environment(os.environ)
    data_folder.prepare(data_folder.DataFolder.of(environment), mode=environment["FACHO_MODE"])
    _set_up_django()


def _set_up_django() -> None:
    import django
    import django.contrib.admin

    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS_MODULE
    # A slow hash is what protects a real password, and what makes a test slow.
    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    django.setup()
    # Tests of the admin are parametrized by its models, before any asks for an address.
    django.contrib.admin.autodiscover()


def _tiers(item: pytest.Item, database: str) -> set[str]:
    thorough = item.get_closest_marker("thorough")
    return tiers_of(
        item.path.relative_to(TESTS).as_posix(),
        database,
        thorough_on=None if thorough is None else thorough.args,
        is_property=is_hypothesis_test(getattr(item, "obj", None)),
    )


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


def _runs_anywhere(item: pytest.Item) -> bool:
    return item.get_closest_marker("postgresql") is None


def _touches_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("browser") or item.get_closest_marker("any_database"):
        return False
    marked = item.get_closest_marker("postgresql") or item.get_closest_marker("django_db")
    return marked is not None or not DATABASE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
