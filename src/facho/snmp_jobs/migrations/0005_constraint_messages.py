from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0003_scheduling'),
        ('snmp_jobs', '0004_wish_index'),
    ]

    operations = [
        migrations.AlterConstraint(
            model_name='snmpjob',
            name='job_interval_is_positive',
            constraint=models.CheckConstraint(condition=models.Q(('interval_seconds__gte', 1)), name='job_interval_is_positive', violation_error_message='The interval is at least one second.'),
        ),
        migrations.AlterConstraint(
            model_name='snmpjob',
            name='job_priority_up_to_100',
            constraint=models.CheckConstraint(condition=models.Q(('priority__lte', 100)), name='job_priority_up_to_100', violation_error_message='The priority is from 0 to 100.'),
        ),
        migrations.AlterConstraint(
            model_name='snmpjob',
            name='job_tries_at_least_once',
            constraint=models.CheckConstraint(condition=models.Q(('max_attempts__gte', 1)), name='job_tries_at_least_once', violation_error_message='A run has at least one attempt.'),
        ),
        migrations.AlterConstraint(
            model_name='snmpjob',
            name='job_hours_come_in_pairs',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('hours_from__isnull', True), ('hours_to__isnull', True)), models.Q(('hours_from__isnull', False), ('hours_to__isnull', False)), _connector='OR'), name='job_hours_come_in_pairs', violation_error_message='Give both hours, or none.'),
        ),
        migrations.AlterConstraint(
            model_name='snmpjoboid',
            name='job_oid_is_a_column_or_an_oid',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('column_key', ''), models.Q(('oid', ''), _negated=True)), models.Q(models.Q(('column_key', ''), _negated=True), ('oid', '')), _connector='OR'), name='job_oid_is_a_column_or_an_oid', violation_error_message='Give a column of the definition or an OID, and only one of them.'),
        ),
        migrations.AlterConstraint(
            model_name='workflownode',
            name='node_interval_is_positive',
            constraint=models.CheckConstraint(condition=models.Q(('interval_seconds__gte', 1)), name='node_interval_is_positive', violation_error_message='The interval is at least one second.'),
        ),
        migrations.AlterConstraint(
            model_name='workflownode',
            name='node_priority_up_to_100',
            constraint=models.CheckConstraint(condition=models.Q(('priority__lte', 100)), name='node_priority_up_to_100', violation_error_message='The priority is from 0 to 100.'),
        ),
    ]
