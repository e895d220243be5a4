"""The loader: a definition is exactly right, or an error names file and key path."""

from importlib.resources import files
from time import monotonic

import pytest

from facho.polling.vendors.loader import definition, load_definitions, read_definition
from facho.polling.vendors.schema import DefinitionError, parse

HUAWEI = (files("facho.polling.vendors") / "definitions" / "huawei_smartax.yaml").read_text("utf-8")
SOURCE = "huawei_smartax.yaml"
TABLE = "tables.onu_state.columns"


def load_error(old: str, new: str) -> DefinitionError:
    assert old in HUAWEI
    with pytest.raises(DefinitionError) as caught:
        read_definition(HUAWEI.replace(old, new, 1), SOURCE)
    return caught.value


BROKEN = {
    "unknown key at the top": ("brand: Huawei", "brand: Huawei\ncolour: red", "colour", "unknown key"),
    "missing key": ("brand: Huawei\n", "", "brand", "is missing"),
    "empty text": ("brand: Huawei", "brand: ''", "brand", "must not be empty"),
    "wrong type": ("max_repetitions: 25", "max_repetitions: many", "polling.max_repetitions", "a whole number"),
    "yes is no number": ("max_repetitions: 25", "max_repetitions: yes", "polling.max_repetitions", "a whole number"),
    "repetitions that hang agents": (
        "max_repetitions: 25",
        "max_repetitions: 0",
        "polling.max_repetitions",
        "between 1 and 100",
    ),
    "unknown word": ("cost: config", "cost: cheap", "tables.onu_config.cost", "is not one of config"),
    "unknown key of a column": (
        "onu.loid: {id: 13,",
        "onu.loid: {id: 13, colour: red,",
        "tables.onu_config.columns.onu.loid.colour",
        "unknown key",
    ),
    "unknown decoder": (
        "decoder: gpon_sn8",
        "decoder: guess",
        "tables.onu_config.columns.onu.serial.decoder",
        "'guess' is not one of integer",
    ),
    "decoder of another type": (
        "decoder: gpon_sn8",
        "decoder: signed16",
        "tables.onu_config.columns.onu.serial.decoder",
        "cannot read OctetString",
    ),
    "unknown type": (
        "onu.loid: {id: 13, type: OctetString",
        "onu.loid: {id: 13, type: Text",
        "tables.onu_config.columns.onu.loid.type",
        "is not one of Integer32",
    ),
    "unknown vocabulary": (
        "vocabulary: run_state",
        "vocabulary: mood",
        f"{TABLE}.onu.run_state.vocabulary",
        "is not one of run_state",
    ),
    "words without a vocabulary": (
        "vocabulary: run_state\n        values",
        "values",
        f"{TABLE}.onu.run_state.values",
        "need a vocabulary",
    ),
    "word outside its vocabulary": (
        "values: {1: online,",
        "values: {1: awake,",
        f"{TABLE}.onu.run_state.values.1",
        "is not one of online",
    ),
    "word for a text": (
        "values: {1: online,",
        "values: {one: online,",
        f"{TABLE}.onu.run_state.values.one",
        "must be a whole number",
    ),
    "word that is a sentinel": (
        "values: {1: enabled, 2: disabled}\n        sentinels: [-1]",
        "values: {1: enabled, 2: disabled}\n        sentinels: [1]",
        f"{TABLE}.onu.admin_state.sentinels",
        "not both",
    ),
    "scale of a text": (
        "onu.loid: {id: 13,",
        "onu.loid: {id: 13, scale: 0.1,",
        "tables.onu_config.columns.onu.loid.decoder",
        "gives no number",
    ),
    "scale of nothing": (
        "unit: V, scale: 0.001",
        "unit: V, scale: 0",
        "tables.onu_optics.columns.onu.voltage.scale",
        "above 0",
    ),
    "scale of words": (
        "values: {1: online,",
        "scale: 0.1\n        values: {1: online,",
        f"{TABLE}.onu.run_state.values",
        "plain integers",
    ),
    "range upside down": (
        "unit: m, sentinels: [-1, 0]",
        "unit: m, range: [9, 1]",
        f"{TABLE}.onu.distance.range",
        "a lower and an upper",
    ),
    "sentinel twice": (
        "sentinels: [-1, 0]",
        "sentinels: [-1, -1]",
        f"{TABLE}.onu.distance.sentinels",
        "the same entry twice",
    ),
    "sentinel of a text that is a number": (
        "onu.loid: {id: 13,",
        "onu.loid: {id: 13, sentinels: [0.00],",
        "tables.onu_config.columns.onu.loid.sentinels[0]",
        "must be text in quotes",
    ),
    "no oid": (
        "oid: 1.3.6.1.4.1.2011.6.128.1.1.2.43.1",
        "oid: 1.3.x",
        "tables.onu_config.oid",
        "is not a dotted OID",
    ),
    "same oid twice": (
        "onu.loid: {id: 13,",
        "onu.loid: {id: 9,",
        "tables.*.columns.onu.loid",
        "has the OID of onu.description",
    ),
    "shares another oid": (
        "onu.loid: {id: 13,",
        "onu.loid: {id: 13, shares: onu.serial,",
        "tables.*.columns.onu.loid.shares",
        "has not the same OID",
    ),
    "unknown index": ("index: pon\n", "index: port\n", "tables.pon_state.index", "names no index"),
    "index without a table": (
        "indexes:\n",
        "indexes:\n  spare: {scope: pon, components: [port]}\n",
        "indexes.spare",
        "used by no table",
    ),
    "unknown field of an index": (
        "{field: frame, shift: 19",
        "{field: rack, shift: 19",
        "indexes.onu.components[0][1].field",
        "is not one of frame",
    ),
    "bad bits of a sub-identifier without a list": (
        "{field: onu, bits: 7}",
        "{field: onu, bits: many}",
        "indexes.onu.components[1].bits",
        "a whole number",
    ),
    "overlapping fields": (
        "{field: frame, shift: 19",
        "{field: frame, shift: 18",
        "indexes.onu.components",
        "used twice",
    ),
    "base of two numbers": (
        "  onu:\n    scope: onu\n",
        "  onu:\n    scope: onu\n    base: 1\n",
        "indexes.onu.base",
        "counted by one number only",
    ),
    "bad name": ("onu.loid:", "ONU loid:", "tables.onu_config.columns.ONU loid", "is not a valid name"),
    "bad expression": (
        "description: Huawei Integrated",
        "description: (Huawei Integrated",
        "recognition.description",
        "not a regular expression",
    ),
    "waiting ONUs without serials": (
        "autofind.serial: {id: 2,",
        "autofind.number: {id: 2,",
        "tables",
        "autofind.serial is missing",
    ),
    "unknown cost class": ("    live: {timeout", "    slow: {timeout", "polling.classes.live", "is missing"),
    "unknown column of a job": ("columns: [onu.serial]", "columns: [onu.mood]", "jobs[0].columns", "is no column"),
    "discovery of more than identity": (
        "columns: [onu.serial]",
        "columns: [onu.serial, onu.model]",
        "jobs[0].columns",
        "onu.serial, onu.mac, onu.id and nothing else",
    ),
    "hardware addresses in any spelling": (
        "onu.mac: {id: 10, type: OctetString, decoder: mac",
        "onu.mac: {id: 10, type: OctetString",
        "tables.*.columns.onu.mac.decoder",
        "must be mac",
    ),
    "job without columns": ("columns: [onu.serial]", "columns: []", "jobs[0].columns", "must not be empty"),
    "job twice": ("slug: descripcion", "slug: descubrimiento", "jobs[1].slug", "appears twice"),
    "chain to nowhere": (
        "columns: [onu.description]\n    chain_of: descubrimiento",
        "columns: [onu.description]\n    chain_of: nobody",
        "jobs[1].chain_of",
        "no earlier master",
    ),
    "chain of another pace": (
        "query_type: walk\n    interval_seconds: 300",
        "query_type: walk\n    interval_seconds: 900",
        "jobs[2].interval_seconds",
        "differs from the master's",
    ),
    "interval that hurts": (
        "interval_seconds: 1800\n    columns",
        "interval_seconds: 300\n    columns",
        "jobs[3].interval_seconds",
        "below the safe minimum",
    ),
    "key twice": ("brand: Huawei", "brand: Huawei\nbrand: Other", "", "'brand' in line 3 appears twice"),
    "merge key": ("brand: Huawei", "brand: Huawei\n<<: {a: 1}", "", "is not a plain key"),
    "list as key": ("brand: Huawei", "brand: Huawei\n? [a]\n: b", "", "is not a plain key"),
    "no yaml": ("brand: Huawei", "brand: [Huawei", "", "expected"),
}


