from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ('zabbix_pollers', '0001_initial'),
        ('zabbix_pollers', '0002_poller_group'),
        ('zabbix_pollers', '0003_standstill'),
    ]

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='LeaderLease',
            fields=[
                ('name', models.CharField(max_length=30, primary_key=True, serialize=False)),
                ('owner', models.CharField(max_length=100)),
                ('counter', models.PositiveBigIntegerField(default=0)),
                ('renewed_at', models.DateTimeField()),
                ('standstill', models.CharField(blank=True, db_default='', default='', max_length=20)),
            ],
        ),
        migrations.CreateModel(
            name='PollerStats',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('total_pollers', models.IntegerField(default=0)),
                ('free_pollers', models.IntegerField(default=0)),
                ('busy_pollers', models.IntegerField(default=0)),
                ('busy_percentage', models.FloatField(default=0.0)),
                ('queue_size', models.IntegerField(default=0)),
                ('is_saturated', models.BooleanField(default=False)),
                ('total_tasks_completed', models.IntegerField(default=0)),
                ('total_tasks_delayed', models.IntegerField(default=0)),
                ('timestamp', models.DateTimeField(auto_now_add=True, db_index=True)),
            ],
            options={
                'verbose_name': 'poller statistics',
                'verbose_name_plural': 'poller statistics',
                'ordering': ['-timestamp'],
            },
        ),
        migrations.CreateModel(
            name='Poller',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('poller_id', models.IntegerField(unique=True, verbose_name='number')),
                ('group', models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='group')),
                ('status', models.CharField(choices=[('FREE', 'free'), ('BUSY', 'busy')], default='FREE', max_length=10, verbose_name='status')),
                ('current_node_id', models.IntegerField(blank=True, null=True, verbose_name='current node')),
                ('current_execution_id', models.BigIntegerField(blank=True, null=True, verbose_name='current execution')),
                ('busy_since', models.DateTimeField(blank=True, null=True, verbose_name='busy since')),
                ('busy_time', models.FloatField(default=0.0, verbose_name='busy time (s)')),
                ('total_time', models.FloatField(default=0.0, verbose_name='total time (s)')),
                ('tasks_completed', models.IntegerField(default=0, verbose_name='tasks completed')),
                ('tasks_delayed', models.IntegerField(default=0, verbose_name='tasks delayed')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'poller',
                'verbose_name_plural': 'pollers',
                'ordering': ['poller_id'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('current_execution_id__isnull', True), ('status', 'FREE')), models.Q(('current_execution_id__isnull', False), ('status', 'BUSY')), _connector='OR'), name='busy_poller_has_an_execution')],
            },
        ),
    ]
