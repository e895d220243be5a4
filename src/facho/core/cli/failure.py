"""How a command says that it failed."""


class CliError(Exception):
    """An expected failure. Each line is a sentence for the operator and never holds a secret."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines
