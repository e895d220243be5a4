"""A full pass over the simulated MA5608T: a third of the time of columns walked one by one, and every row true."""

import pytest
from bench.chassis import ONE_BY_ONE, ONUS, OURS, measure_pass

COLUMNS = 14


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
async def test_a_pass_takes_a_third_of_the_time_of_columns_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # The loop waits for the database: on its clock no time passes meanwhile.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")

    ours = await measure_pass(OURS, seed=1)
    one_by_one = await measure_pass(ONE_BY_ONE, seed=1)

    assert ours.seconds <= 0.35 * one_by_one.seconds
    for done in (ours, one_by_one):
        assert (done.rows, done.rows_wrong) == (ONUS * COLUMNS, 0)
        assert done.max_in_flight == 1
