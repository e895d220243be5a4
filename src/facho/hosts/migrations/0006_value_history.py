import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0005_poller_group'),
    ]

    operations = [
        migrations.CreateModel(
            name='HistoryOid',
            fields=[
                ('number', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ('oid', models.CharField(max_length=255, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name='OltHistoryPoll',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('port_group', models.BigIntegerField(db_column='olt_group')),
                ('taken_at', models.DateTimeField()),
                ('data', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['port_group', 'taken_at'], name='olt_history_poll_of_group'), models.Index(fields=['taken_at'], name='olt_history_poll_oldest')],
            },
        ),
        migrations.CreateModel(
            name='HistoryRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.CharField(blank=True, max_length=128)),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('olt', 'index'), name='one_history_row_per_olt_and_index')],
            },
        ),
        migrations.CreateModel(
            name='OltHistoryDays',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='olthistorydays_oldest')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'metric', 'ends_at'), name='one_olthistorydays_per_period')],
            },
        ),
        migrations.CreateModel(
            name='OltHistoryHours',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='olthistoryhours_oldest')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'metric', 'ends_at'), name='one_olthistoryhours_per_period')],
            },
        ),
        migrations.CreateModel(
            name='OltHistorySamples',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.PositiveSmallIntegerField()),
                ('ends_at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='hosts.olt')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['ends_at'], name='olthistorysamples_oldest')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'metric', 'ends_at'), name='one_olthistorysamples_per_period')],
            },
        ),
    ]
