from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0003_scheduling'),
        ('snmp_jobs', '0002_safe_interval'),
    ]

    operations = [
        migrations.AddField(
            model_name='snmpjob',
            name='hours_from',
            field=models.TimeField(blank=True, help_text='Local time; empty: always.', null=True, verbose_name='may run from'),
        ),
        migrations.AddField(
            model_name='snmpjob',
            name='hours_to',
            field=models.TimeField(blank=True, null=True, verbose_name='may run until'),
        ),
        migrations.AddConstraint(
            model_name='snmpjob',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('hours_from__isnull', True), ('hours_to__isnull', True)), models.Q(('hours_from__isnull', False), ('hours_to__isnull', False)), _connector='OR'), name='job_hours_come_in_pairs'),
        ),
    ]
