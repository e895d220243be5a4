"""Lets executions fail because their OLT hides its ONUs."""

from django.db import migrations, models

FAILURES = [
    '',
    'timeout',
    'refused',
    'auth',
    'tooBig',
    'malformed',
    'loop',
    'tooMuch',
    'missing',
    'noOnus',
    'hiddenOnus',
    'cancelled',
    'internal',
]


class Migration(migrations.Migration):
    dependencies = [('executions', '0009_progress_of_a_run')]
    operations = [
        migrations.RemoveConstraint(model_name='execution', name='execution_failure_is_known'),
        migrations.AddConstraint(
            model_name='execution',
            constraint=models.CheckConstraint(
                condition=models.Q(('failure_kind__in', FAILURES)), name='execution_failure_is_known'
            ),
        ),
    ]
