import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ('alerts', '0001_initial'),
        ('alerts', '0002_default_rules'),
        ('alerts', '0003_rules_hold_their_group'),
        ('alerts', '0004_expired_notices'),
        ('alerts', '0005_refused_notices'),
        ('alerts', '0006_nothing_is_polled'),
    ]

    initial = True

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AlertChannel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
                ('kind', models.CharField(choices=[('apprise', 'message service'), ('webhook', 'signed webhook')], default='apprise', max_length=10, verbose_name='kind')),
                ('url', models.TextField(blank=True, default='', verbose_name='address')),
                ('shown_as', models.CharField(editable=False, max_length=300, verbose_name='address shown as')),
                ('signing_key', models.TextField(blank=True, default='', help_text='For a webhook: the key that signs its messages.', verbose_name='signing key')),
                ('language', models.CharField(blank=True, help_text="Empty: the installation's.", max_length=5, verbose_name='language')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'alert channel',
                'verbose_name_plural': 'alert channels',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='AlertRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True, verbose_name='name')),
                ('kind', models.CharField(choices=[('quota_violated', 'quota violated'), ('quota_at_risk', 'quota at risk'), ('node_suspended', 'node suspended'), ('olt_unreachable', 'OLT unreachable'), ('network_lost', 'poller lost its network'), ('pollers_saturated', 'pollers saturated'), ('queue_overload', 'queue overload'), ('no_leader', 'nothing is polled'), ('messages_not_taken', 'nobody takes messages'), ('pon_outage', 'PON outage'), ('weak_light', 'weak light'), ('power_step', 'power step'), ('onu_waiting', 'ONU waits for authorisation')], max_length=20, verbose_name='looks for')),
                ('severity', models.CharField(choices=[('info', 'information'), ('warning', 'warning'), ('critical', 'critical')], default='warning', max_length=10, verbose_name='severity')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('threshold', models.FloatField(blank=True, help_text='In the unit of what it looks for; empty: the usual one.', null=True, verbose_name='threshold')),
                ('clear_margin', models.FloatField(default=0, help_text='How far past the threshold a value must return before the alert resolves.', validators=[django.core.validators.MinValueValidator(0)], verbose_name='clear margin')),
                ('hold_minutes', models.PositiveSmallIntegerField(default=0, help_text='It must last so long before anybody is told.', verbose_name='hold minutes')),
                ('clear_minutes', models.PositiveSmallIntegerField(default=0, help_text='It must be over for so long before it counts as resolved.', verbose_name='clear minutes')),
                ('quiet_from', models.TimeField(blank=True, null=True, verbose_name='quiet from')),
                ('quiet_to', models.TimeField(blank=True, null=True, verbose_name='quiet to')),
                ('sends_resolved', models.BooleanField(default=True, verbose_name='tells when it is over')),
                ('escalate_minutes', models.PositiveSmallIntegerField(blank=True, help_text='If nobody acknowledged it; empty: never.', null=True, verbose_name='escalates after minutes')),
                ('channels', models.ManyToManyField(blank=True, related_name='rules', to='alerts.alertchannel', verbose_name='channels')),
                ('escalation_channels', models.ManyToManyField(blank=True, related_name='escalation_rules', to='alerts.alertchannel', verbose_name='escalation channels')),
                ('olt_group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='hosts.oltgroup', verbose_name='OLT group')),
            ],
            options={
                'verbose_name': 'alert rule',
                'verbose_name_plural': 'alert rules',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('acknowledged_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='acknowledged')),
                ('acknowledgement', models.CharField(blank=True, db_default='', default='', max_length=500, verbose_name='note')),
                ('subject', models.CharField(help_text='What is wrong, as a code.', max_length=120, verbose_name='subject')),
                ('state', models.CharField(choices=[('pending', 'noticed'), ('firing', 'firing'), ('resolved', 'resolved')], default='pending', max_length=10, verbose_name='state')),
                ('severity', models.CharField(choices=[('info', 'information'), ('warning', 'warning'), ('critical', 'critical')], max_length=10, verbose_name='severity')),
                ('facts', models.JSONField(default=dict, verbose_name='facts')),
                ('place', models.CharField(blank=True, max_length=60, verbose_name='place')),
                ('began_at', models.DateTimeField(verbose_name='since')),
                ('fired_at', models.DateTimeField(blank=True, null=True, verbose_name='fires since')),
                ('told_at', models.DateTimeField(blank=True, null=True, verbose_name='told')),
                ('escalated_at', models.DateTimeField(blank=True, null=True, verbose_name='escalated')),
                ('calm_since', models.DateTimeField(blank=True, null=True, verbose_name='calm since')),
                ('resolved_at', models.DateTimeField(blank=True, null=True, verbose_name='resolved')),
                ('is_flapping', models.BooleanField(default=False, verbose_name='flapping')),
                ('acknowledged_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='acknowledged by')),
                ('olt', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='hosts.olt', verbose_name='OLT')),
                ('rule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='alerts.alertrule', verbose_name='rule')),
            ],
            options={
                'verbose_name': 'alert',
                'verbose_name_plural': 'alerts',
                'ordering': ['-began_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(help_text='The same message never twice.', max_length=64, unique=True, verbose_name='key')),
                ('kind', models.CharField(choices=[('opened', 'opened'), ('resolved', 'resolved'), ('escalated', 'escalated'), ('test', 'test')], max_length=10, verbose_name='kind')),
                ('severity', models.CharField(choices=[('info', 'information'), ('warning', 'warning'), ('critical', 'critical')], max_length=10, verbose_name='severity')),
                ('title', models.CharField(max_length=200, verbose_name='title')),
                ('body', models.TextField(verbose_name='text')),
                ('payload', models.JSONField(default=dict, verbose_name='for machines')),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('sent', 'sent'), ('failed', 'given up')], default='waiting', max_length=10, verbose_name='state')),
                ('created_at', models.DateTimeField(verbose_name='written')),
                ('next_try_at', models.DateTimeField(blank=True, null=True, verbose_name='next try')),
                ('tries', models.PositiveSmallIntegerField(default=0, verbose_name='tries')),
                ('last_error', models.CharField(blank=True, max_length=300, verbose_name='last error')),
                ('was_refused', models.BooleanField(db_default=False, default=False, editable=False)),
                ('sent_at', models.DateTimeField(blank=True, null=True, verbose_name='sent')),
                ('alerts', models.ManyToManyField(related_name='notices', to='alerts.alert', verbose_name='alerts')),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='alerts.alertchannel', verbose_name='channel')),
            ],
            options={
                'verbose_name': 'message',
                'verbose_name_plural': 'messages',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.AddConstraint(
            model_name='alertrule',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('quiet_from__isnull', True), ('quiet_to__isnull', True)), models.Q(('quiet_from__isnull', False), ('quiet_to__isnull', False)), _connector='OR'), name='quiet_hours_have_both_ends', violation_error_message='Quiet hours need both their beginning and their end.'),
        ),
        migrations.AddConstraint(
            model_name='alertrule',
            constraint=models.CheckConstraint(condition=models.Q(('quiet_from__isnull', True), models.Q(('quiet_from', models.F('quiet_to')), _negated=True), _connector='OR'), name='quiet_hours_end', violation_error_message='Quiet hours must not end when they begin.'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['state', 'began_at'], name='alert_state_began'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['began_at'], name='alert_began'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['resolved_at'], name='alert_resolved'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.UniqueConstraint(condition=models.Q(('resolved_at', None)), fields=('rule', 'subject'), name='one_open_alert_per_rule_and_subject'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('resolved_at__isnull', False), ('state', 'resolved')), models.Q(models.Q(('state', 'resolved'), _negated=True), ('resolved_at__isnull', True)), _connector='OR'), name='resolved_alert_has_a_time'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(fields=['state', 'next_try_at'], name='notice_due'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(fields=['created_at'], name='notice_created'),
        ),
    ]
