"""What a service is told when it starts, and what it refuses to start with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from askwise.core.parameters import Real, Size, check_settings
from askwise.errors import InputError

if TYPE_CHECKING:
    from askwise.model.model import LearnedModel

Proxies = tuple[IPv4Network | IPv6Network, ...]


@dataclass(frozen=True)
class Limits:
    """What one client may ask for. Each is an option of `askwise serve`."""

    max_body: Size = field(default=1 << 20, metadata={"words": "bytes of one request"})
    max_cases: Size = field(default=1000, metadata={"words": "cases of one batch"})
    max_connections: Size = field(default=256, metadata={"words": "connections at the same time"})
    max_connections_per_client: Size = field(default=128, metadata={"words": "of these, from one client address"})
    rate: Annotated[float, Real(at_least=0)] = field(
        default=100.0, metadata={"words": "requests per second of one client address, 0 for no limit"}
    )
    time_limit: Annotated[float, Real(above=0)] = field(
        default=10.0, metadata={"words": "seconds for a request to arrive and for its answer to be taken"}
    )

    def part(self, workers: int) -> Limits:
        """Those of one of several workers: together they have no more connections than are allowed."""
        shared = self.max_connections // workers, self.max_connections_per_client // workers
        return replace(self, max_connections=shared[0], max_connections_per_client=shared[1])

    def __post_init__(self) -> None:
        check_settings(self, lambda name: f"--{name.replace('_', '-')}")


@dataclass(frozen=True)
class ServiceSettings:
    """How a service behaves."""

    limits: Limits = Limits()
    token: str | None = None
    local: bool = True  # answers only under names of this machine, so that no other page's script gets at it by a name of its own
    log_values: bool = False
    echo: bool = False
    proxies: Proxies = ()  # whose word about the client is taken


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def checked_proxies(addresses: list[str]) -> Proxies:
    """The addresses of `--trusted-proxy`; each may be a network."""
    networks = []
    for text in addresses:
        try:
            networks.append(ip_network(text, strict=False))
        except ValueError:
            raise InputError(f"--trusted-proxy is {text!r}; it must be an address such as 10.0.0.5 or 10.0.0.0/8") from None
    return tuple(networks)


def parsed(address: str) -> IPv4Address | IPv6Address:
    """An address. A socket that takes both sorts, as of `--host ::`, writes 10.0.0.5 as ::ffff:10.0.0.5."""
    plain = ip_address(address)
    return getattr(plain, "ipv4_mapped", None) or plain


def is_trusted(address: str, proxies: Proxies) -> bool:
    """Whether an address is one of our proxies."""
    try:
        return bool(proxies) and any(parsed(address) in network for network in proxies)
    except ValueError:
        return False


def checked_token(host: str, token: str | None, proxies: Proxies = ()) -> str | None:
    """The token, if there is one; whoever opens the service to others must have one."""
    if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
        raise InputError("the token is empty or holds blanks or signs that a header cannot carry; use letters and digits")
    advice = "set a token with ASKWISE_TOKEN or --token"
    if token is None and not is_loopback(host):
        raise InputError(f"--host {host} can be reached by others; {advice}, or leave --host out")
    if token is None and proxies:
        raise InputError(f"others reach the service through a proxy; {advice}")
    return token


def load_models(paths: list[Path]) -> dict[str, LearnedModel]:
    """By the names of their files without the ending. What cannot answer one case at a time is refused now, not later."""
    from askwise.facade import load
    from askwise.session.session import Session

    models: dict[str, LearnedModel] = {}
    for path in paths:
        name = path.stem
        if name.encode(errors="ignore").decode() != name:  # it is part of addresses
            raise InputError(f"the name of the file {str(path)!r} is not Unicode text; rename it")
        if name in models:
            raise InputError(f"two models are called {name!r}; rename one of the files")
        models[name] = load(path)
        Session(models[name], case_id="0").next()  # also warms up what is computed once
    return models
