"""One event on its way into the coordinator's log, and text made fit for one line of it."""

from dataclasses import dataclass

# A line stays a line on a screen: the longest names and reasons of ours are shorter.
MAX_VALUE = 200


@dataclass(slots=True)
class Entry:
    """The message of a log record: what the table keeps, and as text what the file does."""

    event_type: str
    sentence: str
    details: dict[str, str | int]
    olt_id: int | None
    # The table finds it, as it is the one that asks the database.
    olt_name: str = ""

    def __str__(self) -> str:
        if self.olt_id is None:
            return self.sentence
        return f"{self.sentence} ({one_line(self.olt_name) or f'OLT {self.olt_id}'})"


def one_line(value: object) -> str:
    """Write a value on one line of bounded length, without anything that a terminal or a line reader would obey."""
    text = str(value)
    if len(text) > MAX_VALUE:
        text = f"{text[: MAX_VALUE - 1]}…"
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
