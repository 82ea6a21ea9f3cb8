"""Fixtures: one server for all tests, clean before each, alive after each."""

import pytest
import redis

from support import Raw, Server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture
def server(shared_server):
    """The server that all tests share. It holds no keys, and must outlive the test."""
    with Raw(shared_server.port) as admin:
        assert admin.call("FLUSHALL") == b"+OK"
    yield shared_server
    shared_server.alive()


@pytest.fixture
def start(tmp_path):
    """Starts servers of the test's own, with directives as arguments."""
    started = []

    def start_server(*directives):
        started.append(Server(tmp_path, *directives))
        return started[-1]

    yield start_server
    for server in started:
        server.stop()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def r(server, request):
    """A redis-py client, once for each protocol."""
    with redis.Redis(port=server.port, protocol=request.param, decode_responses=True) as client:
        yield client


@pytest.fixture
def configure(server):
    """Sets directives, and puts the old values back after the test."""
    old = {}
    with redis.Redis(port=server.port, decode_responses=True) as admin:

        def configure_server(**directives):
            for name, value in directives.items():
                name = name.replace("_", "-")
                old.setdefault(name, admin.config_get(name)[name])
                admin.config_set(name, value)

        yield configure_server
        for name, value in old.items():
            admin.config_set(name, value)
