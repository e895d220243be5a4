"""Recognition by sysObjectID and sysDescr: families, look-alikes, strangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.vendors.definition import Definition, Refusal, oid_of
from facho.polling.vendors.loader import definition, recognise, recognise_by_tables, tables_to_ask

ENTERPRISES = "1.3.6.1.4.1"


@pytest.mark.parametrize(
    ("object_id", "descr", "key", "model"),
    [
        ("2011.2.248", "", "huawei_smartax", "MA5608T"),
        ("2011.2.115.0", "", "huawei_smartax", "MA5680T"),
        ("2011.2.999", "Huawei Integrated Access Software", "huawei_smartax", None),
        ("3902.1082.1001.320.2.1", "C320 Version V2.1.0 Software", "zte_c300_c320", "C320 V2.1"),
        ("3902.1015.300.3.1", "", "zte_c300_c320", "C300 V1.2"),
        ("3902.1082.1001.600.1.1", "C600 Version V1.2.1", "zte_c600_titan", "C600"),
        ("5875.800.1001.11", "AN5516-06", "fiberhome_an5516", "AN5516-06"),
        ("5875.800.1001.11", "", "fiberhome_an5516", "AN5516-01"),
        ("5875.800.1001.99", "AN6001-G16", "fiberhome_an5516", "AN6001-G16"),
        ("37950.1.1.5.10.14.1", "V1600G1", "vsol_gpon_v1600g", None),
        ("37950.1.1.5.10.14.1", "V1600D4", "vsol_epon_v1600d", None),
        ("17409", "FD1608S-B1", "cdata_gpon", "FD1608S"),
        ("34592", "", "cdata_native", None),
        ("637.61.1", "R6.5.02r NFXS-E FANT-H NOKIA ISAM", "nokia_isam", None),
        ("3320.1.390.0", "BDCOM(tm) GP3600-16B Software, Version 10.3.0E", "bdcom_gpon", "GP3600-16B"),
        ("3320.1.999.0", "BDCOM(tm) GP3600-08B Software, Version 117819", "bdcom_gpon", "GP3600-08B"),
        ("3320.1.294.0", "", "bdcom_epon", "P3310C"),
        ("3320.1.999", "BDCOM(tm) P3616-2TE Software, Version 10.1.0E", "bdcom_epon", "P3616-2TE"),
        ("3709.1.2.137", "DM4610 OLT 8GPON+8GX+4GT+2XS DmOS version 5.0.0", "datacom_dmos", "DM4610"),
        ("41112.1.5", "EdgeOS v4.4.2.4598.220304.1412", "ubiquiti_ufiber", None),
        ("4413", "UISP Fiber OLT XGS, 1.4.0", "ubiquiti_ufiber", None),
        ("6321.1.2.4.1.4", "Calix, Inc E5-16F AXOS-R2.2.0", "calix_axos", "E5-16F"),
        ("6321.1.2.2.5.3", "Calix E7-2", "calix_exa", "E7-2"),
        ("17409", "FD1208S-B0", "cdata_epon", "FD1208S"),
        ("34592.1.3", "FD1104SN", "cdata_fd11", None),
    ],
)
def test_device_is_recognised_with_its_model(object_id: str, descr: str, key: str, model: str | None) -> None:
    object_id = f"{ENTERPRISES}.{object_id}"

    found = recognise(object_id, descr)

    assert isinstance(found, Definition)
    assert found.key == key
    assert found.model_name(object_id, descr) == model


@pytest.mark.parametrize(
    ("object_id", "descr", "reason"),
    [
        ("2011.2.185", "Huawei Integrated Access Software", "MA5620"),
        ("2011.2.224.6", "Huawei Versatile Routing Platform Software", "not a known SmartAX OLT"),
        ("2011.2.23.96", "S5720-52X Huawei", "not a known SmartAX OLT"),
        ("5875.800.1001.2", "AN5116-06", "AN5116 series"),
        ("37950.1.1.5.10.14.1", "V3600 Switch", "neither a V1600G nor a V1600D"),
        ("17409", "town-olt", "Several brands"),
        ("17409.1.11", "EDFA", "not an OLT"),
        ("637.61.1", "7750 SR", "does not say that it is an ISAM"),
        ("3320.1.100.0", "BDCOM(tm) S2528-C Software, Version 2.2.0C", "switches use the same enterprise number"),
        ("3709.1.2.137", "DM4770 32CX DmOS version 7.2.0", "not an OLT of the DM46 series"),
        ("41112.1.5", "EdgeOS v2.0.9-hotfix.6.5574651", "does not say that it is a UFiber OLT"),
        ("4413.1.1.26.1", "EdgeSwitch 24-Port 250W", "does not say that it is a UFiber OLT"),
        ("50224.3.1.1", "PK700", "shows no ONUs"),
        ("6296.1.1.1", "V2724G", "shows no ONUs"),
    ],
)
def test_look_alike_is_refused_with_a_sentence(object_id: str, descr: str, reason: str) -> None:
    found = recognise(f"{ENTERPRISES}.{object_id}", descr)

    assert isinstance(found, Refusal)
    assert reason in found.sentence
    assert found.sentence.endswith(".")


@pytest.mark.parametrize("object_id", ["1.3.6.1.4.1.9.1.1", "1.3.6.1.4.1.3902.3.100", "1.3.6.1.4.1.8072.3.2.10"])
def test_stranger_is_read_as_a_generic_device(object_id: str) -> None:
    assert recognise(object_id, "something") is definition("generic")


@pytest.mark.parametrize("object_id", ["", "   ", "not an oid", ()])
def test_device_that_says_nothing_is_not_recognised(object_id: str) -> None:
    assert recognise(object_id, "") is None


def test_object_id_may_be_numbers_or_text_with_a_leading_dot() -> None:
    expected = definition("huawei_smartax")

    assert recognise((1, 3, 6, 1, 4, 1, 2011, 2, 248), "") is expected
    assert recognise(".1.3.6.1.4.1.2011.2.248", "") is expected


def test_number_that_only_begins_alike_is_another_device() -> None:
    assert recognise("1.3.6.1.4.1.2011.20.1", "router") is definition("generic")


@given(st.text(max_size=40), st.text(max_size=3000))
def test_nothing_that_a_device_says_breaks_recognition(object_id: str, descr: str) -> None:
    recognise(object_id, descr)
    recognise("1.3.6.1.4.1.5875.800.1001.99", descr)


@pytest.mark.parametrize(
    ("object_id", "descr", "table", "key"),
    [
        ("17409", "town-olt", "17409.2.8.4.1", "cdata_gpon"),
        ("17409", "town-olt", "17409.2.3.4.1", "cdata_epon"),
        ("17409", "FD1616", "17409.2.3.4.1", "cdata_epon"),
        ("34592", "town-olt", "34592.1.3.4.1", "cdata_fd11"),
        ("34592", "town-olt", "34592.1.5.1.1.2.18.1", "cdata_native"),
        ("50224.3.1.1", "PK700", "50224.3.12.2", "hsgq_gpon"),
        ("50224.3.1.1", "PK700", "50224.3.3.2", "hsgq_epon"),
        ("2011.2.123", "Huawei Integrated Access Software", "2011.6.128.1.1.2.53", "huawei_smartax_epon"),
        ("2011.2.123", "Huawei Integrated Access Software", "2011.6.128.1.1.2.43", "huawei_smartax"),
    ],
)
def test_device_is_recognised_by_the_tables_that_have_rows(object_id: str, descr: str, table: str, key: str) -> None:
    full, answering = f"{ENTERPRISES}.{object_id}", [oid_of(f"{ENTERPRISES}.{table}")]

    assert set(answering) <= set(tables_to_ask(full))
    assert recognise_by_tables(recognise(full, descr), full, answering) is definition(key)


def test_device_whose_tables_are_empty_is_what_it_says() -> None:
    full = f"{ENTERPRISES}.2011.2.123"
    verdict = recognise(full, "")

    assert recognise_by_tables(verdict, full, []) is verdict is definition("huawei_smartax")


def test_look_alike_is_not_asked_for_tables() -> None:
    assert not tables_to_ask(f"{ENTERPRISES}.17409.1.11")
    assert not tables_to_ask(f"{ENTERPRISES}.9.1.1")
