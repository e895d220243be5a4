import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='HistoryPoll',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('port_group', models.BigIntegerField()),
                ('taken_at', models.DateTimeField()),
                ('data', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['port_group', 'taken_at'], name='history_poll_of_group'), models.Index(fields=['taken_at'], name='history_poll_oldest')],
            },
        ),
        migrations.CreateModel(
            name='HistoryDays',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='historydays_oldest')],
                'constraints': [models.UniqueConstraint(fields=('pon_port', 'metric', 'ends_at'), name='one_historydays_per_period')],
            },
        ),
        migrations.CreateModel(
            name='HistoryHours',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='historyhours_oldest')],
                'constraints': [models.UniqueConstraint(fields=('pon_port', 'metric', 'ends_at'), name='one_historyhours_per_period')],
            },
        ),
        migrations.CreateModel(
            name='HistorySamples',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('pon_port', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='historysamples_oldest')],
                'constraints': [models.UniqueConstraint(fields=('pon_port', 'metric', 'ends_at'), name='one_historysamples_per_period')],
            },
        ),
        migrations.CreateModel(
            name='HistoryStay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('onu', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.onu')),
                ('pon_port', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='onus.ponport')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('onu', 'pon_port'), name='one_stay_per_onu_and_port')],
            },
        ),
    ]
