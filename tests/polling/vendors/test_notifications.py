"""What notifications mean, from packets of nearly every family, and the section of a definition that says so."""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.hints import HintPlace, Meaning, Said
from facho.polling.snmp.ber import Oid, Tag, Value, VarBind
from facho.polling.snmp.oid import GENERIC_TRAPS, IF_ENTRY, parse_oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import definition, load_definitions, read_definition
from facho.polling.vendors.notifications import STANDARD, NotificationRule, compose, explain, hide_secrets
from facho.polling.vendors.schema import DefinitionError
from facho.polling.vendors.vocabulary import Confidence

PACKETS = json.loads((Path(__file__).parent / "data/notifications.json").read_text("utf-8"))
BY_ID = {packet["id"]: packet for packet in PACKETS}
HUAWEI = (files("facho.polling.vendors") / "definitions" / "huawei_smartax.yaml").read_text("utf-8")
FAMILIES = [each for each in load_definitions().values() if each.notifications.rules]
LINK_DOWN, LINK_UP = (*GENERIC_TRAPS, 3), (*GENERIC_TRAPS, 4)
VSOL = parse_oid("1.3.6.1.4.1.37950.1.1.5.10.13")
NSCRTV = parse_oid("1.3.6.1.4.1.17409.2.2.12.1")


def to_value(tag: int, written: Any) -> Value:
    if tag == Tag.OBJECT_IDENTIFIER:
        return parse_oid(written)
    return bytes.fromhex(written) if isinstance(written, str) else written


def varbinds_of(packet: dict[str, Any]) -> list[VarBind]:
    return [(parse_oid(oid), tag, to_value(tag, value)) for oid, tag, value in packet["varbinds"]]


def explain_packet(name: str) -> Said:
    packet = BY_ID[name]
    family = definition(packet["family"])
    return explain(family, parse_oid(packet["oid"]), varbinds_of(packet), packet["tail"].encode())


def numbers(oid: Oid, **values: Value) -> list[VarBind]:
    """Varbinds at `oid`.N from arguments such as `n5=3`."""
    tags = {int: Tag.INTEGER, bytes: Tag.OCTET_STRING, tuple: Tag.OBJECT_IDENTIFIER}
    return [((*oid, int(name[1:]), 0), int(tags[type(value)]), value) for name, value in values.items()]


@pytest.mark.parametrize("packet", PACKETS, ids=list(BY_ID))
def test_every_packet_says_what_it_means_and_where(packet: dict[str, Any]) -> None:
    message = explain_packet(packet["id"])

    assert message.meaning is Meaning(packet["meaning"])
    assert message.place == HintPlace(*packet["place"])
    assert (message.is_end, message.serial) == (packet["is_end"], packet["serial"])


def test_an_unknown_notification_is_named_by_its_oid() -> None:
    assert explain_packet("unknown") == Said("1.3.6.1.4.1.5875.99999.0.1", Meaning.OTHER)


def test_the_standard_ones_work_without_a_definition() -> None:
    link: list[VarBind] = [((*IF_ENTRY, 1, 5), int(Tag.INTEGER), 5)]

    assert explain(None, (*GENERIC_TRAPS, 1), []) == Said("coldStart", Meaning.DEVICE_RESTART)
    assert explain(None, (*GENERIC_TRAPS, 2), []) == Said("warmStart", Meaning.DEVICE_RESTART)
    assert explain(None, LINK_DOWN, link) == Said("linkDown", Meaning.OTHER)
    assert explain(None, LINK_UP, link) == Said("linkUp", Meaning.OTHER, is_end=True)
    assert explain(None, (*GENERIC_TRAPS, 5), []) == Said("authenticationFailure", Meaning.OTHER)


def test_a_link_that_is_not_a_pon_port_says_no_place() -> None:
    link: list[VarBind] = [((*IF_ENTRY, 1, 5), int(Tag.INTEGER), 5)]

    assert explain(definition("huawei_smartax"), LINK_DOWN, link) == Said("linkDown", Meaning.OTHER)
    # Here a PON port is a bare number, which an ifIndex is not.
    assert explain(definition("vsol_gpon_v1600g"), LINK_DOWN, link) == Said("linkDown", Meaning.OTHER)


def test_a_link_is_found_by_the_instance_of_its_columns_too() -> None:
    status: list[VarBind] = [((*IF_ENTRY, 8, 4194313728), int(Tag.INTEGER), 1)]

    message = explain(definition("huawei_smartax"), LINK_UP, status)

    assert message == Said("linkUp", Meaning.PON_UP, HintPlace(0, 1, 6), is_end=True)


def test_the_link_of_an_onu_is_about_the_onu() -> None:
    named: list[VarBind] = [((*IF_ENTRY, 2, 45), int(Tag.OCTET_STRING), b"GPON0/2:12")]

    message = explain(definition("bdcom_gpon"), LINK_DOWN, named)

    assert (message.meaning, message.place) == (Meaning.ONU_DOWN, HintPlace(None, 0, 2, 12))


