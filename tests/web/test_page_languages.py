"""Every page speaks one language: no English on Spanish pages, no Spanish on English ones, the admin included."""

import re
from html.parser import HTMLParser

import pytest
from bench import pages
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from facho.snmp_jobs.models import SnmpJob

# The filling lets PostgreSQL look at its tables, which no transaction may.
pytestmark = pytest.mark.django_db(transaction=True)
ENGLISH = re.compile(
    r"\b(the|and|with|without|created|updated|success|failed|probe|kept|answer|started|finished|enabled|disabled"
    r"|running|pending|skipped|waiting|duration|due|every|from|since|until|by|at|is|are|was|not|none|all|any|yes"
    r"|type|key|reason|level|message|severity|status|settings|description|result|rule)\b",
    re.IGNORECASE,
)
SPANISH = re.compile(
    r"[áéíóúñ¿¡]|\b(el|la|los|las|de|del|y|con|sin|por|para|que|cada|nodo|tarea|regla|estado|puerto|luz|caída"
    r"|potencia|corte|leer|lectura|descubrimiento|fabricante)\b",
    re.IGNORECASE,
)
# "status" and "as" are words of Portuguese, too.
NOT_PORTUGUESE = re.compile(
    ENGLISH.pattern.replace("|status", "").replace("|by", "")
    + r"|[ñ¿¡]|\b(el|del|y|con|sin|cada uno|tarea|regla|puerto|luz|corte|lectura|hay)\b",
    re.IGNORECASE,
)
ADMIN_ROOMS = {
    *(
        "accounts",
        "admin",
        "alerts",
        "api",
        "auth",
        "execution_coordinator",
        "executions",
        "hosts",
        "onus",
        "snmp_jobs",
    ),
    "zabbix_pollers",
}
# Codes, names of protocols and products, and values that are data keep their spelling in both languages.
DATA = re.compile(
    r"get_\w+|descubrimiento|estado|SmartAX|Read the Docs|dying gasp|[\w.]+@[\w.]+|https?://\S+|/[\w/{}.-]+|[A-Z_]{3,}=?\S*"
    r"|\b(hour|day|minute|auto)\b",
)


class VisibleText(HTMLParser):
    """Collects what a reader sees; texts that declare another language are theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"script", "style", "code", "pre", "bdi", "textarea"} or (tag == "option" and given.get("lang")):
            self._hidden.append(tag)
        self.texts += [value for name in ("title", "aria-label", "placeholder") if (value := given.get(name))]

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and self._hidden[-1] == tag:
            self._hidden.pop()

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.texts.append(" ".join(data.split()))


def foreign_texts(html: str, foreign: re.Pattern[str], names: re.Pattern[str]) -> set[str]:
    reader = VisibleText()
    reader.feed(html)
    return {text for text in reader.texts if foreign.search(DATA.sub("", names.sub("", text)))}


def job_names() -> re.Pattern[str]:
    """Match the names of jobs: their admin shows them as stored, since they can be edited there."""
    names = sorted(SnmpJob.objects.values_list("name", flat=True), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, names)))


def admin_pages() -> list[str]:
    found = [reverse("admin:index")]
    for model in admin.site._registry:
        if model._meta.app_label not in ADMIN_ROOMS:
            continue
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        found.append(reverse(f"{name}_changelist"))
        first = model._default_manager.order_by("pk").first()
        if first is not None:
            found.append(reverse(f"{name}_change", args=[first.pk]))
        found.append(reverse(f"{name}_add"))
    return found


@pytest.mark.parametrize(
    ("language", "foreign"),
    [
        pytest.param("es", ENGLISH, id="Spanish"),
        pytest.param("en", SPANISH, id="English"),
        pytest.param("pt-br", NOT_PORTUGUESE, id="Portuguese", marks=pytest.mark.thorough),
    ],
)
def test_no_page_mixes_languages(language: str, foreign: re.Pattern[str]) -> None:
    client: Client = pages.client_of_a_filled_product(200)
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = language

    found: dict[str, list[str]] = {}
    in_snmp_jobs, elsewhere = job_names(), re.compile(r"(?!)")
    for address in [*pages.addresses().values(), *admin_pages()]:
        answer = client.get(address, headers={"accept-language": language})
        if answer.status_code == 200 and "html" in answer["Content-Type"]:
            names = in_snmp_jobs if "/snmp_jobs/" in address else elsewhere
            for text in foreign_texts(answer.content.decode(), foreign, names):
                found.setdefault(text, []).append(address)

    assert {text: addresses[:2] for text, addresses in found.items()} == {}
