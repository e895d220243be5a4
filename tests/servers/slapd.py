"""A private OpenLDAP server: free loopback ports, a throw-away folder, a certificate of an authority of its own."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from ldap3 import MODIFY_ADD, MODIFY_DELETE, MODIFY_REPLACE, Connection, Server

from facho.accounts.ldap import VerifiedTls
from servers.child import end_with_parent, free_port

BASE = "dc=example,dc=net"
PEOPLE, GROUPS, SERVICES = (f"ou={name},{BASE}" for name in ("People", "Groups", "Services"))
POLICY = f"cn=policy,{BASE}"
# The time that stands for ever in the schema of password policies.
LOCKED = "000001010000Z"
MANAGER, MANAGER_PASSWORD = f"cn=manager,{BASE}", "manager of the directory"
START_SECONDS = 30
STOP_SECONDS = 10
SCHEMAS, MODULES = Path("/etc/ldap/schema"), Path("/usr/lib/ldap")


class DirectoryDidNotStart(Exception):
    """The server ended or stayed silent; the message holds the end of its log."""


@dataclass(slots=True)
class Slapd:
    """A running directory with people and groups."""

    folder: Path
    port: int
    tls_port: int
    process: subprocess.Popen[bytes]

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    def add_person(self, name: str, password: str) -> None:
        more = {"uid": name, "sn": name, "cn": name, "mail": f"{name}@example.net", "userPassword": password}
        self._change("add", f"uid={name},{PEOPLE}", "inetOrgPerson", more)

    def add_group(self, name: str, *people: str) -> str:
        """Return the DN of a group; it has at least its own manager in it, as the schema wants."""
        members = [MANAGER, *(f"uid={person},{PEOPLE}" for person in people)]
        dn = f"cn={name},{GROUPS}"
        self._change("add", dn, "groupOfNames", {"member": members})
        return dn

    def add_service(self, name: str, password: str) -> None:
        """Add an account that is nobody's, to search with."""
        self._change("add", SERVICES, "organizationalUnit")
        classes = ["organizationalRole", "simpleSecurityObject"]
        self._change("add", f"cn={name},{SERVICES}", classes, {"userPassword": password})

    def leave(self, group: str, name: str) -> None:
        self._change("modify", group, {"member": [(MODIFY_DELETE, [f"uid={name},{PEOPLE}"])]})

    def join(self, group: str, name: str) -> None:
        self._change("modify", group, {"member": [(MODIFY_ADD, [f"uid={name},{PEOPLE}"])]})

    def set_password(self, name: str, password: str) -> None:
        self._change("modify", f"uid={name},{PEOPLE}", {"userPassword": [(MODIFY_REPLACE, [password])]})

    def lock(self, name: str) -> None:
        """Disable an account as administrators of OpenLDAP do: for good, until somebody unlocks it."""
        self._change("modify", f"uid={name},{PEOPLE}", {"pwdAccountLockedTime": [(MODIFY_REPLACE, [LOCKED])]})

    def unlock(self, name: str) -> None:
        self._change("modify", f"uid={name},{PEOPLE}", {"pwdAccountLockedTime": [(MODIFY_DELETE, [])]})

    def remove(self, dn: str) -> None:
        self._change("delete", dn)

    def _change(self, what: str, *arguments: object) -> None:
        connection = self.manager()
        try:
            assert getattr(connection, what)(*arguments), connection.result
        finally:
            connection.unbind()

    def manager(self) -> Connection:
        """Connect as the one who may change everything."""
        tls = VerifiedTls(ca_certs_file=str(self.ca_file))
        server = Server("localhost", self.tls_port, use_ssl=True, tls=tls)
        return Connection(server, MANAGER, MANAGER_PASSWORD, auto_bind=True)


@contextmanager
def private_slapd(folder: Path) -> Iterator[Slapd]:
    """Run a directory below `folder`."""
    program = shutil.which("slapd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise FileNotFoundError("OpenLDAP's server is not installed: run `make test`, or apt-get install slapd")
    write_certificates(folder)
    _prepare(folder)
    ports = free_port(), free_port()
    addresses = f"ldap://localhost:{ports[0]}/ ldaps://localhost:{ports[1]}/"
    with (folder / "log").open("ab") as output:
        process = subprocess.Popen(
            [program, "-d", "0", "-f", folder / "slapd.conf", "-h", addresses],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
            preexec_fn=end_with_parent,
        )
    directory = Slapd(folder, *ports, process)
    try:
        _wait(directory)
        directory._change("add", BASE, ["dcObject", "organization"], {"o": "Example"})
        for dn in (PEOPLE, GROUPS):
            directory._change("add", dn, "organizationalUnit")
        policy = {"sn": "policy", "pwdAttribute": "userPassword", "pwdLockout": "TRUE"}
        directory._change("add", POLICY, ["person", "pwdPolicy"], policy)
        yield directory
    finally:
        process.kill()
        process.wait(STOP_SECONDS)


def write_certificates(folder: Path) -> None:
    """Make an authority, and a certificate of it for localhost."""
    now = datetime.now(UTC)
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "server")}
    names = {name: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"test {name}")]) for name in keys}
    for name, key in keys.items():
        alternative = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(names[name])
            .issuer_name(names["ca"])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
            .add_extension(alternative, critical=False)
            .sign(keys["ca"], hashes.SHA256())
        )
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / f"{name}.key").write_bytes(private)


def _prepare(folder: Path) -> None:
    (folder / "data").mkdir()
    lines = [
        *(f"include {SCHEMAS / name}.schema" for name in ("core", "cosine", "inetorgperson")),
        f"pidfile {folder / 'slapd.pid'}",
        f"TLSCACertificateFile {folder / 'ca.pem'}",
        f"TLSCertificateFile {folder / 'server.pem'}",
        f"TLSCertificateKeyFile {folder / 'server.key'}",
        f"modulepath {MODULES}",
        "moduleload ppolicy",
        "database ldif",
        f'suffix "{BASE}"',
        f'rootdn "{MANAGER}"',
        f'rootpw "{MANAGER_PASSWORD}"',
        f"directory {folder / 'data'}",
        "access to attrs=userPassword by anonymous auth",
        "access to * by * read",
        "overlay ppolicy",
        f"ppolicy_default {POLICY}",
    ]
    (folder / "slapd.conf").write_text("\n".join([*lines, ""]))


def _wait(directory: Slapd) -> None:
    for _ in range(START_SECONDS * 20):
        try:
            socket.create_connection(("localhost", directory.tls_port), timeout=1).close()
        except OSError:
            try:
                directory.process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            break
        return
    raise DirectoryDidNotStart((directory.folder / "log").read_text(errors="replace")[-2000:])
