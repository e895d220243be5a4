import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('onus', '0001_squashed_0003_raw_values_in_blocks'),
    ]

    operations = [
        migrations.CreateModel(
            name='LightFinding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('common_step', 'light lost in common'), ('decay', 'light that decays')], max_length=12, verbose_name='kind')),
                ('since', models.DateTimeField(verbose_name='since')),
                ('found_at', models.DateTimeField(verbose_name='found')),
                ('ended_at', models.DateTimeField(blank=True, null=True, verbose_name='ended')),
                ('size_db', models.FloatField(verbose_name='dB')),
                ('onus_read', models.PositiveIntegerField(default=0, verbose_name='ONUs read')),
                ('judged_at', models.DateTimeField(verbose_name='judged')),
                ('level_dbm', models.FloatField(blank=True, null=True, verbose_name='level in dBm')),
                ('days_soonest', models.FloatField(blank=True, null=True, verbose_name='days, soonest')),
                ('days_likely', models.FloatField(blank=True, null=True, verbose_name='days, likely')),
                ('days_latest', models.FloatField(blank=True, null=True, verbose_name='days, latest')),
                ('onu', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='light_findings', to='onus.onu', verbose_name='ONU')),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='light_findings', to='onus.ponport', verbose_name='PON port')),
            ],
            options={
                'verbose_name': 'finding in the light',
                'verbose_name_plural': 'findings in the light',
                'ordering': ['-since', '-id'],
            },
        ),
        migrations.CreateModel(
            name='FindingOnu',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_hit', models.BooleanField()),
                ('size_db', models.FloatField(null=True)),
                ('onu', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.onu')),
                ('finding', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='members', to='plant.lightfinding')),
            ],
        ),
        migrations.CreateModel(
            name='OnuBox',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(verbose_name='box')),
                ('confidence', models.FloatField(verbose_name='confidence')),
                ('events', models.PositiveSmallIntegerField(default=0, verbose_name='events')),
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='box', to='onus.onu')),
                ('pon_port', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport', verbose_name='PON port')),
            ],
            options={
                'verbose_name': 'box of an ONU',
                'verbose_name_plural': 'boxes of ONUs',
            },
        ),
        migrations.CreateModel(
            name='PortDays',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('pon_port', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
        ),
        migrations.AddIndex(
            model_name='lightfinding',
            index=models.Index(fields=['pon_port', 'since'], name='light_finding_of_port'),
        ),
        migrations.AddIndex(
            model_name='lightfinding',
            index=models.Index(fields=['ended_at', 'kind'], name='light_finding_end'),
        ),
        migrations.AddIndex(
            model_name='lightfinding',
            index=models.Index(fields=['since'], name='light_finding_since'),
        ),
        migrations.AddConstraint(
            model_name='lightfinding',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'common_step')), fields=('pon_port', 'since'), name='one_common_step_per_poll'),
        ),
        migrations.AddConstraint(
            model_name='lightfinding',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True), ('kind', 'decay')), fields=('onu',), name='one_open_decay_per_onu'),
        ),
        migrations.AddConstraint(
            model_name='findingonu',
            constraint=models.UniqueConstraint(fields=('finding', 'onu'), name='one_row_per_finding_and_onu'),
        ),
        migrations.AddIndex(
            model_name='portdays',
            index=models.Index(fields=['ends_at'], name='port_days_end'),
        ),
    ]