@pytest.mark.parametrize(("old", "new", "path", "problem"), BROKEN.values(), ids=BROKEN.keys())
def test_mistake_is_named_with_file_and_key(old: str, new: str, path: str, problem: str) -> None:
    error = load_error(old, new)

    assert error.source == SOURCE
    assert error.path == path
    assert problem in error.problem
    assert str(error).startswith(f"{SOURCE}: {path or 'the file'}: ")


def test_live_job_cannot_be_a_chain_member() -> None:
    text = HUAWEI.replace("interval_seconds: 300", "interval_seconds: 1800")
    chained = text.replace("onu.voltage, onu.bias]\n", "onu.voltage, onu.bias]\n    chain_of: descubrimiento\n")

    with pytest.raises(DefinitionError, match=r"jobs\[3\].chain_of: a job on live columns is a master"):
        read_definition(chained, SOURCE)


def test_onu_indexes_that_could_be_mixed_up_are_refused() -> None:
    error = load_error("autofind:\n    scope: autofind", "autofind:\n    scope: onu")

    assert error.path == "indexes.autofind"
    assert "could not be told apart" in error.problem


@pytest.mark.parametrize("text", ["", "just text", "[1, 2]"])
def test_file_that_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"odd.yaml: the file: must be a mapping"):
        read_definition(text, "odd.yaml")


