import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ('execution_coordinator', '0001_initial'),
        ('execution_coordinator', '0002_coordinator_state'),
        ('execution_coordinator', '0003_tracker_created_at'),
        ('execution_coordinator', '0004_acknowledgement'),
        ('execution_coordinator', '0005_violation_created'),
        ('execution_coordinator', '0006_packed_at'),
        ('execution_coordinator', '0007_expired_rows'),
        ('execution_coordinator', '0008_words'),
        ('execution_coordinator', '0009_changes_detected'),
    ]

    initial = True

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='OltState',
            fields=[
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='hosts.olt', verbose_name='OLT')),
                ('state', models.JSONField(default=dict)),
                ('state_hash', models.CharField(max_length=64)),
                ('saved_at', models.DateTimeField()),
                ('packed_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'last known state of an OLT',
                'verbose_name_plural': 'last known states of OLTs',
                'db_table': 'coordinator_olt_states',
            },
        ),
        migrations.CreateModel(
            name='CoordinatorLog',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_type', models.CharField(choices=[('TASK_ADDED', 'task added'), ('TASK_REMOVED', 'task removed'), ('TASK_MODIFIED', 'task modified'), ('CHANGES_DETECTED', 'changes detected'), ('PLAN_CREATED', 'plan created'), ('PLAN_ADJUSTED', 'plan adjusted'), ('EXECUTION_STARTED', 'execution started'), ('EXECUTION_COMPLETED', 'execution completed'), ('EXECUTION_FAILED', 'execution failed'), ('EXECUTION_ABORTED', 'execution aborted'), ('QUOTA_WARNING', 'quota warning'), ('QUOTA_VIOLATION', 'quota violation'), ('OLT_ENABLED', 'OLT enabled'), ('OLT_DISABLED', 'OLT disabled'), ('OLT_UNREACHABLE', 'OLT unreachable'), ('OLT_BACK', 'OLT back'), ('EMERGENCY_REPLAN', 'emergency replan')], max_length=30, verbose_name='event')),
                ('level', models.CharField(choices=[('DEBUG', 'DEBUG'), ('INFO', 'INFO'), ('WARNING', 'WARNING'), ('ERROR', 'ERROR'), ('CRITICAL', 'CRITICAL')], default='INFO', max_length=10, verbose_name='level')),
                ('message', models.TextField(verbose_name='message')),
                ('details', models.JSONField(default=dict, verbose_name='details')),
                ('timestamp', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='time')),
                ('olt', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='coordinator_logs', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'coordinator log entry',
                'verbose_name_plural': 'coordinator log',
                'db_table': 'coordinator_logs',
                'ordering': ['-timestamp'],
                'indexes': [models.Index(fields=['olt', 'timestamp'], name='log_olt_timestamp'), models.Index(fields=['event_type', 'timestamp'], name='log_event_timestamp'), models.Index(fields=['level', 'timestamp'], name='log_level_timestamp'), models.Index(fields=['timestamp'], name='log_timestamp')],
            },
        ),
        migrations.CreateModel(
            name='ExecutionPlan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('plan_data', models.JSONField(default=list, verbose_name='plan')),
                ('status', models.CharField(choices=[('ACTIVE', 'active'), ('COMPLETED', 'completed'), ('SUPERSEDED', 'superseded'), ('ABORTED', 'aborted')], default='ACTIVE', max_length=20, verbose_name='status')),
                ('total_tasks', models.IntegerField(default=0, verbose_name='total')),
                ('completed_tasks', models.IntegerField(default=0, verbose_name='completed')),
                ('failed_tasks', models.IntegerField(default=0, verbose_name='failed')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='execution_plans', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'execution plan',
                'verbose_name_plural': 'execution plans',
                'db_table': 'execution_plans',
                'ordering': ['-period_start', 'olt'],
                'indexes': [models.Index(fields=['olt', 'period_start'], name='plan_olt_period'), models.Index(fields=['status'], name='plan_status'), models.Index(fields=['period_end'], name='plan_period_end')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'ACTIVE')), fields=('olt', 'period_start'), name='one_active_plan_per_hour')],
            },
        ),
        migrations.CreateModel(
            name='QuotaTracker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task_type', models.CharField(max_length=50, verbose_name='task type')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('quota_required', models.IntegerField(default=0, verbose_name='required')),
                ('quota_completed', models.IntegerField(default=0, verbose_name='completed')),
                ('quota_failed', models.IntegerField(default=0, verbose_name='failed')),
                ('quota_skipped', models.IntegerField(default=0, verbose_name='skipped')),
                ('quota_pending', models.IntegerField(default=0, verbose_name='pending')),
                ('total_duration_ms', models.BigIntegerField(default=0, verbose_name='total duration (ms)')),
                ('avg_duration_ms', models.IntegerField(default=0, verbose_name='average duration (ms)')),
                ('status', models.CharField(choices=[('IN_PROGRESS', 'in progress'), ('COMPLETED', 'completed'), ('PARTIAL', 'partial'), ('FAILED', 'failed'), ('QUOTA_NOT_MET', 'quota not met'), ('INTERRUPTED', 'interrupted'), ('ADJUSTED', 'adjusted'), ('AT_RISK', 'at risk')], default='IN_PROGRESS', max_length=20, verbose_name='status')),
                ('will_miss_at', models.DateTimeField(blank=True, null=True, verbose_name='will miss since')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quota_trackers', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'quota tracker',
                'verbose_name_plural': 'quota trackers',
                'db_table': 'quota_tracker',
                'ordering': ['-period_start', 'olt', 'task_type'],
                'indexes': [models.Index(fields=['olt', 'period_start'], name='quota_olt_period'), models.Index(fields=['period_start'], name='quota_period'), models.Index(fields=['status'], name='quota_status')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'task_type', 'period_start'), name='one_quota_per_type_and_hour'), models.CheckConstraint(condition=models.Q(('quota_completed__gte', 0), ('quota_failed__gte', 0), ('quota_pending__gte', 0), ('quota_required__gte', 0), ('quota_skipped__gte', 0)), name='quota_counts_are_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='QuotaViolation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('acknowledged_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='acknowledged')),
                ('acknowledgement', models.CharField(blank=True, db_default='', default='', max_length=500, verbose_name='note')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('report', models.JSONField(default=dict, verbose_name='report')),
                ('severity', models.CharField(choices=[('LOW', 'low'), ('MEDIUM', 'medium'), ('HIGH', 'high'), ('CRITICAL', 'critical')], max_length=20, verbose_name='severity')),
                ('notified', models.BooleanField(default=False, verbose_name='notified')),
                ('notified_at', models.DateTimeField(blank=True, null=True, verbose_name='notified at')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('acknowledged_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='acknowledged by')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quota_violations', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'quota violation',
                'verbose_name_plural': 'quota violations',
                'db_table': 'quota_violations',
                'ordering': ['-created_at'],
                'indexes': [models.Index(fields=['olt', 'created_at'], name='violation_olt_created'), models.Index(fields=['created_at'], name='violation_created'), models.Index(fields=['severity'], name='violation_severity'), models.Index(fields=['notified'], name='violation_notified')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'period_start'), name='one_violation_per_olt_and_hour')],
            },
        ),
    ]
