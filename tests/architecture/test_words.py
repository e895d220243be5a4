"""Plain words: idioms that read as translated or as a proverb are not used in code, pages, catalogue and docs."""

import re
from bisect import bisect
from itertools import accumulate
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.name for path in (ROOT / "src/facho").iterdir() if (path / "__init__.py").exists())
# The changelog and the decisions are records: they keep the words of their day.
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    if path.name not in {"CHANGELOG.md", "README.es.md"}
)
# Each with the usual words. Fix the text, not the list.
BANNED = {
    r"nobody (is|was) (told|asked|shown)": "no one is notified",
    r"(is|are|was|were) told\b(?! apart)": "is notified, reported, shown",
    r"(anybody|somebody|people|everybody) (is|are) told": "notify",
    r"\bto be told\b": "to be reported",
    r"\btold (of|again|already|later|together|input by input)\b": "reported",
    r"\btells? (people|nothing|of)\b": "notifies, says nothing, reports",
    r"(OLTs?|device|agent|brands?|family) (that )?(does not |do not )?tells?\b": "reports",
    r"\b(untold|forsaken|wherefore|hence)\b": "unsent, abandoned, so",
    r"\b[Tt]astes?\b": "preferences",
    r"\bwhoever\b": "the user, the process, if somebody",
    r"\b(of|to|by|as|for|in|and|tells|somebody) whom\b(?! Facho)|\bwhom (we|a|the)\b": "name the person or thing",
    r"\bonly who\b|\bfor who\b|\bto who\b|\blets? in who\b": "users who, if",
    r"\b(Refuse|Let|Show|Tell|Ask|Give|Has|Makes?) who\b": "users who",
    r"\bwho (may|asks|left|leaves|comes|goes|waits|has left|knows|looks|wants|serves)\b": "users that",
    r"\bof nothing but\b": "only",
    r"\bnothing but\b": "only",
    r"\bso long before\b|\bmust last so long\b|\bfor so long\b": "minutes before",
    r"\b(so many|so much) (of|are|in|is)\b": "that many",
    r"\bcan(not)? be meant\b|\bwhat is meant\b": "is (in)valid",
    r"\bwhat (cannot|can) be true\b": "impossible value",
    r"(?<!there )\bis no (OLT|number|text|name|address|serial|gap|change|reading|outage|file)\b": "is not a",
    r"\bbeside (a|an|the|it|its|them|that|this|each|filters|something|what)\b": "next to, with, in the background",
    r"\bwhat (became|becomes) of\b": "result, outcome",
    r"\b(goes|go|went) (on|by|along)\b": "continues, passes, follows",
    r"\bwhere (it|they) hangs?\b|\bhangs\b": "where it is connected",
    r"\b(takes?|took|taking) note\b": "acknowledge",
    r"\btak(e|es|en) (it|that|them) back\b": "withdraw",
    r"\bby itself alone\b|\bby themselves alone\b": "alone",
    r"\bfor good\b": "permanently",
    r"\bfor ever\b": "forever",
    r"\ball the same\b": "anyway",
    r"\bwhatever (it|they|else) (is|are|was|were)\b": "any",
    r"\bas (people|somebody|one) (write|writes|wrote|read|reads|call|calls)\b": "formatted",
    r"\b(people|somebody|one) (writes?|wrote|reads?|calls?) it\b": "formatted",
    r"\bas far as (it|they|that|these|those) (is|are|was|were|makes?|can)\b": "if, where",
    r"\bnobody (knows|can say|can see|saw|looks|waits|has|could|wanted|reads|else|may)\b": "unknown, no one",
    r"\bnobody's\b": "no one's",
    r"\bwas (looked|asked) (at|for) (last|before|first)\b": "checked",
    r"\bis (looked|looked at|looked for)\b": "is checked",
    r"\b(ask|asks|asked) (anew|in vain|as nobody)\b": "ask again, without an answer",
    r"\banew\b": "again",
    r"\bmeanwhile has\b|\bsince then has\b": "meanwhile",
    r"\b(lies|stands|stood) (in|at|on|there|below|beside|for itself)\b": "is",
    r"\bas it (stands|is to be|shall be)\b": "as written",
    r"\bis to be\b|\bare to be\b": "will be, must be",
    r"\bshall\b(?! not be held)": "must, will",
    r"\b(likes?|liked) to read\b": "preferences",
    r"\bputs? off\b": "delays",
    r"\bto the end of their days\b|\bin passing\b|\bat hand\b|\bunder way\b": "in progress",
    r"\b(believes?|believed)\b": "accept, trust",
    r"\b(letters|words) that can be sent\b": "characters",
    r"\bgive(s|n)? (it )?(up )?for lost\b": "lost",
    r"\bmakes? (it )?up\b(?! for)": "invents",
    r"\bfall(s|en)? silent\b|\bfell silent\b": "stops answering",
    r"\bof (ours|one's own)\b": "our, custom",
    r"\bcome(s)? to nothing\b|\bcomes? of it\b": "fails",
    r"\b(kept|keep|keeps) (the )?(house|watch)\b": "housekeeping",
    r"\bnews\b": "events",
    r"\banswers? under (the|this|that) (same )?number\b": "use the same enterprise number",
    r"\bholds it since\b|\bis (due|suspended|running) since\b": "has held it since, has been due since",
    r"\basked of each\b": "queried from each",
    r"\blet(s)? in again\b|\bin front of what waits\b": "allow to log in, to the front of the queue",
    r"\bput(s)? on (a |the )?box(es)?\b": "assign to a box",
    r"\b(proves?|proved) who sends\b": "prove the sender",
    # Sentences without a subject: lower case is a relative clause.
    r"(?-i:\bWho (is(?! notified)|was|only|had|reads|falls|came|served|judged|begins)\b)": "name it: an ONU that",
    r"(?-i:\bSo long (an?|the|it)\b)|\bso manieth\b|\bif that may be\b": "this long, every n-th, if allowed",
    r"\bnone of (its|their|our) business\b|\bunsaid\b|\blastingly\b": "ignored, not sent, permanently",
    r"\b(an?|the|this|each|every|person's|latest|oldest|next|leaves?) wish(es)?\b": "request",
    r"\b(an?|the|long|only|keeps|coordinator's) chores?\b": "background task",
}
BANNED_IN_SPANISH = {
    r"\bEl regla\b|\bla canal\b|\bLa nodo\b|\bel OLT\b|\bel ONU\b": "la regla, el canal, el nodo, la OLT, la ONU",
    r"\bse le cree\b|\baliento\b|\bse queda quieto\b": "se acepta, dying gasp, se detiene",
    r"\bDé (un|este)\b|\bdélo\b|\bEntregue el archivo\b": "suba el archivo",
    r"\bcortafuegos\b|\bpor omisión\b": "firewall, por defecto",
    r"\b(le|les) pregunta(n)?\b|\bse pregunta a\b|\bresponden con el mismo número\b": "consulta, usan el mismo número",
    r"\bdesde aquí nadie\b|\ba quién se le dijo\b|\bha cambiado cosas\b": "plain Spanish",
}
PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in BANNED), re.IGNORECASE)
SPANISH = re.compile("|".join(f"(?:{pattern})" for pattern in BANNED_IN_SPANISH), re.IGNORECASE)
CATALOGUE = ROOT / "src/facho/core/locale/es/LC_MESSAGES/django.po"


