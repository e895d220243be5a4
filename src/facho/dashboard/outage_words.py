"""Says why an outage has its probable cause: what was observed, what that means and where to look."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from facho.dashboard.templatetags.facho_words import length_of_time
from facho.onus.outage_evidence import Neighbours
from facho.onus.port_view import PortCounts
from facho.onus.words import OutageCauses
from facho.polling.domain.outage_evidence import Evidence

_MEANINGS: dict[str, Promise] = {
    OutageCauses.POWER: gettext_lazy(
        "The customers have no electricity: their ONUs said so before they went. Fibre and OLT are not at fault; "
        "ask the electricity company about the area."
    ),
    OutageCauses.FIBRE: gettext_lazy(
        "The light was lost and hardly anybody told of failing power: the fibre is cut or unplugged."
    ),
    OutageCauses.CARD: gettext_lazy(
        "All ports of the card lost their ONUs at once: look at the card, its power and its seat in the OLT."
    ),
    OutageCauses.OLT: gettext_lazy(
        "The OLT does not answer over SNMP. Its customers may still have service, which nobody can see from here: "
        "look at its power, its management network and its list of allowed addresses."
    ),
    OutageCauses.NETWORK: gettext_lazy(
        "OLTs stopped answering together: look at the network between Facho and them before you look at any OLT."
    ),
    OutageCauses.UNKNOWN: gettext_lazy(
        "Many went at once and have no reason in common. Look at where they are and what they share."
    ),
}
_WHOLE_PORT = gettext_lazy("Nobody of the port is left online: look between the OLT and the first splitter.")
_BRANCH = gettext_lazy("Others of the port are online: look at the branch that the lost ones share, behind a splitter.")


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found out about an outage; what its scope does not have is None."""

    evidence: Evidence | None = None
    neighbours: Neighbours | None = None
    port: PortCounts | None = None
    olts: int = 0


def meaning_of(cause: str, findings: Findings) -> str:
    """Say what the cause means and where to look."""
    meaning, port = str(_MEANINGS[cause]), findings.port
    if cause != OutageCauses.FIBRE or not port or not port.is_known:
        return meaning
    return f"{meaning} {_BRANCH if port.online else _WHOLE_PORT}"


def evidence_lines(findings: Findings) -> list[str]:
    """Say what was observed, a line for each kind of evidence."""
    lines: list[str] = []
    if findings.evidence and findings.evidence.total:
        lines += [*_said(findings.evidence), _when(findings.evidence)]
    if findings.neighbours:
        lines.append(_beside(findings.neighbours))
    if findings.port and findings.port.is_known:
        values = {"online": findings.port.online, "total": findings.port.total}
        lines.append(_("%(online)s of %(total)s ONUs of the port are online now.") % values)
    if findings.olts:
        text = ngettext("%(n)s OLT stopped answering.", "%(n)s OLTs stopped answering.", findings.olts)
        lines.append(text % {"n": findings.olts})
    return lines


def _said(evidence: Evidence) -> Iterator[str]:
    texts = (
        (evidence.power, _("%(part)s of %(total)s ONUs told that their power failed (dying gasp).")),
        (evidence.signal, _("%(part)s of %(total)s ONUs lost the light (LOS).")),
        (evidence.other, _("%(part)s of %(total)s ONUs gave another reason.")),
        (evidence.untold, _("%(part)s of %(total)s ONUs gave no reason.")),
    )
    for part, text in texts:
        if part:
            yield text % {"part": part, "total": evidence.total}
    if not evidence.power:
        yield _("None sent a dying gasp.")


def _when(evidence: Evidence) -> str:
    values = {"part": evidence.together, "total": evidence.total, "length": length_of_time(_seconds(evidence))}
    if evidence.together < evidence.total:
        return _("%(part)s of %(total)s went within %(length)s of each other.") % values
    if not _seconds(evidence):
        return _("One poll found all of them down.")
    return _("All went within %(length)s of each other.") % values


def _seconds(evidence: Evidence) -> float:
    return evidence.spread.total_seconds()


def _beside(neighbours: Neighbours) -> str:
    if not neighbours.ports:
        return _("No other port of the card has ONUs.")
    values = {"n": neighbours.ports, "out": neighbours.out}
    if not neighbours.out:
        text = ngettext(
            "The other port of the card is fine.", "The other %(n)s ports of the card are fine.", neighbours.ports
        )
        return text % values
    text = ngettext(
        "The other port of the card was out at the same time.",
        "%(out)s of the other %(n)s ports of the card were out at the same time.",
        neighbours.ports,
    )
    return text % values
