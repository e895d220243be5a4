import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0005_customers_and_texts'),
        ('plant', '0001_findings_in_the_light'),
    ]

    operations = [
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
        migrations.AddConstraint(
            model_name='box',
            constraint=models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='box_has_a_name'),
        ),
        migrations.AddConstraint(
            model_name='box',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['cto', 'splitter'])), name='box_kind_is_known'),
        ),
        migrations.AddConstraint(
            model_name='box',
            constraint=models.CheckConstraint(condition=models.Q(('parent__isnull', True), models.Q(('parent', models.F('id')), _negated=True), _connector='OR'), name='box_does_not_feed_itself'),
        ),
        migrations.AddConstraint(
            model_name='box',
            constraint=models.CheckConstraint(condition=models.Q(('outputs__isnull', True), ('outputs__range', (2, 256)), _connector='OR'), name='box_splits'),
        ),
        migrations.AddConstraint(
            model_name='box',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('latitude__isnull', True), ('longitude__isnull', True)), models.Q(('latitude__isnull', False), ('longitude__isnull', False), ('latitude__range', (-90, 90)), ('longitude__range', (-180, 180))), _connector='OR'), name='box_is_on_earth'),
        ),
    ]
