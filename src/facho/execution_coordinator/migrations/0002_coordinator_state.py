
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('execution_coordinator', '0001_initial'),
        ('hosts', '0003_scheduling'),
    ]

    operations = [
        migrations.CreateModel(
            name='OltState',
            fields=[
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='hosts.olt', verbose_name='OLT')),
                ('state', models.JSONField(default=dict)),
                ('state_hash', models.CharField(max_length=64)),
                ('saved_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'coordinator_olt_states',
            },
        ),
        migrations.AddField(
            model_name='quotatracker',
            name='will_miss_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='will miss since'),
        ),
        migrations.AddIndex(
            model_name='quotatracker',
            index=models.Index(fields=['period_start'], name='quota_period'),
        ),
        migrations.AddConstraint(
            model_name='quotaviolation',
            constraint=models.UniqueConstraint(fields=('olt', 'period_start'), name='one_violation_per_olt_and_hour'),
        ),
    ]
