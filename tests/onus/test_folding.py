"""Search without accents and capitals, on either database: whatever is typed, the same ONUs are found."""

import pytest

from api.rows import make_olt, make_onu
from facho.hosts.models import Olt
from facho.infrastructure.folding import fold
from facho.onus.models import OnuCustomer
from facho.onus.search import FoundOnus, of_place, of_text

pytestmark = pytest.mark.django_db


def finds(written: str, typed: str) -> bool:
    """Tell whether the text of one ONU among others is found."""
    olt = make_olt()
    make_onu(olt, (0, 1, 1, 1), description="Barrio Norte")
    onu = make_onu(olt, (0, 1, 1, 2), description=written)
    return FoundOnus([of_text(typed)])[:10] == [onu]


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("Río Claro", "rio claro"),
        ("Río Claro", "RÍO CLARO"),
        ("RIO CLARO", "río claro"),
        ("La Cañada", "canada"),
        ("la canada", "CAÑADA"),
        ("Los Álamos", "los alamos"),
        ("La Estación", "estacion"),
        ("Ri\u0301o Claro", "Río C"),
        ("Straße 7", "straße"),
        ("Большая", "большая"),
        ("100% Ñandú_x", "100% nandu_"),
        ("ﬁbra ½", "fibra 1\u20442"),
        ("\x1b[31mRío\x1b[0m", "[31mrio"),
        ("C:\\Ñu", "c:\\nu"),
        ("Ñ" * 255, "n" * 100),
    ],
)
def test_accents_and_capitals_part_no_texts(written: str, typed: str) -> None:
    assert finds(written, typed)


@pytest.mark.parametrize("typed", ["río_claro", "río%claro", "ri\uff05claro", "rio clara", "\\%\\"])
def test_what_is_not_written_is_not_found(typed: str) -> None:
    assert not finds("Río Claro", typed)


@pytest.mark.parametrize("field", ["label", "address", "notes", "tags"])
def test_the_words_of_customers_are_found_without_accents(field: str) -> None:
    onu = make_onu(make_olt())
    OnuCustomer.objects.create(onu=onu, **{field: "Güemes y Ríos"})

    assert FoundOnus([of_text("GUEMES Y RIOS")])[:10] == [onu]


def test_a_place_is_found_behind_the_name_of_its_olt_without_accents() -> None:
    onu = make_onu(make_olt("Cañada Norte"), (0, 1, 3, 2))
    make_onu(make_olt("Otra"), (0, 1, 3, 2))

    assert FoundOnus([of_place("canada 0/1/3/2") or of_text("none")])[:10] == [onu]


@pytest.mark.parametrize("typed", ["\u0301\u0301\u0301", "r\u0301i\u0301"])
def test_marks_are_no_letters(typed: str) -> None:
    with pytest.raises(ValueError, match="3"):
        of_text(typed)


def test_the_database_folds_as_python_does() -> None:
    name = "ÁÉÍÓÚÜÑ áéíóúüñ Çç Ãõ Ÿ Ž"
    make_olt(name)

    assert fold(name) == "aeiouun aeiouun cc ao y z"
    assert Olt.objects.filter(name__has=fold(name)).exists()


def test_what_is_looked_for_is_cut_or_refused_before_it_is_folded() -> None:
    marks = "\u0315\u0300" * 10**6

    assert fold(marks + "a") == ""
    assert of_place(":" * 10**6) is None
    with pytest.raises(ValueError, match="255"):
        of_text(marks)
    assert list(Olt.objects.filter(name__has="x" + marks)) == []