def test_both_forms_of_an_oid_without_a_zero_are_the_same() -> None:
    gasp = varbinds_of(BY_ID["zte_old_dgi_v1"])
    family, oid = definition("zte_c300_c320"), parse_oid("1.3.6.1.4.1.3902.1012.3.45.123")

    assert explain(family, oid, gasp) == explain(family, (*oid[:-1], 0, 123), gasp)


def test_the_tail_of_a_community_ends_what_began() -> None:
    packet = BY_ID["zte_old_losi"]
    family, oid = definition("zte_c300_c320"), parse_oid(packet["oid"])

    for tail in (b"eventId=1@eventLevel=cleared@20260211174422", b"@level=cleared"):
        message = explain(family, oid, varbinds_of(packet), tail)
        assert (message.meaning, message.is_end) == (Meaning.ONU_UP, True)
    assert not explain(family, oid, varbinds_of(packet), b"eventLevel=notification@cleared").is_end


def test_no_number_of_an_onu_leaves_the_port() -> None:
    packet = varbinds_of(BY_ID["hw_dying_gasp"])
    oid = parse_oid(BY_ID["hw_dying_gasp"]["oid"])
    without = [(at, tag, 255 if value == 54 else value) for at, tag, value in packet]

    assert explain(definition("huawei_smartax"), oid, without).place == HintPlace(0, 1, 6)


def test_the_class_says_whether_it_begins_or_ends() -> None:
    kind = (*VSOL, 5, 24, 0)  # with the trailing zero that some units send

    def says(number: int) -> tuple[Meaning, bool]:
        message = explain(
            definition("vsol_gpon_v1600g"), (*VSOL, 6, 1), numbers((*VSOL, 2), n2=b"0/1", n5=kind, n6=number)
        )
        assert message.place == HintPlace(port=1)
        assert message.name == "onuLinkLost"
        return message.meaning, message.is_end

    assert says(1) == (Meaning.ONU_LOS, False)
    assert says(0) == (Meaning.ONU_UP, True)


def test_a_kind_that_no_list_has_is_other() -> None:
    login = numbers((*VSOL, 2), n2=b"1", n3=b"8", n5=(*VSOL, 5, 83), n6=2)

    message = explain(definition("vsol_gpon_v1600g"), (*VSOL, 6, 1), login)

    assert (message.name, message.meaning) == ("dataAlarmTrap", Meaning.OTHER)


@pytest.mark.parametrize(("severity", "ended", "is_end"), [(2, 0, False), (6, 0, True), (2, 41, True)])
def test_an_alarm_ends_by_its_severity_or_by_what_it_refers_to(severity: int, ended: int, *, is_end: bool) -> None:
    alarm = numbers((*NSCRTV, 2), n4=113002, n1=bytes((1, 0, 3, 5, 0, 0, 0, 0)), n5=severity, n2=ended)

    message = explain(definition("cdata_gpon"), (*NSCRTV, 1, 1), alarm)

    assert (message.is_end, message.meaning) == (is_end, Meaning.ONU_UP if is_end else Meaning.ONU_DOWN)


def test_an_alarm_of_a_port_names_no_onu() -> None:
    alarm = numbers((*NSCRTV, 2), n4=112325, n1=bytes((1, 0, 3, 0, 0, 0, 0, 0)), n5=2, n2=0)

    assert explain(definition("cdata_gpon"), (*NSCRTV, 1, 1), alarm).place == HintPlace(1, 0, 3)


def test_a_dying_gasp_counts_before_the_status_that_comes_with_it() -> None:
    bdcom = parse_oid("1.3.6.1.4.1.3320.101")
    status: list[VarBind] = [
        ((*IF_ENTRY, 2, 9), int(Tag.OCTET_STRING), b"EPON0/1:3"),
        ((*bdcom, 10, 1, 1, 26, 9), int(Tag.INTEGER), 4),
        ((*bdcom, 18, 1, 0), int(Tag.INTEGER), 2),
    ]

    assert explain(definition("bdcom_epon"), (*bdcom, 18, 4, 1), status).meaning is Meaning.ONU_DYING_GASP
    assert explain(definition("bdcom_epon"), (*bdcom, 18, 4, 1), status[:2]).meaning is Meaning.ONU_LOS


def test_an_unknown_number_under_a_known_oid_still_names_its_place() -> None:
    dmos = parse_oid("1.3.6.1.4.1.3709.3.6.3")

    message = explain(definition("datacom_dmos"), (*dmos, 3, 9, 4), numbers((*dmos, 1), n4=b"gpon-1/1/3-onu-5", n7=2))

    assert message == Said("1.3.6.1.4.1.3709.3.6.3.3.9.4", Meaning.OTHER, HintPlace(1, 1, 3, 5))


