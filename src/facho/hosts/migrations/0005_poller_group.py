from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0004_olt_values'),
    ]

    operations = [
        migrations.AddField(
            model_name='olt',
            name='poller_group',
            field=models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='poller group'),
        ),
    ]
