from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0003_slot_index'),
    ]

    operations = [
        migrations.CreateModel(
            name='ProductProcess',
            fields=[
                ('owner', models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name='owner')),
                ('version', models.CharField(max_length=40, verbose_name='version')),
                ('groups', models.JSONField(default=list, verbose_name='groups')),
                ('slots', models.PositiveIntegerField(default=0, verbose_name='slots')),
                ('started_at', models.DateTimeField(verbose_name='started')),
                ('seen_at', models.DateTimeField(verbose_name='seen')),
                ('clock_at', models.DateTimeField(verbose_name='its clock')),
                ('completed', models.PositiveBigIntegerField(default=0, verbose_name='completed')),
                ('completed_at', models.DateTimeField(blank=True, null=True, verbose_name='last completed')),
            ],
            options={
                'verbose_name': 'process',
                'verbose_name_plural': 'processes',
                'ordering': ['owner'],
            },
        ),
        migrations.AddField(
            model_name='execution',
            name='poller_group',
            field=models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='poller group'),
        ),
    ]
