"""Shows what came of a trial and a review to the person who writes the definition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.polling.domain.onu_table import raw_text
from facho.polling.snmp.ber import Oid, Tag
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import write_place
from facho.polling.vendors.review import Gap, Review
from facho.polling.vendors.suspicion import Doubt, SentExample, Suspicion
from facho.snmp_get.reading import tag_name
from facho.snmp_get.trial import ColumnTrial, Trial

GAPS: Mapping[Gap, Promise] = {
    Gap.RECOGNITION: gettext_lazy("no device is recognised as this family; it has to be chosen by hand"),
    Gap.IDENTITY: gettext_lazy("ONUs cannot be listed"),
    Gap.DISCOVERY: gettext_lazy("ONUs are never looked for"),
    Gap.RUN_STATE: gettext_lazy("ONUs are neither online nor offline, and their light is not read"),
    Gap.LAST_DOWN_CAUSE: gettext_lazy("the cause of an outage stays unknown"),
    Gap.DISTANCE: gettext_lazy("the distance of an ONU stays unknown"),
    Gap.DESCRIPTION: gettext_lazy("ONUs are shown without their description"),
    Gap.RX_POWER: gettext_lazy("there is no power at the ONU"),
    Gap.OLT_RX_POWER: gettext_lazy("there is no power at the OLT"),
    Gap.MODEL: gettext_lazy("the model of an ONU stays unknown"),
    Gap.SW_VERSION: gettext_lazy("the firmware of an ONU stays unknown"),
    Gap.ADMIN_STATE: gettext_lazy("an ONU that was switched off looks like one that failed"),
    Gap.WAITING: gettext_lazy("ONUs that wait for authorisation are not listed"),
}

SUSPICIONS: Mapping[Suspicion, Promise] = {
    Suspicion.NO_ROWS: gettext_lazy("no rows: wrong OID, closed view, or nothing to report"),
    Suspicion.NO_PLACE: gettext_lazy("rows without a place: the index does not fit"),
    Suspicion.WRONG_TYPE: gettext_lazy("another type than the column's"),
    Suspicion.UNKNOWN_ENUM: gettext_lazy("values without a word"),
    Suspicion.OUT_OF_RANGE: gettext_lazy("out of range"),
    Suspicion.MALFORMED: gettext_lazy("cannot be decoded"),
    Suspicion.ONLY_SENTINELS: gettext_lazy("only sentinels"),
    Suspicion.CONSTANT: gettext_lazy("the same value in every row"),
}


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One column as commands and pages show it."""

    column: str
    oid: str
    rows: str
    place: str
    type: str
    raw: str
    value: int | float | str | None
    unit: str
    suspicious: str


def describe_trial(trial: Trial) -> list[TrialLine]:
    """Write a line for each column that was read, in the order of the definition."""
    return [_line(column) for column in trial.columns]


def describe_gaps(review: Review) -> list[str]:
    """Write a line for each thing that the definition leaves out."""
    lines = [_("no %(what)s: %(effect)s") % {"what": gap.value, "effect": GAPS[gap]} for gap in review.gaps]
    if review.unread:
        lines.append(_("no job reads %s") % ", ".join(review.unread))
    return lines


def describe_recognition(definition: Definition, sys_object_id: str, sys_descr: str, trial: Trial) -> str:
    """Write whether a device that says this of itself, and had these rows, belongs to the family."""
    verdict = definition.recognise(sys_object_id, sys_descr)
    words = {"key": definition.key, "oid": sys_object_id}
    if not sys_object_id:
        return _("The OLT has not reported its sysObjectID yet, so its recognition cannot be checked.")
    if isinstance(verdict, Definition):
        return _("With sysObjectID %(oid)s the OLT is recognised as %(key)s.") % words
    if definition.may_be(sys_object_id) and _has_rows_below(definition.recognition.tables, trial):
        return _("With sysObjectID %(oid)s and the tables that have rows the OLT is recognised as %(key)s.") % words
    if verdict is None:
        return _("With sysObjectID %(oid)s the OLT is not recognised as %(key)s: check `recognition`.") % words
    words["sentence"] = _(verdict.sentence)
    return _("With sysObjectID %(oid)s the OLT is refused by %(key)s: %(sentence)s") % words


def _has_rows_below(tables: Sequence[Oid], trial: Trial) -> bool:
    """Tell whether a column below one of the tables, or above it, had rows."""
    read = [tried.verdict.column.oid for tried in trial.columns if tried.verdict.rows]
    return any(oid[: len(table)] == table[: len(oid)] for oid in read for table in tables)


def _doubt(doubt: Doubt) -> str:
    """Write a suspicion with its rows and the values that caused it."""
    text = str(SUSPICIONS[doubt.suspicion])
    if doubt.suspicion is Suspicion.NO_ROWS:
        return text
    values = ", ".join(raw_text(Tag.NULL, raw) for raw in doubt.examples)
    return f"{text} ({doubt.rows}x: {values})" if values else f"{text} ({doubt.rows}x)"


def _line(tried: ColumnTrial) -> TrialLine:
    verdict = tried.verdict
    column, example = verdict.column, verdict.example
    doubts = [_doubt(doubt) for doubt in verdict.doubts]
    if tried.failure is not None:
        # Nothing is known of rows that could not be asked for.
        doubts = [tried.failure.message, *(doubts if verdict.rows else ())]
    return TrialLine(
        column=column.key,
        oid=format_oid(column.oid),
        rows=f"{verdict.rows}+" if tried.has_more else str(verdict.rows),
        place=_place(tried, example) if example else "",
        type=tag_name(example.tag) if example else "",
        raw=raw_text(example.tag, example.raw) if example else "",
        value=_value(example) if example else None,
        unit=column.unit.value if column.unit else "",
        suspicious="; ".join(doubts),
    )


def _place(tried: ColumnTrial, example: SentExample) -> str:
    """Write the place of a row, or its index as it came."""
    if example.place is None:
        return f".{format_oid(example.suffix)}"
    return write_place(tried.verdict.column.index, example.place)


def _value(example: SentExample) -> int | float | str | None:
    value = example.value
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, str) else value
