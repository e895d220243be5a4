from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('alerts', '0003_acting_on_messages'), ('alerts', '0004_monthly_reports')]

    dependencies = [
        ('alerts', '0002_offered_conditions'),
    ]

    operations = [
        migrations.CreateModel(
            name='PublicAddress',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=200, verbose_name='address of these pages')),
            ],
        ),
        migrations.AddField(
            model_name='alert',
            name='acknowledged_through',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=60, verbose_name='acknowledged through'),
        ),
        migrations.AddField(
            model_name='alertchannel',
            name='digest',
            field=models.CharField(blank=True, choices=[('', 'at once'), ('quarter', 'collected, every 15 minutes'), ('hour', 'collected, every hour'), ('day', 'collected, every day at 8:00')], default='', max_length=8, verbose_name='sends'),
        ),
        migrations.AddField(
            model_name='alertchannel',
            name='link_version',
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name='alertchannel',
            name='on_call_days',
            field=models.CharField(default='1234567', max_length=7, verbose_name='on call on'),
        ),
        migrations.AddField(
            model_name='alertchannel',
            name='on_call_from',
            field=models.TimeField(blank=True, null=True, verbose_name='on call from'),
        ),
        migrations.AddField(
            model_name='alertchannel',
            name='on_call_to',
            field=models.TimeField(blank=True, null=True, verbose_name='on call to'),
        ),
        migrations.AddField(
            model_name='notice',
            name='link_used_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AlterField(
            model_name='notice',
            name='kind',
            field=models.CharField(choices=[('opened', 'opened'), ('resolved', 'resolved'), ('escalated', 'escalated'), ('digest', 'digest'), ('test', 'test')], max_length=10, verbose_name='kind'),
        ),
        migrations.AddConstraint(
            model_name='alertchannel',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('on_call_from__isnull', True), ('on_call_to__isnull', True)), models.Q(('on_call_from__isnull', False), ('on_call_to__isnull', False)), _connector='OR'), name='on_call_hours_have_both_ends'),
        ),
        migrations.AddConstraint(
            model_name='alertchannel',
            constraint=models.CheckConstraint(condition=models.Q(('on_call_days', ''), _negated=True), name='on_call_has_a_day'),
        ),
        migrations.AddField(
            model_name='alertchannel',
            name='sends_reports',
            field=models.BooleanField(db_default=False, default=False, help_text='The report of the last month, in the language of the channel; e-mail carries it as PDF.', verbose_name='monthly report'),
        ),
        migrations.AlterField(
            model_name='notice',
            name='kind',
            field=models.CharField(choices=[('opened', 'opened'), ('resolved', 'resolved'), ('escalated', 'escalated'), ('digest', 'digest'), ('test', 'test'), ('report', 'report')], max_length=10, verbose_name='kind'),
        ),
    ]
