#!/usr/bin/env python
"""Django's own command line, for migrations and the shell; operators use `facho`."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.core.settings")
    execute_from_command_line(sys.argv)