def test_passwords_are_neither_kept_nor_shown() -> None:
    packet = BY_ID["hw_discovered"]
    varbinds = varbinds_of(packet)
    family = definition(packet["family"])
    community: VarBind = (parse_oid("1.3.6.1.6.3.18.1.4.0"), int(Tag.OCTET_STRING), b"public")

    shown = hide_secrets(family, [*varbinds, community])

    assert b"0000000000" in [value for _, _, value in varbinds]
    assert b"0000000000" not in [value for _, _, value in shown]
    assert len(shown) == len(varbinds) - 2
    assert "0000000000" not in str(explain_packet("hw_discovered"))


def test_secrets_are_not_among_what_is_read() -> None:
    for family in FAMILIES:
        rules = family.notifications
        assert not set(rules.secrets) & {*rules.serials, *rules.macs}


def test_explaining_costs_little() -> None:
    packet = BY_ID["hw_private_header"]
    family, oid, varbinds = definition(packet["family"]), parse_oid(packet["oid"]), varbinds_of(packet)
    flood = [((*IF_ENTRY, 1, number), int(Tag.INTEGER), number) for number in range(5_000)]

    began = perf_counter()
    for _ in range(1_000):
        explain(family, oid, varbinds)
    for _ in range(20):
        explain(family, oid, flood)

    # 0.015 s where nothing else runs.
    assert perf_counter() - began < 1


OIDS = sorted({oid for family in FAMILIES for oid in family.notifications.by_oid} | set(STANDARD))
PREFIXES = sorted(
    {parse_oid(oid) for packet in PACKETS for oid, _, _ in packet["varbinds"]}
    | {(*IF_ENTRY, 1), (*IF_ENTRY, 2), (*IF_ENTRY, 8)}
    | {
        oid
        for family in FAMILIES
        for rule in family.notifications.rules.values()
        for by in rule.by
        for oid in by.objects
    }
)
ANY_OID = st.lists(st.integers(0, 2**32 - 1), min_size=0, max_size=12).map(tuple)
ANY_VALUE = st.one_of(
    st.none(),
    st.integers(-(2**64), 2**64),
    st.binary(max_size=40),
    ANY_OID,
    st.sampled_from([b"1", b"0/1", b"GPON0/2:12"]),
)
ANY_VARBIND = st.tuples(
    st.one_of(ANY_OID, st.tuples(st.sampled_from(PREFIXES), ANY_OID).map(lambda pair: pair[0] + pair[1])),
    st.integers(0, 255),
    ANY_VALUE,
)


@given(
    st.sampled_from([None, *FAMILIES]),
    st.one_of(st.sampled_from(OIDS), ANY_OID),
    st.lists(ANY_VARBIND, max_size=12),
    st.binary(max_size=40),
)
def test_nothing_that_is_sent_raises(
    family: Definition | None, oid: Oid, varbinds: Sequence[VarBind], tail: bytes
) -> None:
    message = explain(family, oid, varbinds, tail)

    parts = [message.place.frame, message.place.slot, message.place.port, message.place.onu]
    assert all(part is None or 0 <= part < 2**31 for part in parts)
    assert len(message.serial) <= 255


def write_somewhere(rule: NotificationRule, meaning: Meaning, *, is_end: bool) -> list[VarBind]:
    """Write it about an ONU, or about a port if it can be about one only."""
    try:
        written = rule.write(meaning, Place(1, 1, 1, 1), is_end=is_end)
    except ValueError:
        written = rule.write(meaning, Place(1, 1, 1), is_end=is_end)
    assert written is not None
    return written


RULES = [
    pytest.param(family, oid, rule, id=f"{family.key}-{rule.name}")
    for family in FAMILIES
    for oid, rule in family.notifications.rules.items()
]


@pytest.mark.parametrize(("family", "oid", "rule"), RULES)
def test_every_entry_resolves(family: Definition, oid: Oid, rule: NotificationRule) -> None:
    assert rule.name
    assert explain(family, oid, []).name == rule.name
    for meaning in rule.meanings:
        is_end = rule.is_end if not rule.by else meaning.endswith("_up")
        message = explain(family, oid, write_somewhere(rule, meaning, is_end=is_end))
        assert (message.meaning, message.is_end) == (meaning, is_end)
        assert bool(rule.places) == (message.place != HintPlace())


