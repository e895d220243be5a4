"""How messages travel over Redis: a broken connection lets go what it held, and the execution's row brings it back."""

from kombu.transport import redis


class Channel(redis.Channel):
    """Puts nothing back when it closes: kombu asks a Redis that is away for it, and the worker ends over the answer."""

    do_restore = False


class Transport(redis.Transport):
    """Redis, with channels that close whatever happens."""

    Channel = Channel
