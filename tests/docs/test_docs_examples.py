"""Every fenced block of the pages is run, or read as what it is read by, in a test; the few others are named here."""

import re
from collections import Counter

from docs_pages import PAGES, ROOT, all_blocks, page_id

# Run line by line by tests/deploy on machines that boot; its test_operations_page.py looks that none is left out.
ON_MACHINES = {("docs/operations.md", "sh"), ("docs/operations.md", "console")}
SETTINGS = re.compile(r"(?:[A-Z_]+=.*\n)+")
# By page and language: how many there are, and the test that runs them and names the page.
RUN = {
    ("docs/alerts.md", "json"): (1, "tests/alerts/test_webhook.py"),
    ("docs/alerts.md", "python"): (1, "tests/alerts/test_webhook.py"),
    ("docs/configuration.md", "sh"): (1, "tests/docs/test_docs_shell.py"),
    ("docs/metrics.md", "yaml"): (3, "tests/api/test_metrics_page.py"),
    ("docs/metrics.md", "toml"): (1, "tests/api/test_metrics_page.py"),
    ("docs/metrics.md", "text"): (1, "tests/api/test_metrics_page.py"),
    ("docs/neighbours.md", "csv"): (1, "tests/core/cli/test_netbox_page.py"),
    ("docs/neighbours.md", "ini"): (2, "tests/core/cli/test_netbox_page.py"),
    ("docs/neighbours.md", "sh"): (1, "tests/core/cli/test_netbox_page.py"),
    ("docs/operations.md", "ini"): (2, "tests/docs/test_docs_shell.py"),
    ("docs/operations.md", "nginx"): (1, "tests/docs/test_docs_proxy.py"),
    ("docs/operations.md", "text"): (1, "tests/docs/test_docs_shell.py"),
    ("docs/operations.md", "yaml"): (1, "tests/deploy/test_helm_chart.py"),
    ("docs/onus.md", "sh"): (1, "tests/docs/test_docs_shell.py"),
    ("docs/plant.md", "csv"): (2, "tests/plant/test_plant_files.py"),
    ("docs/plant.md", "json"): (1, "tests/plant/test_plant_files.py"),
    ("docs/plant.md", "xml"): (1, "tests/plant/test_plant_files.py"),
    ("docs/plant.md", "sh"): (1, "tests/docs/test_docs_shell.py"),
    ("docs/reports.md", "sh"): (1, "tests/docs/test_docs_shell.py"),
    ("docs/sign-on.md", "sh"): (2, "tests/docs/test_docs_shell.py"),
    ("docs/smartolt-api.md", "json"): (4, "tests/neighbours/test_smartolt_page.py"),
    ("docs/smartolt-api.md", "sh"): (4, "tests/neighbours/test_smartolt_page.py"),
    ("docs/status-page.md", "nginx"): (1, "tests/docs/test_docs_proxy.py"),
    ("docs/vendors.md", "sh"): (3, "tests/docs/test_docs_shell.py"),
    ("docs/webhooks.md", "http"): (1, "tests/neighbours/test_webhook_receiver.py"),
    ("docs/webhooks.md", "json"): (1, "tests/neighbours/test_webhook_receiver.py"),
    ("docs/webhooks.md", "python"): (1, "tests/neighbours/test_webhook_receiver.py"),
    ("docs/webhooks.md", "sh"): (1, "tests/docs/test_docs_shell.py"),
}
# Why no test runs these; test_docs_commands parses every line of them that begins with `facho` or `make`.
NOT_RUN = {
    ("README.md", "sh"): (3, "demo, tests and product, which tests of the product and the browser start themselves"),
    ("README.es.md", "sh"): (3, "as README.md"),
    ("README.pt-BR.md", "sh"): (3, "as README.md"),
    ("CONTRIBUTING.md", "sh"): (3, "they build what the tests run in"),
    ("CONTRIBUTING.md", "python"): (1, "the shape of a test, as it stands in tests/polling/domain"),
    ("CONTRIBUTING.md", "text"): (1, "the message of a commit"),
    ("docs/architecture.md", "text"): (1, "a drawing"),
    ("docs/vendors.md", "sh"): (1, "tools of the checkout, which write into it"),
}


def run_by_rule(language: str, text: str) -> bool:
    """Tell whether test_docs_settings, test_docs_api or test_docs_programs takes such a block from every page."""
    reads = language == "http" and all(line.startswith("GET ") for line in text.splitlines())
    return bool(SETTINGS.fullmatch(text)) or reads or (language == "python" and "FACHO_URL" in text)


def test_every_block_is_run_or_named() -> None:
    found = Counter(
        (page_id(page), language)
        for page in PAGES
        for language, text in all_blocks(page)
        if (page_id(page), language) not in ON_MACHINES and not run_by_rule(language, text)
    )
    named = Counter[tuple[str, str]]()
    for each in (RUN, NOT_RUN):
        named.update({block: number for block, (number, _where) in each.items()})

    assert found == named


def test_the_test_of_a_block_names_its_page() -> None:
    named = {(page, test) for (page, _language), (_number, test) in RUN.items()}

    assert [(page, test) for page, test in sorted(named) if page not in (ROOT / test).read_text()] == []


def test_every_fence_has_a_language_and_an_end() -> None:
    broken = [
        page_id(page)
        for page in PAGES
        if len(re.findall(r"^\s*```", page.read_text(), re.M)) != 2 * len(all_blocks(page))
        or any(not language for language, _text in all_blocks(page))
    ]

    assert broken == []
