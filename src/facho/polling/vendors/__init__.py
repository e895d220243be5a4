"""Says, as data, what each brand exposes and how to read it."""