def test_definitions_are_loaded_once() -> None:
    assert load_definitions() is load_definitions()


def test_definition_is_found_by_its_key() -> None:
    assert definition("generic").key == "generic"
    with pytest.raises(KeyError):
        definition("nobody")


def doubled(levels: int) -> str:
    lines = ["a0: &a0 [x, x]", *(f"a{at}: &a{at} [*a{at - 1}, *a{at - 1}]" for at in range(1, levels))]
    return "\n".join(lines)


HOSTILE = {
    "deep in brackets": ("brand: " + "[" * 100_000, "deeper than 16 levels"),
    "deep by lines": ("\n".join(f"{'  ' * at}a:" for at in range(300)), "deeper than 16 levels"),
    "deep by references": (
        "\n".join(["a0: &a0 x", *(f"a{at}: &a{at} [*a{at - 1}]" for at in range(1, 40))]),
        "references written out",
    ),
    "a billion laughs": (doubled(40), "references written out"),
    "wide by references": (
        f"a: &a [{', '.join('x' * 1000)}]\nb: [{', '.join(['*a'] * 100)}]",
        "references written out",
    ),
    "endless": ("brand: &a [*a]", "refers to itself"),
    "a date that there is not": ("brand: 2024-99-99", "cannot be read"),
    "a number of many digits": (f"brand: {'9' * 10_000}", "cannot be read"),
}


@pytest.mark.parametrize(("text", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_was_made_to_hurt_is_refused_in_a_sentence(text: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_definition(text, SOURCE)

    assert problem in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_long_list_is_judged_in_a_moment() -> None:
    entries = "".join(f"- n{at}\n" for at in range(20_000))
    began = monotonic()

    with pytest.raises(DefinitionError, match="is missing"):
        read_definition(HUAWEI.split("notes:")[0] + f"notes:\n{entries}", SOURCE)

    # Comparing each with each took minutes.
    assert monotonic() - began < 60


def test_endless_numbers_are_no_scale() -> None:
    section = parse("scale: .inf", SOURCE)

    with pytest.raises(DefinitionError, match="must be a number"):
        section.fraction("scale", 1)
