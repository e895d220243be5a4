import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('plant', '0001_findings_in_the_light'), ('plant', '0002_zones_and_boxes'), ('plant', '0003_months'), ('plant', '0004_what_days_say_of_light'), ('plant', '0005_days_of_a_month')]

    dependencies = [
        ('auth', '__first__'),
        ('hosts', '0012_silence'),
        ('onus', '0004_squashed_0005_customers_and_texts'),
    ]

    operations = [
        migrations.CreateModel(
            name='LightFinding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('common_step', 'light lost in common'), ('branch_decay', 'degraded branch'), ('step', 'light lost by one ONU'), ('decay', 'decaying light'), ('sender', 'ONU that sends weaker'), ('noise', 'unsteady light'), ('flapping', 'flapping light')], max_length=12, verbose_name='kind')),
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
                ('confidence', models.FloatField(db_default=0.0, default=0.0, verbose_name='confidence')),
                ('hint', models.CharField(blank=True, choices=[('connector', 'both directions lost the same: a connector, a splice or dirt'), ('bend', 'the ONU lost more than the OLT: a bent fibre'), ('receiver', "the OLT receives as before: the ONU's receiver, or another ONU"), ('transmitter', "the OLT lost more than the ONU: the ONU's transmitter")], db_default='', default='', max_length=12, verbose_name='hint')),
                ('times', models.FloatField(blank=True, null=True, verbose_name='times')),
                ('upstream_db', models.FloatField(blank=True, null=True, verbose_name='dB upstream')),
            ],
            options={
                'verbose_name': 'finding in the light',
                'verbose_name_plural': 'findings in the light',
                'ordering': ['-since', '-id'],
                'indexes': [models.Index(fields=['pon_port', 'since'], name='light_finding_of_port'), models.Index(fields=['ended_at', 'kind'], name='light_finding_end'), models.Index(fields=['since'], name='light_finding_since')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('kind', 'common_step')), fields=('pon_port', 'since'), name='one_common_step_per_poll'), models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True), ('onu__isnull', False)), fields=('onu', 'kind'), name='one_open_per_onu')],
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
            options={
                'constraints': [models.UniqueConstraint(fields=('finding', 'onu'), name='one_row_per_finding_and_onu')],
            },
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
                ('is_told', models.BooleanField(db_default=False, default=False, verbose_name='corrected by hand')),
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
            options={
                'indexes': [models.Index(fields=['ends_at'], name='port_days_end')],
            },
        ),
        migrations.CreateModel(
            name='Zone',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True, verbose_name='name')),
                ('latitude', models.FloatField(blank=True, null=True, verbose_name='latitude')),
                ('longitude', models.FloatField(blank=True, null=True, verbose_name='longitude')),
            ],
            options={
                'verbose_name': 'zone',
                'verbose_name_plural': 'zones',
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='zone_has_a_name'), models.CheckConstraint(condition=models.Q(models.Q(('latitude__isnull', True), ('longitude__isnull', True)), models.Q(('latitude__isnull', False), ('longitude__isnull', False), ('latitude__range', (-90, 90)), ('longitude__range', (-180, 180))), _connector='OR'), name='zone_is_on_earth')],
            },
        ),
        migrations.CreateModel(
            name='Box',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True, verbose_name='name')),
                ('kind', models.CharField(choices=[('cto', 'CTO / NAP'), ('splitter', 'splitter')], default='cto', max_length=8, verbose_name='kind')),
                ('latitude', models.FloatField(blank=True, null=True, verbose_name='latitude')),
                ('longitude', models.FloatField(blank=True, null=True, verbose_name='longitude')),
                ('outputs', models.PositiveSmallIntegerField(blank=True, help_text='How many fibres leave its splitter: 8 for 1:8.', null=True, verbose_name='outputs')),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='plant.box', verbose_name='fed by')),
                ('pon_port', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='boxes', to='onus.ponport', verbose_name='PON port')),
                ('zone', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='boxes', to='plant.zone', verbose_name='zone')),
            ],
            options={
                'verbose_name': 'box',
                'verbose_name_plural': 'boxes',
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='box_has_a_name'), models.CheckConstraint(condition=models.Q(('kind__in', ['cto', 'splitter'])), name='box_kind_is_known'), models.CheckConstraint(condition=models.Q(('parent__isnull', True), models.Q(('parent', models.F('id')), _negated=True), _connector='OR'), name='box_does_not_feed_itself'), models.CheckConstraint(condition=models.Q(('outputs__isnull', True), ('outputs__range', (2, 256)), _connector='OR'), name='box_splits'), models.CheckConstraint(condition=models.Q(models.Q(('latitude__isnull', True), ('longitude__isnull', True)), models.Q(('latitude__isnull', False), ('longitude__isnull', False), ('latitude__range', (-90, 90)), ('longitude__range', (-180, 180))), _connector='OR'), name='box_is_on_earth')],
            },
        ),
        migrations.CreateModel(
            name='OnuAttachment',
            fields=[
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='attachment', serialize=False, to='onus.onu', verbose_name='ONU')),
                ('source', models.CharField(choices=[('hand', 'by hand'), ('import', 'imported'), ('inferred', 'inferred')], max_length=8, verbose_name='source')),
                ('box', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='plant.box', verbose_name='box')),
            ],
            options={
                'verbose_name': 'ONU on a box',
                'verbose_name_plural': 'ONUs on boxes',
                'constraints': [models.CheckConstraint(condition=models.Q(('source__in', ['hand', 'import', 'inferred'])), name='attachment_source_is_known')],
            },
        ),
        migrations.CreateModel(
            name='MonthRun',
            fields=[
                ('month', models.DateField(primary_key=True, serialize=False, verbose_name='month')),
                ('covers_until', models.DateTimeField(verbose_name='covers until')),
                ('hourly_until', models.DateTimeField(blank=True, null=True, verbose_name='by the hour until')),
                ('done_port', models.BigIntegerField(default=0)),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='computed')),
                ('is_final', models.BooleanField(default=False, verbose_name='final')),
                ('wanted_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'computed month',
                'verbose_name_plural': 'computed months',
                'ordering': ['-month'],
            },
        ),
        migrations.CreateModel(
            name='OnuMonth',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('month', models.DateField()),
                ('up_seconds', models.PositiveIntegerField()),
                ('down_seconds', models.PositiveIntegerField()),
                ('unknown_seconds', models.PositiveIntegerField()),
                ('planned_seconds', models.PositiveIntegerField()),
                ('interruptions', models.PositiveIntegerField()),
                ('longest_down_seconds', models.PositiveIntegerField()),
                ('light_cdbm', models.SmallIntegerField(null=True)),
                ('lowest_day_cdbm', models.SmallIntegerField(null=True)),
                ('weak_days', models.PositiveSmallIntegerField(default=0)),
                ('rise_on', models.DateField(null=True)),
                ('rise_before_cdbm', models.SmallIntegerField(null=True)),
                ('rise_after_cdbm', models.SmallIntegerField(null=True)),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
                ('onu', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='months', to='onus.onu', verbose_name='ONU')),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport', verbose_name='PON port')),
            ],
            options={
                'verbose_name': 'month of an ONU',
                'verbose_name_plural': 'months of ONUs',
                'indexes': [models.Index(fields=['month', 'olt'], name='onu_month_of_olt'), models.Index(fields=['month', 'down_seconds'], name='onu_month_down')],
                'constraints': [models.UniqueConstraint(fields=('month', 'onu'), name='one_row_per_month_and_onu')],
            },
        ),
        migrations.CreateModel(
            name='TreeCorrection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('made_at', models.DateTimeField(verbose_name='made')),
                ('together', models.JSONField(verbose_name='together')),
                ('apart', models.JSONField(verbose_name='apart')),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='made by')),
                ('pon_port', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tree_corrections', to='onus.ponport', verbose_name='PON port')),
            ],
            options={
                'verbose_name': 'correction of a tree',
                'verbose_name_plural': 'corrections of trees',
                'ordering': ['made_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='PortMonth',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('month', models.DateField()),
                ('until', models.DateTimeField()),
                ('planned_crc', models.BigIntegerField()),
                ('data', models.BinaryField()),
                ('pon_port', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'indexes': [models.Index(fields=['month'], name='port_month_month')],
            },
        ),
    ]