@pytest.mark.parametrize(
    ("meaning", "is_end"),
    [
        (Meaning.ONU_LOS, False),
        (Meaning.ONU_DYING_GASP, False),
        (Meaning.ONU_DOWN, False),
        (Meaning.ONU_UP, True),
        (Meaning.PON_LOS, False),
        (Meaning.PON_DOWN, False),
        (Meaning.PON_UP, True),
        (Meaning.DEVICE_RESTART, False),
    ],
)
def test_what_is_composed_is_explained_as_the_same(meaning: Meaning, *, is_end: bool) -> None:
    reported = set()
    for family in load_definitions().values():
        place = Place(1, 1, 2, 3 if meaning.startswith("onu") else 0)
        composed = compose(family, meaning, place, is_end=is_end)
        if composed is not None:
            reported.add(family.key)
            message = explain(family, *composed)
            assert (message.meaning, message.is_end) == (meaning, is_end)
            named = {name: getattr(message.place, name) for name in Place._fields}
            assert all(value is None or value == getattr(place, name) for name, value in named.items())

    assert {"huawei_smartax", "zte_c300_c320", "vsol_gpon_v1600g"} <= reported


def test_lines_that_switch_it_on_are_filled_in() -> None:
    lines = definition("huawei_smartax").notifications.enabling(address="192.0.2.1", port=1162, community="s3cret")

    assert lines[0] == "snmp-agent target-host trap-paramsname facho v2c securityname s3cret"
    assert "address 192.0.2.1 udp-port 1162" in lines[1]
    assert definition("bdcom_gpon").notifications.enabling(address="192.0.2.1", port=1162, community="x") == ()


def test_a_family_without_a_section_has_no_confidence_in_it() -> None:
    assert definition("nokia_isam").notifications.confidence is None
    assert definition("cdata_gpon").notifications.confidence is Confidence.LOW


FIRST = "meaning: onu_los, place: ont,"
RUN_STATE = "oid: 1.3.6.1.4.1.2011.6.128.1.1.11.510, values: {onu_up: [1], onu_down: [2]}"
BROKEN = {
    "unknown key": (FIRST, f"{FIRST} colour: red,", "said[0].colour", "unknown key"),
    "unknown meaning": ("meaning: onu_los", "meaning: onu_gone", "said[0].meaning", "is not one of onu_down"),
    "no meaning": (FIRST, "place: ont,", "said[0].meaning", "is missing"),
    "unknown place": (FIRST, "meaning: onu_los, place: here,", "said[0].place", "is not one of the places"),
    "no OID": ("base: 1.3.6.1.4.1.2011.6.128.1.1.12.2.2.0,", "base: hwLos,", "said[0].base", "not a dotted OID"),
    "the same OID twice": ("31.2.2.0, names: {12: ", "31.2.2.0, names: {18: ", "names.18", "appears twice"),
    "a name for a number": ("names: {12: hwGponProf", "names: {los: hwGponProf", "names.los", "must be a whole number"),
    "a number for a name": ("{12: hwGponProfOntLOSAlarmTrap", "{12: 13", "names.12", "must be a name"),
    "unknown part": ("values: {frame:", "values: {shelf:", "places.frame.values.shelf", "is not one of frame, slot"),
    "unknown index": ("index: pon\n      onu:", "index: pen\n      onu:", "ont_by_ifindex.index", "names no index"),
    "unused place": ("  serials: [", "    spare: {values: {slot: 1.3.6}}\n  serials: [", "places.spare", "used by no"),
    "no names": (
        "names: {12: hwGponProfOntLOSAlarmTrap, 258: hwEponProfOntLOSAlarmTrap}",
        "names: {}",
        "said[0].names",
        "must not be empty",
    ),
    "no number for none": ("none: {slot: 255}", "none: {slot: [[255]]}", "none.slot", "must be a whole number"),
    "a place of nothing": ("frame: {values: {frame: 1", "frame: {nothing: {frame: 1", "frame.parts", "is missing"),
    "one value with two meanings": (RUN_STATE, RUN_STATE.replace("[2]", "[1]"), "values.onu_down", "1 appears twice"),
    "values without a list": (RUN_STATE, RUN_STATE.replace("[2]", "2"), "values.onu_down", "must be a list"),
    "unknown word of a line": ("securityname {community}", "securityname {password}", "enable[0]", "{address}"),
    "a line with a stray brace": ("securityname {community}", "securityname {", "enable[0]", "Single '{'"),
    "unknown confidence": (
        "notifications:\n  confidence: high",
        "notifications:\n  confidence: sure",
        "confidence",
        "high",
    ),
}


@pytest.mark.parametrize(("old", "new", "path", "problem"), BROKEN.values(), ids=list(BROKEN))
def test_nonsense_is_refused_with_its_place(old: str, new: str, path: str, problem: str) -> None:
    head, section = HUAWEI.split("\nnotifications:\n")
    section = f"\nnotifications:\n{section}"
    assert old in section

    with pytest.raises(DefinitionError) as caught:
        read_definition(head + section.replace(old, new, 1), "huawei_smartax.yaml")

    assert path in caught.value.path
    assert caught.value.path.startswith("notifications.")
    assert problem in caught.value.problem
