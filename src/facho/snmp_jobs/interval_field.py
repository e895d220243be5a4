"""A form field for lengths of time: seconds, or what people write for them."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from facho.polling.domain.interval_text import format_interval, parse_interval

# A year: what runs less often needs no schedule.
MAX_SECONDS = 366 * 86_400


class IntervalField(forms.Field):
    """Takes 90s, 5m, 1h, 1d and plain seconds; shows the largest units."""

    default_error_messages = {
        "invalid": _("Write seconds, or a number with s, m, h or d, as in 90s, 5m or 1h."),
        "too_long": _("An interval is at most a year."),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(help_text=_("Seconds, or a number with s, m, h or d: 90s, 5m, 1h."), **options)

    def to_python(self, value: Any) -> int | None:
        """Return seconds."""
        if value in self.empty_values:
            return None
        try:
            seconds = parse_interval(str(value))
        except ValueError as error:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from error
        if seconds > MAX_SECONDS:
            raise forms.ValidationError(self.error_messages["too_long"], code="too_long")
        return seconds

    def prepare_value(self, value: Any) -> Any:
        """Show stored seconds as people write them, and what somebody typed as it is."""
        return format_interval(value) if isinstance(value, int) else value
