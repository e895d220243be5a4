from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('zabbix_pollers', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='poller',
            name='group',
            field=models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='group'),
        ),
    ]