def files_of(room: str) -> list[Path]:
    folder = ROOT / "src/facho" / room
    found = [path for suffix in ("py", "html", "txt", "yaml") for path in sorted(folder.rglob(f"*.{suffix}"))]
    return [path for path in found if "migrations" not in path.parts]


def hits(path: Path, pattern: re.Pattern[str] = PATTERN) -> list[str]:
    """Find idioms, also where a line was broken within one."""
    lines = [line.strip().removeprefix("# ") for line in path.read_text().splitlines()]
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    name = path.relative_to(ROOT).as_posix()
    return [f"{name}:{bisect(starts, found.start())}: {found[0]}" for found in pattern.finditer(" ".join(lines))]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_plain_words(room: str) -> None:
    assert [hit for path in files_of(room) for hit in hits(path)] == []


@pytest.mark.parametrize("folder", ["bench", "tools"])
def test_measurements_and_tools_use_plain_words(folder: str) -> None:
    assert [hit for path in sorted((ROOT / folder).glob("*.py")) for hit in hits(path)] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_uses_plain_words(name: str) -> None:
    assert hits(ROOT / name) == []


@pytest.mark.parametrize("path", [CATALOGUE, ROOT / "README.es.md"], ids=lambda path: path.name)
def test_spanish_is_plain_too(path: Path) -> None:
    assert hits(path, SPANISH) == []
